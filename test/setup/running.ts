// Says which case runs, in a file of this process, where GRADLINK_RUNNING names a folder for such files: a process that
// blocks cannot say so, nor end its case. scripts/vitest-results.mjs reads them, and kills and names what hangs.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';

const folder = process.env.GRADLINK_RUNNING;

/** vitest itself ends a case that waits; what blocks is killed so long after. */
const graceSeconds = 5;

/** What loading a file and its hooks may take: some of them compile, pack or start daemons. */
const hooksMs = 240_000;

if (folder !== undefined) {
  const file = join(folder, String(process.pid));
  const path = expect.getState().testPath ?? 'an unknown file';
  const say = (name: string, limitMs: number): void => {
    writeFileSync(file, `${String(Math.ceil(limitMs / 1000) + graceSeconds)} ${path}: ${name}`);
  };
  const between = (): void => {
    say('outside its cases', hooksMs);
  };
  between();
  beforeEach(({ task }) => {
    say(task.fullName, task.timeout);
  });
  afterEach(between);
}
