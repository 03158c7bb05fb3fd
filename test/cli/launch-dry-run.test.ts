// What a dry run prints may be put into a ticket.
import { afterEach, describe, expect, it, vi } from 'vitest';

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

describe('gradlink launch --dry-run on this host', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  /** The variables of each process. */
  async function planned(words: string, env: Readonly<Record<string, string>> = {}) {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const { stdout } = await gradlink(`launch ${words} --dry-run node a.js`.split(' '));
    const lines = stdout.trimEnd().split('\n');
    return lines.map((line): Readonly<Record<string, string | undefined>> => {
      const pairs = [...line.matchAll(/(\w+)=(\S*)/g)].map(([, name, value]) => [name, value]);
      return Object.fromEntries([...pairs, ['command', line]]) as Record<string, string>;
    });
  }

  it.each([
    ['-n 3 --gpu-per-worker', '1,GPU-8f2e,0', ['1', 'GPU-8f2e', '0']],
    ['-n 3 --gpu-per-worker', '4,7', ['4', '7', '4']],
    ['-n 3 --gpus-per-worker 2', '0,1,2,3,4,5', ['0,1', '2,3', '4,5']],
    ['-n 2 --gpu-per-worker', '-1', [undefined, undefined]],
    ['-n 2', '4,7', [undefined, undefined]],
  ])('%s shares the GPUs %s', async (words, gpus, given) => {
    const workers = await planned(words, { CUDA_VISIBLE_DEVICES: gpus });
    const shown = workers.map((one) => [one.CUDA_VISIBLE_DEVICES, one.TF_FORCE_GPU_ALLOW_GROWTH]);
    expect(shown).toEqual(given.map((one) => [one, one && 'true']));
  });

  it("tells workers and servers their places, by torchrun's names too", async () => {
    // Of a job around this one nothing stays, what the user says does.
    const outer = { GRADLINK_JOB: 'x', RANK: '7', MASTER_ADDR: 'far', MASTER_PORT: '7' };
    const [first, second, ...servers] = await planned('-n 2 -s 2', outer);
    const both = { GRADLINK_JOB: 'SECRET', GRADLINK_NUM_WORKERS: '2', GRADLINK_NUM_SERVERS: '2' };
    expect([first, second]).toMatchObject(
      ['0', '1'].map((rank) => ({
        ...both,
        RANK: rank,
        WORLD_SIZE: '2',
        LOCAL_RANK: rank,
        LOCAL_WORLD_SIZE: '2',
        GRADLINK_ROLE: 'worker',
        GRADLINK_RANK: rank,
        GRADLINK_SIZE: '2',
        MASTER_ADDR: '127.0.0.1',
        MASTER_PORT: expect.stringMatching(/^2\d{4}$/) as string,
        command: expect.stringMatching(/\bnode a\.js$/) as string,
      })),
    );
    expect(servers).toMatchObject(
      ['0', '1'].map((rank) => ({
        ...both,
        GRADLINK_ROLE: 'server',
        GRADLINK_SERVER_RANK: rank,
        command: expect.stringMatching(/\bgradlink\.js serve$/) as string,
      })),
    );
    for (const one of servers) expect(Object.keys(one)).not.toContain('GRADLINK_RANK');
    vi.unstubAllEnvs();
    const [given] = await planned('-n 1', { MASTER_ADDR: 'far' });
    expect(given).toMatchObject({ MASTER_ADDR: 'far' });
    const refused = await gradlink(['launch', '-n', '1', '--env', 'RANK=3', 'true']);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--env\b.* RANK\./) as string,
    });
  });
});
