// `gradlink` as a command to start is the program of this package, in PATH or not.
import { expect, it } from 'vitest';

import { ownCommand } from '../../lib/cli/own-command.js';
import { gradlink } from '../support/cli.js';

const program = new URL('../../bench/gradlink.js', import.meta.url).pathname;

it('is started by its file, with its arguments', () => {
  expect(ownCommand(['gradlink', 'models', '--json'])).toEqual([
    ...[process.execPath, program, 'models', '--json'],
  ]);
});

it('is no other program', () => {
  expect(ownCommand(['node', 'gradlink'])).toEqual(['node', 'gradlink']);
  expect(ownCommand(['./gradlink'])).toEqual(['./gradlink']);
});

it('is what launch starts', async () => {
  const { code, stdout } = await gradlink(['launch', '-n', '1', '--dry-run', 'gradlink', 'models']);
  expect({ code, last: stdout.trimEnd().split(' ').slice(-2) }).toEqual({
    code: 0,
    last: [program, 'models'],
  });
});

it('is what watch follows', async () => {
  const none = await gradlink(['watch', 'gradlink', 'models', 'no-such-network']);
  expect(none.stderr + none.stdout).not.toContain('ENOENT');
  expect(none.code).toBe(2);
});
