// What a process warns of, heard by the tests of a file in place of being printed.
import { afterEach, beforeEach } from 'vitest';

/** Call it once, outside of tests: the warnings of the test that runs, in a list that it may empty. */
export function warningsOfTests(): Error[] {
  const warnings: Error[] = [];
  let printers: NodeJS.WarningListener[] = [];
  beforeEach(() => {
    warnings.length = 0;
    printers = process.listeners('warning');
    process.removeAllListeners('warning').on('warning', (warning) => warnings.push(warning));
  });
  afterEach(() => {
    process.removeAllListeners('warning');
    for (const printer of printers) process.on('warning', printer);
  });
  return warnings;
}
