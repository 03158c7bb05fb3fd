import { describe, expect, it } from 'vitest';

import { runElastic, type Attempt } from '../../lib/launch/elastic.js';
import type { JobSpec } from '../../lib/launch/job.js';
import type { Manner } from '../../lib/launch/members.js';
import type { JobResult } from '../../lib/launch/run-job.js';

const job: JobSpec = {
  ...{ command: ['node', 'app.js'], workers: 4, servers: 1, env: { A: 'b' }, cores: [] },
  ...{ tolerateWorkerLoss: false, graceMs: 5000, outerEnv: {}, starterArguments: [] },
};
const well: JobResult = { exitCode: 0, tolerated: [], endings: [], survivors: [] };

function failed(manner: Manner, role: 'worker' | 'server' = 'worker'): JobResult {
  const member = { role, index: 1, label: '1', pid: 4711 };
  const failure = { member, manner, exitCode: 137, what: 'was killed', lastLines: [] };
  return { ...well, exitCode: 137, interruption: { kind: 'failure', failure } };
}

async function run(results: readonly JobResult[], first: Partial<Attempt> = {}, minWorkers = 1) {
  const attempts: Attempt[] = [];
  let told = '';
  const last = await runElastic(
    { job, ...first },
    minWorkers,
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
    expect(told).toContain('starts again with 3 workers');
    expect(told).toContain('starts again with 2 workers');
    expect(last.exitCode).toBe(0);
  });

  it('ends when too few are left', async () => {
    const { attempts, told, last } = await run([failed('killed'), failed('killed')], {}, 3);
    expect(attempts).toHaveLength(2);
    expect(told).toContain('fewer than 3 workers are left');
    expect(last.exitCode).toBe(137);
  });

  it.each([
    ['a worker that exits with an error', failed('exited')],
    ['a server that is killed', failed('killed', 'server')],
    ['a signal', { ...well, interruption: { kind: 'signal', signal: 'SIGINT' } } as const],
    ['the time limit', { ...well, interruption: { kind: 'timeout', timeoutMs: 5 } } as const],
    ['processes that cannot be ended', { ...failed('killed'), survivors: [12] }],
  ])('does not go on after %s', async (_, result) => {
    expect((await run([result])).attempts).toHaveLength(1);
  });

  it('gives each start what is left of the time limit', async () => {
    const { attempts } = await run([failed('killed'), well], { timeoutSeconds: 1000 });
    const [first = 0, second = 0] = attempts.map(({ timeoutSeconds }) => timeoutSeconds);
    expect(first).toBeLessThanOrEqual(1000);
    expect(second).toBeLessThan(first);
    expect(second).toBeGreaterThan(0);
  });
});
