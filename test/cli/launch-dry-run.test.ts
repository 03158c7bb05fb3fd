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
});
