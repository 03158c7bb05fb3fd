// What a dry run prints may be put into a ticket.
import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

describe.each(['local', 'mpi'])('gradlink launch --dry-run --launcher %s', (launcher) => {
  it('names the variables that a job is given, and shows their values as reports do', async () => {
    const { code, stdout, stderr } = await gradlink([
      ...['launch', '-n', '1', '-s', '1', '--launcher', launcher, '--dry-run'],
      ...['--env', 'TOKEN=secret-of-all', '--env', 'GRADLINK_SIMD=scalar'],
      ...['--env-worker', 'KEY=secret-of-workers', '--env-server', 'PASSWORD=secret-of-servers'],
      ...['node', 'app.js'],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('TOKEN=');
    expect(stdout).toContain('GRADLINK_SIMD=scalar');
    expect(stdout).not.toContain('secret-of');
  });

  it('tells the job its network, above what --env and the environment say', async () => {
    const { code, stdout, stderr } = await gradlink([
      ...['launch', '-n', '1', '--launcher', launcher, '--dry-run'],
      ...['--network-interface', 'none0,lo', '--ports', '40000-40100'],
      ...['--env', 'GRADLINK_PORTS=1-2', 'node', 'app.js'],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const variable of ['GRADLINK_INTERFACE=none0,lo', 'GRADLINK_PORTS=40000-40100']) {
      expect(stdout).toContain(variable);
    }
    expect(/MASTER_PORT=(\d+)/.exec(stdout)?.[1]).toMatch(/^40[01]\d\d$/);
  });

  it.each([
    [['--network-interface', 'none0'], 2, 'none0'],
    [['--ports', '40100-40000'], 2, '40100-40000'],
    [['--max-restarts', '7'], 2, '--elastic'],
    [['--env', 'GRADLINK_INTERFACE=none0'], 1, 'none0'],
  ])('%j is refused', async (given, status, named) => {
    const { code, stdout, stderr } = await gradlink([
      ...['launch', '-n', '1', '--launcher', launcher, '--dry-run', ...given, 'node', 'app.js'],
    ]);
    expect({ code, stdout }).toEqual({ code: status, stdout: '' });
    expect(stderr).toContain(named);
  });
});
