// Turns contenders, cases and rounds into records. Contenders take turns within a round, so that what changes on the machine
// meanwhile (heat, a neighbour on the host) falls on all of them alike.
import { runJob } from './children.js';
import { gloo, mpich, neighbors, openMpi, openMpiTunings, plain, shared } from './contenders.js';
import { osu } from './osu.js';
import { overMpis } from './over-mpi.js';
import { distSync, psLite } from './stores.js';

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * @typedef {{contender: string, ranks: number, bytes: number, place: 'in' | 'out' | 'store' | 'pairs', seconds: number[], wrong: number}} Record
 * @typedef {{contender: string, case?: string, reason: string}} Waiver
 */

const full = {
  rounds: 3,
  seconds: 0.12,
  // Ranks, and sizes of one rank's array in bytes.
  cases: [
    { ranks: 2, sizes: [8, 64 * KiB, 256 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB] },
    { ranks: 4, sizes: [8, MiB, 16 * MiB, 64 * MiB] },
  ],
  tuning: { seconds: 0.03 },
  // Of one worker and one server: sizes of one array in bytes.
  stores: [64 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB],
};

/** Every path once, as quickly as it goes: for the tests. */
const quick = {
  rounds: 1,
  seconds: 0.005,
  cases: [{ ranks: 2, sizes: [8, 64 * KiB, MiB] }],
  tuning: undefined,
  stores: [64 * KiB, MiB],
};

export const plans = { full, quick };

// allocShared is about staging, which small arrays do not know; MPICH with more ranks than cores takes 10 ms and more
// for 8 bytes, and Gloo a second for the largest.
const restricted = {
  'gradlink-shared': ({ sizes }) => sizes.filter((bytes) => bytes >= MiB),
  gloo: ({ sizes, ranks }) => (ranks > 2 ? [] : sizes),
};

// With more ranks than cores MPI's own waiting is all that shows.
const twoRanks = ({ sizes, ranks }) => (ranks > 2 ? [] : sizes);
for (const { id } of overMpis) restricted[id] = twoRanks;

// What they are measured against: the same engine's all-reduce, whose sizes these are.
for (const { id } of neighbors) {
  restricted[id] = ({ sizes, ranks }) => (ranks > 2 ? sizes.filter((bytes) => bytes >= MiB) : []);
}

const sizesOf = (contender, wanted) => restricted[contender.id]?.(wanted) ?? wanted.sizes;

/**
 * @param {typeof full} plan
 * @param {(line: string) => void} say
 * @returns {Promise<{records: Record[], waivers: Waiver[], tuned: {ranks: number, bytes: number, place: string, label: string}[]}>}
 */
export async function collectPeers(plan, say) {
  const waivers = [];
  const records = [];
  const present = (contender) => {
    const reason = contender.waived();
    if (reason !== undefined) waivers.push({ contender: contender.label, reason });
    return reason === undefined;
  };
  const contenders = [plain, shared, openMpi(), mpich, ...overMpis, ...neighbors, osu, gloo].filter(
    present,
  );
  const stores = [distSync, psLite].filter(present);

  const measure = async (contender, wanted, id = contender.id) => {
    say(`${contender.label}, ${wanted.ranks} ranks`);
    try {
      const lines = await runJob(contender.programs(wanted), { timeoutMs: 120_000 });
      records.push(...lines.map((line) => ({ contender: id, ranks: wanted.ranks, ...line })));
    } catch (error) {
      const what = `${wanted.ranks} ranks, ${wanted.sizes.join(', ')} bytes`;
      waivers.push({ contender: contender.label, case: what, reason: `failed: ${error.message}` });
    }
  };

  const tuned = contenders.some(({ id }) => id === 'openmpi')
    ? await findTuned(plan, measure, records)
    : [];
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const { ranks, sizes } of plan.cases) {
      for (const contender of contenders) {
        const wanted = { ranks, sizes, places: contender.places, seconds: plan.seconds };
        const chosen = sizesOf(contender, wanted);
        if (chosen.length > 0) await measure(contender, { ...wanted, sizes: chosen });
      }
      for (const job of jobsOf(tuned.filter((best) => best.ranks === ranks))) {
        await measure(
          job.contender,
          { ranks, sizes: job.sizes, places: [job.place], seconds: plan.seconds },
          'openmpi-tuned',
        );
      }
    }
    for (const contender of stores) {
      const { places, oneSize } = contender;
      for (const sizes of oneSize === true ? plan.stores.map((size) => [size]) : [plan.stores]) {
        await measure(contender, { ranks: 1, sizes, places, seconds: plan.seconds });
      }
    }
  }
  return {
    records,
    waivers,
    tuned: tuned.map(({ contender, ...best }) => ({ ...best, label: contender.label })),
  };
}

/** The best of Open MPI's algorithms for each size and place of two ranks, by a short run of each. */
async function findTuned(plan, measure, records) {
  if (plan.tuning === undefined) return [];
  const best = new Map();
  const { ranks, sizes } = plan.cases[0];
  for (const contender of openMpiTunings()) {
    const before = records.length;
    const wanted = { ranks, sizes, places: contender.places, seconds: plan.tuning.seconds };
    await measure(contender, wanted);
    // Trials only choose; what is reported is measured in the rounds, beside the others.
    for (const { bytes, place, seconds } of records.splice(before)) {
      const fastest = Math.min(...seconds);
      const key = `${bytes} ${place}`;
      if (fastest < (best.get(key)?.fastest ?? Infinity)) {
        best.set(key, { ranks, bytes, place, contender, fastest });
      }
    }
  }
  return [...best.values()];
}

/** One job for each algorithm and place, with all the sizes it won. */
function jobsOf(tuned) {
  const jobs = new Map();
  for (const { contender, place, bytes } of tuned) {
    const key = `${contender.id} ${place}`;
    if (!jobs.has(key)) jobs.set(key, { contender, place, sizes: [] });
    jobs.get(key).sizes.push(bytes);
  }
  return jobs.values();
}
