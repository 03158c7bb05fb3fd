// A job of which one process is killed, whichever it is and whenever: an error names it and nothing is left.
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { LaunchedJob } from '../support/marked.js';
import { flavours, mpirunOf } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

const workers = 2;
const servers = 2;
/** Each process of a job twice, the launcher too. Attacks kill at random: test/attack/kills.test.ts. */
const kills = 2 * (workers + servers + 1);
/** Under each MPI one of each: a worker, a server, the launcher, and one of MPI's own or ours between them. */
const killsUnderMpi = 4;

/** Pushes and pulls forever: one key on one server, one cut over both. */
const forever = `
  const kv = await KVStore.create('dist_sync', { devices: 1 });
  const values = { small: new Float32Array(1000).fill(1), large: new Float32Array(1_500_000).fill(1) };
  for (const [key, value] of Object.entries(values)) await kv.init(key, value);
  for (let round = 0; ; round += 1) {
    await Promise.all(Object.entries(values).map(([key, value]) => kv.pushPull(key, [value], [value])));
    for (const value of Object.values(values)) value.fill(1);
    if (round === 0) say('under way');
  }
`;

let scripts: Scripts | undefined;
const jobs: LaunchedJob[] = [];
afterEach(async () => {
  // Only a test that failed leaves any.
  for (const job of jobs.splice(0)) job.remove();
  await scripts?.remove();
});

const complete = (job: LaunchedJob) => () => job.members().length === workers + servers;

/** How long it takes from the last process's start to the first round's end: kills come up to twice as late. */
async function spanOf(first: LaunchedJob): Promise<number> {
  await first.until(complete(first));
  const began = performance.now();
  await first.until(() => first.stdout.split('under way').length > workers);
  return performance.now() - began;
}

describe('a job of workers and servers', () => {
  const starter = (how: readonly string[] = [], env: Record<string, string> = {}) => {
    scripts = new Scripts();
    const script = scripts.write(forever);
    const size = ['-n', String(workers), '-s', String(servers)];
    return (): LaunchedJob => {
      const job = new LaunchedJob([...how, ...size, 'node', script], env);
      jobs.push(job);
      return job;
    };
  };

  it('survives the kill of none of its processes, early or late, and leaves nothing', async () => {
    const start = starter();
    const first = start();
    const span = await spanOf(first);
    for (let kill = 0; kill < kills; kill += 1) {
      const job = kill === 0 ? first : start();
      await job.until(complete(job));
      const candidates = [...job.members(), job.self];
      const victim = candidates[kill % candidates.length]!;
      const moment = (kill * 2 * span) / kills;
      await sleep(moment);
      const what = `${victim.name} after ${moment.toFixed()} ms`;
      process.kill(victim.pid, 'SIGKILL');
      const status = await job.ended;
      if (victim.name === 'launcher') {
        expect(status, what).toBeNull();
      } else {
        expect(status, `${what}: ${job.stderr}`).toBeGreaterThan(0);
        expect(job.stderr, what).toMatch(new RegExp(`${victim.name}\\b.* SIGKILL`));
      }
      // A killed launcher's watchdog ends what it left.
      await job.expectNothingLeft();
    }
  }, 900_000);

  it.for(flavours)(
    'under mpirun of %s, ends and leaves nothing whichever is killed',
    { timeout: 300_000 },
    async (flavour, context) => {
      mpirunOf(flavour, context);
      const start = starter(['--launcher', 'mpi'], { GRADLINK_MPI: flavour });
      const first = start();
      const span = await spanOf(first);
      for (let kill = 0; kill < killsUnderMpi; kill += 1) {
        const job = kill === 0 ? first : start();
        await job.until(complete(job));
        const launcher = job.self;
        const members = job.members();
        const candidates = [
          members.filter(({ name }) => name.startsWith('rank')),
          members.filter(({ name }) => name.startsWith('server')),
          [launcher],
          job.helpers(),
        ][kill % 4]!;
        const victim = candidates[kill % candidates.length]!;
        const moment = (kill * 2 * span) / killsUnderMpi;
        await sleep(moment);
        process.kill(victim.pid, 'SIGKILL');
        const status = await job.ended;
        const what = `${victim.name} after ${moment.toFixed()} ms: ${job.stderr}`;
        // Which of the processes an MPI names first is its affair: it ends the others at once.
        if (victim === launcher) expect(status, what).toBeNull();
        else expect(status, what).toBeGreaterThan(0);
        await job.expectNothingLeft();
      }
    },
  );
});
