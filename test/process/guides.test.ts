// The guides that are walks, and the examples, run as they stand.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { shellBlocks } from '../support/guides.js';

const root = new URL('../../', import.meta.url).pathname;
let scratch = '';

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'gradlink-guides-'));
  mkdirSync(join(scratch, 'bin'));
  // Of npx gradlink only gradlink: the checkout's. Whether two runs of a busy machine differ, and whether its sweep is
  // smooth enough to forecast sizes that were left out, is not what is tested: these two may end with 1.
  const npx = `#!/bin/sh
shift
node ${root}bench/gradlink.js "$@"
code=$?
case "$code $1 $2" in
  "1 compare "* | "1 predict --validate") exit 0 ;;
esac
exit "$code"
`;
  writeFileSync(join(scratch, 'bin', 'npx'), npx);
  chmodSync(join(scratch, 'bin', 'npx'), 0o755);
  writeFileSync(
    join(scratch, 'bin', 'gradlink'),
    `#!/bin/sh\nexec ${scratch}/bin/npx gradlink "$@"\n`,
  );
  chmodSync(join(scratch, 'bin', 'gradlink'), 0o755);
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

describe('walks', () => {
  it.each(['docs/start.md', 'docs/compare.md', 'docs/predict.md'])('%s', (guide) => {
    const folder = mkdtempSync(join(scratch, 'walk-'));
    symlinkSync(join(root, 'examples'), join(folder, 'examples'));
    const script = `set -e\n${shellBlocks(guide).join('\n')}`;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...process.env,
        PATH: `${join(scratch, 'bin')}:${process.env.PATH ?? ''}`,
        XDG_DATA_HOME: join(folder, 'data'),
        XDG_STATE_HOME: join(folder, 'state'),
      },
    });
    expect(status, stderr).toBe(0);
    expect(stdout.length).toBeGreaterThan(1000);
    if (guide !== 'docs/start.md') return;
    expect(statSync(join(folder, 'report.html')).size).toBeGreaterThan(10_000);
    expect(stdout).toMatch(/^base {2}today \(collectives/m);
    expect(stdout).toContain('PREDICTED, not measured');
  });
});

describe('examples', () => {
  const names = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.js'));

  it.each(names)('%s prints what it says', (name) => {
    const text = readFileSync(join(root, 'examples', name), 'utf8');
    const command = /^\/\/ Run: (.+)$/m.exec(text)?.[1];
    const printed = [...text.matchAll(/^\/\/ Prints: (.+)$/gm)].map(([, line]) => line);
    expect(command).toBeDefined();
    expect(printed).not.toEqual([]);
    // About ten lines: an example is read in one look.
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(15);
    const stdout = execFileSync('sh', ['-c', command!], { cwd: root, encoding: 'utf8' });
    expect(stdout.trimEnd().split('\n')).toEqual(printed);
  });
});
