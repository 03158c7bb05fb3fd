// What grows with what: the sizes, the cost at one size, and how fast it may grow.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from 'simple-statistics';
import { gpuDevices } from '../../dist/index.js';
import { answers, runJob } from '../peers/children.js';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const MiB = 2 ** 20;
const late = { timeoutMs: 180_000 };

/**
 * @typedef {object} Measure
 * @property {string} id
 * @property {string} of what costs
 * @property {string} by what it grows with
 * @property {string} unit of the cost
 * @property {'constant' | 'logarithmic' | 'linear'} [wanted] it grows no faster
 * @property {number[]} sizes
 * @property {number} [from] the line is drawn from this size on: below it another thing is measured
 * @property {() => string | undefined} waived
 * @property {(size: number, seconds: number) => Promise<number>} cost
 */

const launched = (launch, program, ...args) => [
  {
    command: process.execPath,
    args: [
      ...[here('../../bench/gradlink.js'), 'launch', ...launch.map(String)],
      ...[process.execPath, here(program), ...args.map(String)],
    ],
  },
];

/** Median seconds that a job prints. */
async function secondsOf(programs) {
  const [{ seconds }] = await runJob(programs, late);
  return median(seconds);
}

const always = () => undefined;
const ranks = [2, 4, 8, 16, 32];
// Ranks with a core each only look at memory; with more ranks than cores each call waits for the scheduler.
const from = availableParallelism() + 1;

const reduced = (bytes) => (size, seconds) =>
  secondsOf(launched(['-n', size], 'rank.js', 'time', bytes, seconds));

/** What the fullest rank sends in one all-reduce where every rank is a host, as Open MPI counts it. */
async function sent(size, bytes, kind = 'calls') {
  const few = await sentBy(size, bytes, 20, kind);
  const many = await sentBy(size, bytes, 60, kind);
  // What starting and ending send is in both.
  const each = many.map(({ messages, sum }, rank) => ({
    messages: (messages - few[rank].messages) / 40,
    bytes: (sum - few[rank].sum) / 40,
  }));
  return {
    messages: Math.max(...each.map((rank) => rank.messages)),
    bytes: Math.max(...each.map((rank) => rank.bytes)),
  };
}

async function sentBy(size, bytes, calls, kind) {
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-growth-'));
  try {
    const counted = {
      pml_monitoring_enable: '2',
      pml_monitoring_enable_output: '3',
      pml_monitoring_filename: join(folder, 'sent'),
    };
    await runJob(
      [
        {
          command: 'mpirun.openmpi',
          args: [
            ...['--allow-run-as-root', '--oversubscribe', '-n', String(size)],
            ...Object.entries(counted).flatMap(([name, value]) => ['--mca', name, value]),
            ...[process.execPath, here('rank.js'), kind, String(bytes), String(calls)],
          ],
          env: {
            GRADLINK_TRANSPORT: 'mpi',
            GRADLINK_NUM_WORKERS: String(size),
            GRADLINK_RANKS_PER_NODE: '1',
          },
        },
      ],
      late,
    );
    const files = readdirSync(folder).filter((name) => name.endsWith('.prof'));
    if (files.length !== size) {
      throw new Error(`expected counts of ${size} ranks from Open MPI, got ${files.length}`);
    }
    const totals = new Map(
      files.map((name) => [
        Number(/\.(\d+)\.prof$/.exec(name)[1]),
        countsIn(readFileSync(join(folder, name), 'utf8')),
      ]),
    );
    return Array.from({ length: size }, (_, rank) => totals.get(rank));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Totals of `E  RANK  PEER  BYTES bytes  MESSAGES msgs sent ...`, a line a peer. */
export function countsIn(text) {
  const lines = [...text.matchAll(/^[EI]\t\d+\t\d+\t(\d+) bytes\t(\d+) msgs sent/gm)];
  const total = (column) => lines.reduce((sum, found) => sum + Number(found[column]), 0);
  return { sum: total(1), messages: total(2) };
}

const withOpenMpi = () =>
  answers('mpirun.openmpi')
    ? undefined
    : 'mpirun.openmpi not installed (apt-get install openmpi-bin libopenmpi-dev)';

/** Of a rank each, where NCCL is to take them. */
function withGpus() {
  const missing = withOpenMpi();
  if (missing !== undefined) return missing;
  try {
    const count = gpuDevices().length;
    return count < 64 ? `64 GPUs needed, ${count} here: the stand-ins have them` : undefined;
  } catch (error) {
    return error.message;
  }
}

/** @type {Measure[]} */
export const measures = [
  {
    id: 'ranks-small',
    of: 'all-reduce of 8 bytes, one host',
    by: 'ranks',
    unit: 's',
    // Each of its steps waits for a core, and the ranks that wait for one grow in number: no promise.
    sizes: ranks,
    from,
    waived: always,
    cost: reduced(8),
  },
  {
    id: 'ranks-cpu',
    of: 'CPU time of a rank, all-reduce of 8 bytes, one host',
    by: 'ranks',
    unit: 's',
    wanted: 'linear',
    sizes: ranks,
    from,
    waived: always,
    // As many calls of all sizes: what a process does once would grow with fewer.
    cost: (size, seconds) =>
      secondsOf(launched(['-n', size], 'rank.js', 'calls', 8, Math.ceil(seconds * 1e4))),
  },
  {
    id: 'ranks-data',
    // More than caches hold, whatever the number of ranks.
    of: 'all-reduce of 16 MiB, one host',
    by: 'ranks',
    unit: 's',
    wanted: 'linear',
    sizes: ranks,
    from,
    waived: always,
    cost: reduced(16 * MiB),
  },
  {
    id: 'hosts-small',
    of: 'messages of a host, all-reduce of 8 bytes',
    by: 'simulated hosts',
    unit: 'messages',
    wanted: 'logarithmic',
    sizes: ranks,
    waived: withOpenMpi,
    cost: async (size) => (await sent(size, 8)).messages,
  },
  {
    id: 'hosts-data',
    of: 'bytes sent by a host, all-reduce of 1 MiB',
    by: 'simulated hosts',
    unit: 'bytes',
    wanted: 'linear',
    sizes: ranks,
    waived: withOpenMpi,
    cost: async (size) => (await sent(size, MiB)).bytes,
  },
  {
    id: 'gpus-agree',
    of: 'messages of a rank that agrees on an all-reduce of GPU memory',
    by: 'simulated hosts',
    unit: 'messages',
    wanted: 'logarithmic',
    sizes: [...ranks, 64],
    waived: withGpus,
    cost: async (size) => (await sent(size, 8, 'gpu-calls')).messages,
  },
  {
    id: 'meet',
    of: "opening of a world, one host, a rank's part",
    by: 'ranks',
    unit: 's',
    wanted: 'linear',
    sizes: [...ranks, 64],
    from,
    waived: always,
    // Ranks that share cores open one after the other: a rank's part may grow as the ranks it meets.
    cost: async (size, seconds) => {
      const times = Math.max(5, Math.round(seconds * 20));
      return (await secondsOf(launched(['-n', size], 'rank.js', 'meet', times))) / size;
    },
  },
  {
    id: 'meet-tcp',
    of: "opening of a world over TCP, a rank's part",
    by: 'ranks',
    unit: 's',
    wanted: 'linear',
    sizes: [...ranks, 64],
    from,
    waived: always,
    cost: async (size) => (await secondsOf(launched(['-n', size], 'rank.js', 'meet-tcp'))) / size,
  },
  {
    id: 'keys',
    of: 'push and pull of all keys of 4 KiB, dist_sync, one worker',
    by: 'keys',
    unit: 's',
    wanted: 'linear',
    sizes: [1, 10, 100, 1000, 10_000],
    waived: always,
    cost: (size, seconds) =>
      secondsOf(
        launched(
          ['-n', 1, '-s', 1],
          'worker.js',
          ...[size, 4096, Math.max(5, Math.min(200, Math.round((seconds * 5e4) / size)))],
        ),
      ),
  },
  {
    id: 'workers',
    of: 'push and pull of 16 MiB, dist_sync, one server',
    by: 'workers of a server',
    unit: 's',
    wanted: 'linear',
    sizes: [1, 2, 4, 8, 16],
    // The server takes a core too.
    from: from - 1,
    waived: always,
    cost: (size, seconds) =>
      secondsOf(
        launched(
          ['-n', size, '-s', 1],
          'worker.js',
          ...[1, 16 * MiB, Math.max(5, Math.round((seconds * 200) / size))],
        ),
      ),
  },
  {
    id: 'bucket',
    of: 'allReduceMany of 4 MiB together, 2 ranks',
    by: 'arrays in a bucket',
    unit: 's',
    wanted: 'linear',
    sizes: [1, 8, 64, 512, 4096],
    waived: always,
    cost: (size, seconds) =>
      secondsOf(launched(['-n', 2], 'rank.js', 'bucket', 4 * MiB, size, seconds)),
  },
];
