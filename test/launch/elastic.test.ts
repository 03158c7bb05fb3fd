import { describe, expect, it } from 'vitest';

import { runElastic, type Attempt, type ElasticLimits } from '../../lib/launch/elastic.js';
import type { JobSpec } from '../../lib/launch/job.js';
import type { Manner } from '../../lib/launch/members.js';
import type { JobResult } from '../../lib/launch/run-job.js';

const job: JobSpec = {
  command: ['node', 'app.js'],
  workers: 4,
  servers: 1,
  env: { A: 'b' },
  cores: [],
  tolerateWorkerLoss: false,
  graceMs: 5000,
  outerEnv: {},
  starterArguments: [],
};
const well: JobResult = {
  exitCode: 0,
  tolerated: [],
  endings: [],
  lost: [],
  survivors: [],
  crowd: 0,
  midLine: false,
};

function failed(manner: Manner, role: 'worker' | 'server' = 'worker', ran = true): JobResult {
  const member = { role, index: 1, label: '1', pid: ran ? 4711 : undefined };
  const failure = { member, manner, exitCode: 137, what: 'was killed', lastLines: [] };
  return { ...well, exitCode: 137, interruption: { kind: 'failure', failure } };
}

async function run(
  results: readonly JobResult[],
  first: Partial<Attempt> = {},
  limits: Partial<ElasticLimits> = {},
) {
  const attempts: Attempt[] = [];
  let told = '';
  const last = await runElastic(
    { job, ...first },
    { launcher: 'ssh', minWorkers: 1, maxRestarts: 3, ...limits },
    (attempt) => {
      attempts.push(attempt);
      const result = results[attempts.length - 1];
      if (result === undefined) throw new Error('started once too often');
      return Promise.resolve(result);
    },
    (text) => (told += text),
  );
  return { attempts, told, last };
}

describe('runElastic', () => {
  it('starts a job once that ends well', async () => {
    const { attempts, told, last } = await run([well]);
    expect(attempts).toMatchObject([
      { job: { workers: 4, env: { A: 'b', GRADLINK_RESTARTS: '0' } } },
    ]);
    expect(told).toBe('');
    expect(last).toBe(well);
  });

  it('starts the others again, each time one fewer, with output of their own', async () => {
    const { attempts, told, last } = await run([failed('killed'), failed('killed'), well], {
      directory: '/out',
    });
    expect(attempts).toMatchObject([
      { directory: '/out', job: { workers: 4, servers: 1 } },
      { directory: '/out/restart-1', job: { workers: 3, env: { GRADLINK_RESTARTS: '1' } } },
      { directory: '/out/restart-2', job: { workers: 2, env: { GRADLINK_RESTARTS: '2' } } },
    ]);
    expect(told).toContain('3 workers (--elastic)');
    expect(told).toContain('2 workers (--elastic)');
    expect(last.exitCode).toBe(0);
  });

  it('ends when too few are left', async () => {
    const { attempts, told, last } = await run(
      [failed('killed'), failed('killed')],
      {},
      { minWorkers: 3 },
    );
    expect(attempts).toHaveLength(2);
    expect(told).toMatch(/\b3 workers .*\(--min-workers\)/);
    expect(last.exitCode).toBe(137);
  });

  it('goes on after workers that exit with an error, so many times', async () => {
    const once = await run([failed('exited'), well]);
    expect(once.attempts.map(({ job: { workers } }) => workers)).toEqual([4, 3]);
    expect(once.last).toBe(well);
    const error = failed('exited');
    const alike = await run([error, error, error], {}, { maxRestarts: 2 });
    expect(alike.attempts).toHaveLength(3);
    expect(alike.told).toMatch(/\b2 times .*\(--max-restarts\)/);
    expect(alike.last.exitCode).toBe(137);
    const none = await run([error], {}, { maxRestarts: 0 });
    expect(none.attempts).toHaveLength(1);
    expect(none.told).toContain('--max-restarts 0');
  });

  it('does not count those that a signal killed', async () => {
    const results = [failed('killed'), failed('exited'), failed('killed'), well];
    const { attempts } = await run(results, {}, { maxRestarts: 1 });
    expect(attempts.map(({ job: { workers } }) => workers)).toEqual([4, 3, 2, 1]);
  });

  it.each([
    ['a worker that could not be started', failed('exited', 'worker', false)],
    ['a worker that is ended with the job', failed('ended')],
    ['a server that is killed', failed('killed', 'server')],
    ['a signal', { ...well, interruption: { kind: 'signal', signal: 'SIGINT' } } as const],
    ['the time limit', { ...well, interruption: { kind: 'timeout', timeoutMs: 5 } } as const],
    ['processes that cannot be ended', { ...failed('killed'), survivors: [12] }],
  ])('does not go on after %s', async (_, result) => {
    expect((await run([result])).attempts).toHaveLength(1);
  });

  describe('on several hosts', () => {
    /** Workers on three hosts, the servers on the last. */
    const spread = { ...job, servers: 2, hosts: ['n1', 'n1', 'n2', 'n3', 'n3', 'n3'] };
    const member = (role: 'worker' | 'server', index: number) => {
      const label = `${role === 'server' ? 's' : ''}${index}`;
      return { role, index, label, pid: 5, host: 'node2' };
    };
    const lostHost = {
      ...failed('lost'),
      lost: [member('worker', 3), member('server', 0), member('server', 1)],
    };

    it('goes on without a host that is lost, its servers elsewhere', async () => {
      const { attempts, told, last } = await run([lostHost, well], { job: spread });
      const hosts = ['n1', 'n1', 'n2', 'n1', 'n2'];
      expect(attempts[1]?.job).toMatchObject({ workers: 3, servers: 2, hosts });
      expect(told).toMatch(/\b3 workers\b.*\bn3\b/);
      expect(last).toBe(well);
    });

    it('does so too where another failed over it, and counts no error', async () => {
      const over = { ...lostHost, interruption: failed('exited').interruption! };
      const { attempts } = await run([over, well], { job: spread }, { maxRestarts: 0 });
      expect(attempts[1]?.job.workers).toBe(3);
    });

    it('keeps the host of a worker that was killed', async () => {
      const { attempts } = await run([failed('killed'), well], { job: spread });
      const hosts = ['n1', 'n2', 'n3', 'n3', 'n3'];
      expect(attempts[1]?.job).toMatchObject({ workers: 3, hosts });
    });

    it('has Slurm leave the host out, and wants names of mpirun', async () => {
      const slurm = await run([lostHost, well], {}, { launcher: 'slurm' });
      expect(slurm.attempts[1]?.job).toMatchObject({
        workers: 3,
        starterArguments: ['--exclude=node2'],
      });
      const mpi = await run([lostHost], {}, { launcher: 'mpi' });
      expect(mpi.attempts).toHaveLength(1);
      expect(mpi.told).toMatch(/\bnode2\b.* -H\b/);
    });

    it('does not start forever while it loses servers', async () => {
      const server = { ...failed('lost', 'server'), lost: [member('server', 0)] };
      const { attempts } = await run([server, server], { job: spread }, { maxRestarts: 1 });
      expect(attempts.map(({ job: { workers } }) => workers)).toEqual([4, 4]);
    });
  });

  it('gives each start what is left of the time limit', async () => {
    const begin = performance.now();
    const { attempts } = await run([failed('killed'), well], { timeoutSeconds: 1000 });
    const [first = 0, second = 0] = attempts.map(({ timeoutSeconds }) => timeoutSeconds);
    expect(second).toBeLessThan(first);
    expect(1000 - second).toBeLessThanOrEqual((performance.now() - begin) / 1000);
  });
});
