// The guides for moving: every call that their tables show is made by two ranks, and their programs print what they say.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { movingGuide, programOf } from '../support/moving.js';
import { installCommands, root, walkEnvironment } from '../support/walks.js';
import { folderOfAllTests } from '../support/folders.js';

const names = readdirSync(join(root, 'docs')).filter((name) => name.startsWith('moving-'));

/** Stores with servers need one. */
const launch = ['launch', '-n', '2', '-s', '1', '--timeout', '60', 'node', 'app.js'];

let scratch = '';
folderOfAllTests((made) => (scratch = made));
beforeAll(() => {
  installCommands(scratch);
  mkdirSync(join(scratch, 'node_modules'));
  symlinkSync(root, join(scratch, 'node_modules/gradlink'));
  symlinkSync(join(root, 'node_modules/@tensorflow'), join(scratch, 'node_modules/@tensorflow'));
  writeFileSync(join(scratch, 'package.json'), '{ "type": "module" }\n');
});

function run(command: string, args: readonly string[]): string {
  const options = { cwd: scratch, encoding: 'utf8', env: walkEnvironment(scratch) } as const;
  const { status, stdout, stderr } = spawnSync(command, args, options);
  expect(status, stderr).toBe(0);
  return stdout;
}

it('there are six', () => {
  expect(names).toHaveLength(6);
});

describe.each(names)('%s', (name) => {
  const guide = movingGuide(`docs/${name}`);

  it('shows code, or a dash, for every call of theirs', () => {
    expect(guide.bareRows).toEqual([]);
    const { calls, flags, collectives } = guide;
    expect(calls.length + flags.length + collectives.length).toBeGreaterThan(10);
    expect(guide.scripts).not.toEqual([]);
  });

  // A guide has calls, or options of the command.
  const calls = guide.calls.length > 0 ? [guide.calls.length] : [];
  it.each(calls)('%i calls work on two ranks', (count) => {
    writeFileSync(join(scratch, 'app.js'), programOf(guide));
    const lines = run(join(scratch, 'bin/gradlink'), launch).split('\n');
    const line = `${count} calls`;
    // Servers print what they are told.
    expect(lines.filter((one) => one.endsWith(' calls'))).toEqual([line, line]);
  });

  const flags = guide.flags.length > 0 ? [guide.flags.length] : [];
  it.each(flags)(
    '%i options are those of gradlink collectives, as the names of collectives are',
    () => {
      const args = [join(root, 'bench/gradlink.js'), 'collectives', '--help'];
      const help = execFileSync(process.execPath, args, { encoding: 'utf8' });
      const known = [...help.matchAll(/(?:^ +|, )(--?[\w-]+)/gm)].map(([, option]) => option);
      for (const flag of guide.flags) expect(known).toContain(flag.split(' ')[0]);
      const names = /collective {5,}(.*?)\n\n/s.exec(help)?.[1]?.split(/,\s+/);
      for (const one of guide.collectives) expect(names).toContain(one);
    },
  );

  it.each(guide.scripts)('$command', ({ text, command, printed }) => {
    writeFileSync(join(scratch, 'app.js'), text);
    expect(run('bash', ['-c', command]).trimEnd().split('\n')).toEqual(printed);
  });
});
