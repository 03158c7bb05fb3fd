import { Command } from 'commander';
import { describe, expect, it } from 'vitest';

import { ownSpelling } from '../../lib/cli/launch/spelling.js';
import { parseHostList } from '../../lib/launch/hosts.js';
import { gradlink } from '../support/cli.js';

const program = new Command();
program.command('launch').option('-n, --num-workers <count>').option('--env <x>').option('--tag');

describe("other launchers' spelling", () => {
  it.each([
    ['launch -np 4 node app.js', 'launch -n 4 node app.js'],
    ['launch --num-proc 4 node app.js', 'launch -n 4 node app.js'],
    ['launch --env -np --tag -np 4 node -np 2', 'launch --env -np --tag -n 4 node -np 2'],
    ['launch -n 2 node -np 2', 'launch -n 2 node -np 2'],
    ['launch -- -np', 'launch -- -np'],
    ['measure -np 4', 'measure -np 4'],
  ])('%s', (argv, own) => {
    expect(ownSpelling(argv.split(' '), program).join(' ')).toBe(own);
  });

  it('names hosts on the command line', () => {
    expect(parseHostList('node1:4,node2:2,node3')).toEqual([
      { name: 'node1', slots: 4 },
      { name: 'node2', slots: 2 },
      { name: 'node3' },
    ]);
    expect(() => parseHostList('node1:four')).toThrow(/HOST:SLOTS/);
  });

  it('reaches the launcher', async () => {
    const dry = ['launch', '-np', '3', '--launcher', 'mpi', '-H', 'a:2,b:1', '--dry-run', 'node'];
    const { stdout, stderr, code } = await gradlink(dry);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/a,a,b|a:2,b:1/);
  });
});
