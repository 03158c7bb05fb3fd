// What is measured: cases, in each of which the contenders take turns, and how much of each is one run.
import { gloo, messages, neighbors, plain, serving, shared } from './contenders.js';
import { mpich, mpiMessages, openMpi, openMpiXhc, ucc } from './mpis.js';
import { osu } from './osu.js';
import { local, measured, memory, neighborsLoop, overhead, storeLoop } from './ours.js';
import { overMpis } from './over-mpi.js';
import { distSync, distSyncShared, psLite } from './stores.js';

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * @typedef {import('./contenders.js').Contender} Contender
 * @typedef {object} Case
 * @property {string} name
 * @property {number} ranks
 * @property {number[]} sizes of one rank's array, in bytes
 * @property {Contender[]} contenders
 * @property {number} [rounds] of fewer rounds than the run has
 * @property {boolean} [tuned] Open MPI at its best tuned takes part
 *
 * @typedef {{rounds: number, seconds: number, tuningSeconds: number | undefined, cases: Case[]}} Plan seconds: about how long
 *   each size and place is sampled
 */

const two = [8, 64 * KiB, 256 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB];
const four = [8, MiB, 16 * MiB, 64 * MiB];
const inOneProcess = [4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB];
const ofMessages = [8, KiB, 8 * KiB, 64 * KiB, MiB, 4 * MiB];
const ofStores = [4 * KiB, 64 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB];

// allocShared is about staging, which small arrays do not know.
const staged = { ...shared, sizesOf: (sizes) => sizes.filter((bytes) => bytes >= MiB) };

const ofStore = [distSync, distSyncShared, psLite];

// With more ranks than cores only their waiting would show of MPI's transports, and Gloo takes a second for the largest.
const ofTwo = [plain, staged, openMpi(), openMpiXhc, mpich, ucc, ...serving, osu, gloo];
const ofFour = [plain, staged, openMpi(), openMpiXhc, mpich, ucc, osu];

/** @type {Plan} */
const full = {
  rounds: 3,
  seconds: 0.12,
  tuningSeconds: 0.03,
  cases: [
    { name: 'memory', ranks: 1, sizes: [64 * MiB], contenders: [memory], rounds: 1 },
    { name: 'local-2', ranks: 2, sizes: inOneProcess, contenders: [local] },
    { name: 'local-4', ranks: 4, sizes: inOneProcess, contenders: [local] },
    { name: 'processes-2', ranks: 2, sizes: two, contenders: ofTwo, tuned: true },
    { name: 'over-mpi-2', ranks: 2, sizes: two, contenders: overMpis },
    { name: 'processes-4', ranks: 4, sizes: four, contenders: ofFour },
    {
      name: 'neighbors-4',
      ranks: 4,
      sizes: four.slice(1),
      contenders: [...neighbors, neighborsLoop],
    },
    { name: 'messages-2', ranks: 2, sizes: ofMessages, contenders: [messages, ...mpiMessages] },
    { name: 'stores', ranks: 1, sizes: ofStores, contenders: ofStore },
    { name: 'javascript', ranks: 1, sizes: [8], contenders: [overhead] },
    { name: 'measure', ranks: 1, sizes: [MiB], contenders: [...measured, storeLoop], rounds: 1 },
  ],
};

const sizesOfTwo = [8, 64 * KiB, MiB];

/** Every path once, as quickly as it goes: for the tests. @type {Plan} */
const quick = {
  rounds: 1,
  seconds: 0.005,
  tuningSeconds: undefined,
  cases: [
    { name: 'memory', ranks: 1, sizes: [MiB], contenders: [memory] },
    { name: 'local-2', ranks: 2, sizes: [MiB], contenders: [local] },
    { name: 'local-4', ranks: 4, sizes: [MiB], contenders: [local] },
    { name: 'processes-2', ranks: 2, sizes: sizesOfTwo, contenders: ofTwo },
    { name: 'over-mpi-2', ranks: 2, sizes: sizesOfTwo, contenders: overMpis },
    { name: 'messages-2', ranks: 2, sizes: sizesOfTwo, contenders: [messages, ...mpiMessages] },
    { name: 'stores', ranks: 1, sizes: [64 * KiB, MiB], contenders: ofStore },
    { name: 'javascript', ranks: 1, sizes: [8], contenders: [overhead] },
  ],
};

export const plans = { full, quick };

/** What `--case` is held against: the case and who is measured in it. */
export const nameOf = (wanted, contender) => `${wanted.name}/${contender.id}`;

/** The contender that stands for all of Open MPI's algorithms. */
export const tunedId = 'openmpi-tuned';

/**
 * The part of a plan whose names match.
 * @param {Plan} plan
 * @param {RegExp | undefined} pattern
 * @returns {Plan}
 */
export function chosen(plan, pattern) {
  if (pattern === undefined) return plan;
  const cases = plan.cases.map((wanted) => ({
    ...wanted,
    contenders: wanted.contenders.filter((one) => pattern.test(nameOf(wanted, one))),
    tuned: wanted.tuned === true && pattern.test(nameOf(wanted, { id: tunedId })),
  }));
  return {
    ...plan,
    cases: cases.filter(({ contenders, tuned }) => contenders.length > 0 || tuned),
  };
}

export function namesOf(plan) {
  return plan.cases.flatMap((wanted) => [
    ...wanted.contenders.map((one) => nameOf(wanted, one)),
    ...(wanted.tuned === true ? [nameOf(wanted, { id: tunedId })] : []),
  ]);
}
