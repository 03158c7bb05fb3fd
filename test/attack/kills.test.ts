// Processes of every kind of job, killed and stopped at random moments: the others say which, and nothing is left.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { startJob, helpers } from '../distributed/support.js';
import { gradlink, LaunchedJob, Marked } from '../support/marked.js';
import { flavours, mpirunOf } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';
import { completeCheckpoints } from '../../lib/train/checkpoints/folder.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import { loopNames, sourceOf, type LoopName } from './support/loops.js';
import {
  attackOf,
  counted,
  deadlineOf,
  expectNamed,
  leavingNothing,
  strike,
  type Attack,
} from './support/victims.js';

let scripts: Scripts;
let folder = '';
beforeAll(() => {
  scripts = new Scripts();
  folder = mkdtempSync(join(tmpdir(), 'gradlink-kills-'));
});
afterAll(async () => {
  await scripts.remove();
  rmSync(folder, { recursive: true, force: true });
});

const size = 3;
/** Longer than ranks of a busy machine are apart in starting. */
const meetingDeadlineMs = 5000;

/** A rank at calls of one kind, which reports what ended them. */
const looping = (kind: LoopName, timeoutMs: number): string => `
  const joined = Communicator.world({ timeoutMs: ${String(timeoutMs)} });
  report(await joined.then(${sourceOf(kind, `say('begun');`)}, plain));
  await joined.then((comm) => comm.close(), () => undefined);
`;

/** Kills first, then every third a stop, which costs its deadline. */
const howOf = (round: number): Attack['how'] => (round % 3 === 2 ? 'stop' : 'kill');

describe('ranks that are processes', () => {
  it('name the one that was killed or stopped', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('kills, embedded', 9, async (random, round) => {
      // Every kind comes with both, whatever the number of rounds.
      const kind = loopNames[round % loopNames.length]!;
      const attack = attackOf(random, howOf(round));
      const marked = new Marked();
      return leavingNothing(marked, async () => {
        const ranks = scripts.startRanks(size, looping(kind, deadlineOf(attack)), marked.env);
        await Promise.all(ranks.map((one) => one.said('begun')));
        const rank = random.int(size);
        const others = ranks.filter((_, at) => at !== rank);
        let named = others.length;
        await strike(attack, ranks[rank]!, others, (said) => {
          // Of two that wait for one another, and one of them for the stopped one, either may be named: who is no root may
          // be in the next collective while the root still waits.
          if (['messages', 'collectives'].includes(kind) && attack.how === 'stop') {
            for (const one of said) expect(one.code, JSON.stringify(said)).toBe('ERR_TIMEOUT');
            named = said.filter((one) => one.rank === rank).length;
          } else {
            expectNamed(attack, said, { rank, name: `rank ${String(rank)}` });
          }
        });
        return counted(attack, named);
      });
    });
    expect(sums['named']).toBeGreaterThan(0);
  });
});

/** Until so many ranks have said so. */
const begun = (job: LaunchedJob, count: number) =>
  job.until(() => job.stdout.split('begun').length > count);

/** Only long runs have time for them: who had not said hello is missed at the deadline alone. */
describe('ranks that still meet', () => {
  it('name the one that was killed', { timeout: campaignTimeout }, async (context) => {
    if (process.env['GRADLINK_ATTACK_MINUTES'] === undefined) {
      context.skip('each takes a deadline: npm run test:attack -- --minutes N');
    }
    await campaign('kills, meeting', 1, async (random) => {
      const attack = attackOf(random, 'kill', 300);
      const marked = new Marked();
      return leavingNothing(marked, async () => {
        const source = `say('up'); ${looping('collectives', meetingDeadlineMs)}`;
        const ranks = scripts.startRanks(size, source, marked.env);
        await Promise.all(ranks.map((one) => one.said('up')));
        const rank = random.int(size);
        const others = ranks.filter((_, at) => at !== rank);
        await strike(attack, ranks[rank]!, others, (said) => {
          for (const one of said) {
            expect(one.code, JSON.stringify(said)).toMatch(/^ERR_(PEER_LOST|TIMEOUT)$/);
            expect(one.rank, JSON.stringify(said)).toBe(rank);
          }
        });
        return counted(attack, others.length);
      });
    });
  });
});

const workers = 2;
const servers = 2;

/** A worker that pushes and pulls, and now and then waits for the others, until that fails. */
const working = (type: string, timeoutMs: number): string => `
  ${helpers}
  const kv = await KVStore.create('${type}', { timeoutMs: ${String(timeoutMs)} });
  const outs = [filled(100, 0), filled(500_000, 0)];
  report(await outcome((async () => {
    await kv.init(['a', 'b'], [filled(100, 0), filled(500_000, 0)]);
    for (let round = 0; ; round += 1) {
      await kv.pushPull(['a', 'b'], [filled(100, 1), filled(500_000, 1)], outs);
      if (round % 3 === 0) await kv.barrier();
      if (round === 0) say('begun');
    }
  })()));
  await kv.close();
`;

/** Who starts the ranks, and how many kills of a short run. Whom an MPI names first is its affair. */
const launchers = [
  ['gradlink launch', [], 10],
  ...flavours.map((flavour) => [flavour, ['--launcher', 'mpi'], 4] as const),
] as const;

describe('jobs', () => {
  it.for(launchers)(
    'of %s name who was killed, and end',
    { timeout: campaignTimeout },
    async ([name, how, short], context) => {
      const overMpi = name !== 'gradlink launch';
      if (overMpi) mpirunOf(name, context);
      const sums = await campaign(`kills, ${name}`, short, async (random, round) => {
        const kind = random.pick(loopNames);
        const [ranks, more, source] =
          round % 2 === 0
            ? [workers, servers, working('dist_sync', 60_000)]
            : [size, 0, looping(kind, 60_000)];
        const script = scripts.write(`${source} process.exitCode = 1;`);
        const counts = ['-n', String(ranks), '-s', String(more)];
        const job = new LaunchedJob([...how, ...counts, process.execPath, script], {
          ...(overMpi ? { GRADLINK_MPI: name } : {}),
        });
        return leavingNothing(job, async () => {
          // Some are killed while they still meet.
          if (random.chance(0.3)) await job.until(() => job.members().length === ranks + more);
          else await begun(job, ranks);
          const members = [...job.members(), job.self];
          const victim = overMpi
            ? random.pick([...members, ...job.helpers()])
            : members[Math.floor(round / 2) % members.length]!;
          await sleep(random.int(80));
          process.kill(victim.pid, 'SIGKILL');
          const status = await job.ended;
          const what = `${more > 0 ? 'a store' : kind}, ${victim.name}: ${job.stderr}`;
          if (victim.name === 'launcher') expect(status, what).toBeNull();
          else expect(status, what).toBeGreaterThan(0);
          if (overMpi || victim.name === 'launcher') return { kills: 1 };
          expect(status, what).toBe(137);
          expect(job.stderr, what).toMatch(new RegExp(`${victim.name}\\b.* SIGKILL`));
          return { kills: 1, named: 1 };
        });
      });
      expect(sums['kills']).toBeGreaterThan(0);
    },
  );
});

describe('workers and servers', () => {
  it('name the one that was killed or stopped', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('kills, servers', 6, async (random, round) => {
      const type = ['dist_sync', 'dist_async'][round % 2]!;
      const attack = attackOf(random, howOf(round));
      const marked = new Marked();
      return leavingNothing(marked, async () => {
        const source = working(type, deadlineOf(attack));
        const job = startJob(scripts, { workers, servers, serversEnd: true }, source, marked.env);
        await Promise.all(job.workers.map((one) => one.said('begun')));
        const rank = random.int(workers + servers);
        const isServer = rank >= workers;
        const name = isServer ? `server ${String(rank - workers)}` : `worker ${String(rank)}`;
        const victim = [...job.workers, ...job.servers][rank]!;
        const others = job.workers.filter((one) => one !== victim);
        if (isServer) {
          await struckServer(attack, victim, others, { rank, name });
        } else {
          await strike(attack, victim, others, (said) => {
            expectNamed(attack, said, { rank, name });
          });
        }
        for (const { child } of job.servers) child.kill('SIGTERM');
        await Promise.all(job.servers.map((one) => one.ended));
        return counted(attack, others.length);
      });
    });
    expect(sums['named']).toBeGreaterThan(0);
  });
});

/** A server reports nothing when it goes on: workers that have gone are its usual end. */
async function struckServer(
  attack: Attack,
  victim: Parameters<typeof strike>[1],
  others: Parameters<typeof strike>[2],
  blamed: { readonly rank: number; readonly name: string },
): Promise<void> {
  await strike({ ...attack, after: 'SIGKILL' }, victim, others, (said) => {
    expectNamed(attack, said, blamed);
  });
}

const train = [process.execPath, gradlink, 'train', '--model', 'mlp', '--dataset', 'mnist'];
const tiny = ['--image-size', '4', '--batch-size', '4', '--num-warmup-batches', '0'];

describe('training with checkpoints', () => {
  it('goes on from the last whole one', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('kills, training', 1, async (random, round) => {
      const checkpoints = join(folder, `checkpoints-${String(round)}`);
      const kept = ['--checkpoint-dir', checkpoints, '--checkpoint-every', '3'];
      const job = new LaunchedJob(['-n', '2', ...train, ...tiny, ...kept, '--steps', '1000000']);
      const counts = await leavingNothing(job, async () => {
        await job.until(() => completeCheckpoints(checkpoints).length > 0);
        const victim = random.pick([...job.members(), job.self]);
        await sleep(random.int(400));
        process.kill(victim.pid, 'SIGKILL');
        const status = await job.ended;
        if (victim.name === 'launcher') return { kills: 1 };
        expect(status, job.stderr).toBe(137);
        expect(job.stderr).toMatch(new RegExp(`${victim.name}\\b.* SIGKILL`));
        return { kills: 1, named: 1 };
      });
      const last = completeCheckpoints(checkpoints)[0]!.step;
      const steps = ['--steps', String(last + 3)];
      const resumed = new LaunchedJob(['-n', '2', ...train, ...tiny, ...kept, ...steps]);
      await leavingNothing(resumed, async () => {
        expect(await resumed.ended, resumed.stderr).toBe(0);
        return {};
      });
      expect(completeCheckpoints(checkpoints)[0]!.step).toBe(last + 3);
      return { ...counts, resumed: 1 };
    });
    expect(sums['resumed']).toBeGreaterThan(0);
  });
});
