// Worker threads that are terminated in the middle of calls, and arrays that are transferred while calls use them: the
// process goes on, survivors are told who is gone, and nobody else's memory is touched.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import { loopNames, sourceOf } from './support/loops.js';
import type { Random } from './support/random.js';
import { transfers } from './support/transfers.js';

let scripts: Scripts;
let rankScript = '';
beforeAll(() => {
  scripts = new Scripts();
  rankScript = scripts.write(rank);
});
afterAll(() => scripts.remove());

const size = 3;
/** Beside the loops: ranks that meet and part again and again, and threads with a store or a group of their own. */
const alone = ['joining', 'store', 'group'] as const;
const kinds = [...loopNames, ...alone];

/** Says `in` once it is at its calls, and what these failed with. */
const rank = `
  import { parentPort, workerData } from 'node:worker_threads';
  const { kind, name, rank, size, threads } = workerData;
  const begun = () => parentPort.postMessage({ in: true });
  // Who waits for one that was told of the loss before it came again learns nothing until its deadline.
  const timeoutMs = ['joining', 'split'].includes(kind) ? 4000 : 30_000;
  const place = (name) => ({ name, rank, size, threads, timeoutMs });
  const loops = {
    ${loopNames.map((one) => `${JSON.stringify(one)}: ${sourceOf(one, 'begun();')},`).join('\n')}
  };
  const own = {
    async joining() {
      for (let turns = 0; ; turns += 1) {
        const comm = await Communicator.join(place(name + ' ' + turns));
        await comm.barrier();
        if (turns === 0) begun();
        await comm.close();
      }
    },
    async store() {
      const kv = await KVStore.create('local', { devices: 2 });
      const values = [1, 2].map(() => new Float32Array(200_000).fill(1));
      await kv.init('w', values[0]);
      begun();
      for (;;) await Promise.all([kv.pushPull('w', values, values), kv.pull('w', values.map((one) => one.slice()))]);
    },
    async group() {
      const group = Communicator.local(3);
      const [a, b] = await Communicator.local(2).openRanks();
      begun();
      for (;;) {
        const data = [1, 2, 3].map(() => new Float32Array(30_000));
        const shared = group.allocShared('float32', 3000);
        await Promise.all([group.allReduce(data), a.allReduce(data[0].slice()), b.allReduce(data[1].slice())]);
        if (shared.length !== 3000) throw new Error('shared');
      }
    },
  };
  const run = own[kind] ?? (async () => await loops[kind](await Communicator.join(place(name))));
  parentPort.postMessage({ ended: await run().catch(plain) });
  setInterval(() => undefined, 1e6);
`;

/** One termination: of which rank, at what, how long after all have begun. */
interface Plan {
  readonly kind: string;
  readonly victim: number;
  readonly threads: boolean;
  readonly delayMs: number;
  readonly turns: number;
}

function planned(random: Random, kind: string): Plan {
  return {
    kind,
    victim: random.int(size),
    threads: random.chance(0.5),
    delayMs: random.int(12),
    turns: random.int(20),
  };
}

/** Terminates by the plans, judges what the others say, and leaves as it was told, with ranks at their calls. */
const main = (plans: readonly Plan[], leave: string): string => `
  import { Worker } from 'node:worker_threads';
  const sevens = Array.from({ length: 6 }, (_, i) => new Float32Array(30_000 * (i + 1)).fill(7));
  const start = (plan, at) => Array.from({ length: ${size} }, (_, rank) => {
    const name = 'round ' + at;
    const worker = new Worker(${JSON.stringify(rankScript)}, { workerData: { ...plan, name, rank, size: ${size} } });
    worker.inside = new Promise((resolve, reject) => {
      worker.on('message', (message) => { if (message.in) resolve(); });
      worker.on('error', reject);
    });
    worker.ended = new Promise((resolve, reject) => {
      worker.on('message', (message) => { if (message.ended) resolve(message.ended); });
      worker.on('error', reject);
    });
    worker.ended.catch(() => undefined);
    return worker;
  });
  const moment = async ({ delayMs, turns }) => {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    for (let left = turns; left > 0; left -= 1) await new Promise(setImmediate);
  };
  for (const [at, plan] of ${JSON.stringify(plans)}.entries()) {
    say('plan ' + JSON.stringify(plan));
    const workers = start(plan, at);
    const early = plan.kind === 'joining' && plan.turns % 2 === 0;
    // Some are terminated before they have met.
    if (!early) await Promise.all(workers.map((one) => one.inside));
    await moment(plan);
    await workers[plan.victim].terminate();
    const left = workers.filter((_, rank) => rank !== plan.victim);
    if (plan.kind === 'store' || plan.kind === 'group') {
      report({ plan, ended: [] });
    } else if (early) {
      report({ plan, ended: [] });
    } else {
      report({ plan, ended: await Promise.all(left.map((one) => one.ended)) });
    }
    if (!sevens.every((one) => one.every((x) => x === 7))) report({ plan, harmed: true });
    await Promise.all(left.map((one) => one.terminate()));
  }
  const { plan, how } = ${leave};
  const workers = start(plan, 'last');
  await Promise.all(workers.map((one) => one.inside));
  await moment(plan);
  if (how === 'exit') process.exit(7);
  if (how === 'throw') setImmediate(() => { throw new Error('oops'); });
  if (how === 'end') for (const worker of workers) worker.unref();
`;

interface Told {
  readonly plan: Plan;
  readonly ended: readonly { code?: string; rank?: number; message: string }[];
  readonly harmed?: true;
}

const statuses = { exit: 7, throw: 1, end: 0 } as const;

/** Of a meeting: the lost rank, where it had come, else who did not come. */
function judge({ plan, ended, harmed }: Told): void {
  const shown = `${JSON.stringify(plan)}: ${JSON.stringify(ended)}`;
  expect(harmed, shown).toBeUndefined();
  if (plan.kind === 'joining') {
    for (const { code } of ended) expect(['ERR_PEER_LOST', 'ERR_TIMEOUT'], shown).toContain(code);
    return;
  }
  for (const one of ended) {
    expect(one, shown).toMatchObject({ rank: plan.victim });
    // Who had not come to the meeting of the parts is missed there at the deadline only.
    if (plan.kind === 'split' && one.code === 'ERR_TIMEOUT') continue;
    expect(one, shown).toMatchObject({ code: 'ERR_PEER_LOST' });
    expect(one.message, shown).toContain(`rank ${String(plan.victim)}`);
  }
}

describe('terminations', () => {
  it('of threads at calls of every kind', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('terminations', 6, async (random, round) => {
      // Each kind in turn, whatever the number of rounds.
      const chosen = [0, 1, 2, 3].map((at) => kinds[(4 * round + at) % kinds.length]!);
      const plans = chosen.map((kind) => planned(random, kind));
      const how = random.pick(['exit', 'throw', 'end'] as const);
      const last = planned(random, random.pick(loopNames));
      const leave = JSON.stringify({ plan: last, how });
      const ended = await scripts.run(main(plans, leave));
      const shown = `${how} at ${JSON.stringify(last)}: ${ended.stdout}${ended.stderr}`;
      expect(ended, shown).toMatchObject({ code: statuses[how], signal: null });
      const told = ended.reports as readonly Told[];
      expect(told, shown).toHaveLength(plans.length);
      told.forEach(judge);
      const named = told.flatMap(({ plan, ended: all }) =>
        all.filter(({ rank: lost }) => lost === plan.victim),
      );
      return { terminations: plans.length + (how === 'end' ? 0 : size), named: named.length };
    });
    expect(sums['named']).toBeGreaterThan(0);
  });
});

describe('transfers', () => {
  it('of arrays that calls use', { timeout: campaignTimeout }, async () => {
    const sums = await campaign('transfers', 4, async (random) => {
      const ended = await scripts.run(transfers(random, 12));
      const [counts] = ended.reports as { transfers: number; refused: number; harmed: string[] }[];
      expect(ended, ended.stdout + ended.stderr).toMatchObject(well);
      expect(counts?.harmed, ended.stdout).toEqual([]);
      return { transfers: counts?.transfers ?? 0, refused: counts?.refused ?? 0 };
    });
    expect(sums['transfers']).toBeGreaterThan(0);
  });
});
