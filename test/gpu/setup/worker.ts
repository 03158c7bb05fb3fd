// Runs in the process of each test file, before it: gives the file a report of leaks of its own, and lets the process
// end as a program does, not by a signal, so that the report is written.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'vitest';

import { leaksFolder, onRealGpus } from './fakes.js';

if (!onRealGpus) {
  const name = basename(expect.getState().testPath ?? 'unknown', '.test.ts');
  const folder = leaksFolder(process.ppid);
  const running = join(folder, `${name}.${String(process.pid)}.running`);
  mkdirSync(folder, { recursive: true });
  process.env.GRADLINK_FAKE_LEAKS = join(folder, `${name}.leaks`);
  writeFileSync(running, '');
  process.once('exit', () => {
    renameSync(running, running.replace(/running$/, 'ended'));
  });
  // vitest ends its workers with SIGTERM. Without the channel to it nothing keeps the process alive but what the
  // tests have left open.
  process.once('SIGTERM', () => {
    process.disconnect();
  });
}
