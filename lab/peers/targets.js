// What is to be reached, one row a target, judged on medians of the run that is handed over. Every ratio is the peer's time
// over ours (above 1: we are faster); of several sizes or places the worst one counts.
import { median } from 'simple-statistics';

const KiB = 1024;
const MiB = 1024 * KiB;

/** Median seconds of a contender at a size, or undefined where it was not measured. */
export function medianOf(records, contender, ranks, bytes, place) {
  const samples = records
    .filter((r) => r.contender === contender && r.ranks === ranks)
    .filter((r) => r.bytes === bytes && r.place === place)
    .flatMap((r) => r.seconds);
  return samples.length > 0 ? median(samples) : undefined;
}

export function sizeText(bytes) {
  if (bytes >= MiB) return `${bytes / MiB} MiB`;
  if (bytes >= KiB) return `${bytes / KiB} KiB`;
  return `${bytes} B`;
}

export const placeText = {
  in: 'in place',
  out: 'out of place',
  store: 'push and pull',
  latency: 'latency',
  bandwidth: 'bandwidth',
};

/** Sizes of ours between two, ascending. */
function sizesBetween(records, contender, ranks, from, to) {
  const sizes = records
    .filter((r) => r.contender === contender && r.ranks === ranks)
    .map((r) => r.bytes)
    .filter((bytes) => bytes >= from && bytes <= to);
  return [...new Set(sizes)].sort((a, b) => a - b);
}

/** The worst ratio of a peer's time to ours over sizes and places. */
function worstRatio(records, { ours, peer, ranks, from, to = from, places = ['in', 'out'] }) {
  let worst;
  for (const bytes of sizesBetween(records, ours, ranks, from, to)) {
    for (const place of places) {
      const mine = medianOf(records, ours, ranks, bytes, place);
      const theirs = peer(records, ranks, bytes, place);
      if (mine === undefined || theirs === undefined) continue;
      const value = theirs / mine;
      if (worst === undefined || value < worst.value) {
        worst = { value, detail: `${sizeText(bytes)} ${placeText[place]}` };
      }
    }
  }
  return worst;
}

const contender = (id) => (records, ranks, bytes, place) =>
  medianOf(records, id, ranks, bytes, place);

/** The fastest of these that were measured. */
function fastestOf(ids, records, ranks, bytes, place) {
  const all = ids
    .map((id) => medianOf(records, id, ranks, bytes, place))
    .filter((seconds) => seconds !== undefined);
  return all.length === 0 ? undefined : Math.min(...all);
}

const tunings = ['openmpi-tuned', 'openmpi-xhc'];

/** Best tuned: the winner of the tuning runs or the newer Open MPI's, or the defaults where nothing beats them. */
const bestTuned = (...of) =>
  fastestOf(tunings, ...of) === undefined ? undefined : fastestOf(['openmpi', ...tunings], ...of);

const peers = ['openmpi', ...tunings, 'mpich', 'ucc', 'deepspeed', 'sglang', 'vllm', 'gloo'];
const fastest = (...of) => fastestOf(peers, ...of);

/** Our MPI communicator beside the MPI it runs on. */
const overMpi = (mpi, name) => {
  const pair = (ours, from, to = from) => ({ ours, peer: contender(mpi), ranks: 2, from, to });
  const over = `gradlink-${mpi}`;
  return [
    {
      target: `2 processes over ${name}, 4 MiB to 64 MiB: plain MPI_Allreduce over ours`,
      wanted: 2.5,
      of: pair(over, 4 * MiB, 64 * MiB),
    },
    {
      target: `2 processes over ${name}, 64 KiB to 1 MiB: plain MPI_Allreduce over ours`,
      wanted: 1.5,
      of: pair(over, 64 * KiB, MiB),
    },
    {
      target: `2 processes over ${name}, 8 bytes: plain MPI_Allreduce over ours`,
      wanted: 1,
      of: pair(over, 8),
    },
    {
      target: `2 processes over ${name}, a host for every rank: plain MPI_Allreduce over ours`,
      wanted: 0.95,
      of: pair(`${over}-flat`, 8, 64 * MiB),
    },
  ];
};

/** The all-reduce, as much shorter or longer as bare loops say that the average is: its bound. */
const boundOfNeighbors = (memory) => (records, ranks, bytes, place) => {
  const [all, bareAll, bare] = [
    `gradlink-${memory}-calls`,
    `bare-${memory}-calls`,
    `bare-${memory}-neighbors`,
  ].map((id) => medianOf(records, id, ranks, bytes, place));
  return [all, bareAll, bare].includes(undefined) ? undefined : (all * bare) / bareAll;
};

/** Averaging with one neighbour a call, 4 processes. */
const neighborTargets = (memory, label) => {
  const of = { ours: `gradlink-${memory}-neighbors`, ranks: 4, from: MiB, to: 64 * MiB };
  return [
    {
      target: `4 processes, ${label}, one neighbour, 1 MiB to 64 MiB: our all-reduce over it, over the same of bare loops`,
      wanted: 0.95,
      of: { ...of, peer: boundOfNeighbors(memory) },
    },
    {
      target: `4 processes, ${label}, one neighbour, 1 MiB to 64 MiB: MPI_Neighbor_alltoall and a sum in C over it`,
      wanted: 2,
      of: { ...of, peer: contender('openmpi-neighbors') },
    },
  ];
};

/** Messages between two processes. */
const messageTargets = [
  ['openmpi', 'Open MPI'],
  ['mpich', 'MPICH'],
].map(([mpi, name]) => ({
  target: `2 processes, messages of 8 bytes to 4 MiB: ${name} over ours`,
  wanted: 1,
  of: {
    ours: 'gradlink-messages',
    peer: contender(`${mpi}-messages`),
    ranks: 2,
    from: 8,
    to: 4 * MiB,
  },
  places: ['latency', 'bandwidth'],
}));

const comparisons = [
  ...messageTargets,
  ...neighborTargets('plain', 'plain arrays'),
  ...neighborTargets('shared', 'allocShared'),
  ...overMpi('openmpi', 'Open MPI'),
  ...overMpi('mpich', 'MPICH'),
  {
    target: 'local(4), in place, 16 MiB to 256 MiB: time of the k-reads-k-writes loop over ours',
    wanted: 0.85,
    of: { ours: 'local', peer: contender('loop'), ranks: 4, from: 16 * MiB, to: 256 * MiB },
    places: ['in'],
  },
  {
    target: 'local(4), in place, 16 MiB to 64 MiB: Open MPI with 4 ranks over ours',
    wanted: 8,
    of: { ours: 'local', peer: contender('openmpi'), ranks: 4, from: 16 * MiB, to: 64 * MiB },
    places: ['in'],
  },
  {
    target: '2 processes, plain arrays, 4 MiB to 64 MiB, out of place: Open MPI over ours',
    wanted: 2.5,
    of: {
      ours: 'gradlink-plain',
      peer: contender('openmpi'),
      ranks: 2,
      from: 4 * MiB,
      to: 64 * MiB,
    },
    places: ['out'],
  },
  {
    target: '2 processes, plain arrays, 4 MiB to 64 MiB, in place: Open MPI over ours',
    wanted: 2,
    of: {
      ours: 'gradlink-plain',
      peer: contender('openmpi'),
      ranks: 2,
      from: 4 * MiB,
      to: 64 * MiB,
    },
    places: ['in'],
  },
  {
    target: '2 processes, plain arrays, 64 KiB to 64 MiB: Open MPI at its best tuned over ours',
    wanted: 1.5,
    of: { ours: 'gradlink-plain', peer: bestTuned, ranks: 2, from: 64 * KiB, to: 64 * MiB },
  },
  {
    target: '2 processes, plain arrays, 8 bytes to 64 MiB: the fastest of all peers over ours',
    wanted: 1,
    of: { ours: 'gradlink-plain', peer: fastest, ranks: 2, from: 8, to: 64 * MiB },
  },
  {
    target: '2 processes, plain arrays, 64 KiB to 64 MiB: the fastest of all peers over ours',
    wanted: 1.5,
    of: { ours: 'gradlink-plain', peer: fastest, ranks: 2, from: 64 * KiB, to: 64 * MiB },
  },
  {
    target: '2 processes, plain arrays, 64 KiB to 1 MiB: Open MPI over ours',
    wanted: 2,
    of: { ours: 'gradlink-plain', peer: contender('openmpi'), ranks: 2, from: 64 * KiB, to: MiB },
  },
  {
    target: '2 processes, 8 bytes, native loop: Open MPI over ours',
    wanted: 2,
    of: { ours: 'gradlink-plain', peer: contender('openmpi'), ranks: 2, from: 8 },
  },
  {
    target: '4 processes, plain arrays, 64 MiB: Open MPI over ours',
    wanted: 4,
    of: { ours: 'gradlink-plain', peer: contender('openmpi'), ranks: 4, from: 64 * MiB },
  },
  {
    target: '4 processes, 8 bytes: Open MPI over ours',
    wanted: 1,
    of: { ours: 'gradlink-plain', peer: contender('openmpi'), ranks: 4, from: 8 },
  },
  {
    target: '2 processes, allocShared, 4 MiB to 64 MiB: local(2) over ours',
    wanted: 0.8,
    of: {
      ours: 'gradlink-shared',
      peer: contender('local'),
      ranks: 2,
      from: 4 * MiB,
      to: 64 * MiB,
    },
  },
  {
    target: 'dist_sync, 1 worker and 1 server, 64 KiB to 64 MiB: ps-lite over ours',
    wanted: 8,
    of: {
      ours: 'dist_sync',
      peer: contender('ps-lite'),
      ranks: 1,
      from: 64 * KiB,
      to: 64 * MiB,
    },
    places: ['store'],
  },
  {
    target: "dist_sync, the store's arrays, 64 KiB to 64 MiB: ps-lite over ours",
    wanted: 12,
    of: {
      ours: 'dist_sync-shared',
      peer: contender('ps-lite'),
      ranks: 1,
      from: 64 * KiB,
      to: 64 * MiB,
    },
    places: ['store'],
  },
];

/** The copy of the machine in bytes read and written a second: the best of the loops on all threads. */
function copyRate({ memory = [] }) {
  const rates = memory
    .filter(({ name }) => name === 'copy')
    .map(({ movedBytes, seconds }) => movedBytes / median(seconds));
  return rates.length > 0 ? Math.max(...rates) : undefined;
}

/** A push reads and writes its bytes, a pull too. */
const storeBound = (run, bytes) => (4 * bytes) / copyRate(run);

/** The worst share of that bound. */
const storeShare = (ours) => (run) => {
  if (copyRate(run) === undefined) return undefined;
  const bound = (_, __, bytes) => storeBound(run, bytes);
  return worstRatio(run.records, { ...storeSizes, ours, peer: bound })?.value;
};
const storeSizes = { ranks: 1, from: MiB, to: 64 * MiB, places: ['store'] };

const limits = [
  {
    target: 'dist_sync, 1 worker and 1 server, 1 MiB to 64 MiB: share of the memory bound',
    wanted: 0.5,
    value: storeShare('dist_sync'),
  },
  {
    target: "dist_sync, the store's arrays, 1 MiB to 64 MiB: share of the memory bound",
    wanted: 0.8,
    value: storeShare('dist_sync-shared'),
  },
  {
    target: 'dist_sync, 1 worker, 4 KiB arrays: pairs of push and pull a second',
    wanted: 50_000,
    value: ({ records }) => inverse(medianOf(records, 'dist_sync', 1, 4 * KiB, 'pairs')),
  },
  {
    target:
      'device store, resnet-152 on 4 CPU devices: a bare loop of the same reads and writes over it',
    wanted: 0.95,
    value: ({ store }) => store.loop,
  },
  {
    target: 'measure, resnet-50 on 4 CPU devices: share of the bytes-that-must-move bound',
    wanted: 0.75,
    value: ({ store }) => store.resnet,
  },
  {
    target: 'measure, inception-v3 on 4 CPU devices: share of the bytes-that-must-move bound',
    wanted: 0.65,
    value: ({ store }) => store['inception-v3'],
  },
  {
    target: 'allReduceSync of 8 bytes over local(1), microseconds',
    below: 1,
    value: ({ overhead }) => scaled(overhead.syncSeconds, 1e6),
  },
  {
    target: 'awaited allReduce of 8 bytes over local(1), microseconds',
    below: 30,
    value: ({ overhead }) => scaled(overhead.awaitedSeconds, 1e6),
  },
  {
    target: "import 'gradlink', milliseconds",
    below: 60,
    value: ({ overhead }) => scaled(overhead.importSeconds, 1e3),
  },
];

const inverse = (seconds) => (seconds === undefined ? undefined : 1 / seconds);
const scaled = (samples, factor) => (samples === undefined ? undefined : median(samples) * factor);

/**
 * @returns {{target: string, wanted: string, value: number | null, reached: boolean | null, detail: string}[]} value and
 *   reached are null where it could not be measured; detail then says so
 */
export function evaluate(measured) {
  const run = { records: [], memory: [], overhead: {}, store: {}, ...measured };
  const compared = comparisons.map(({ target, wanted, of, places }) => {
    const worst = worstRatio(run.records, { ...of, ...(places ? { places } : {}) });
    return row(
      target,
      `at least ${wanted}`,
      worst?.value,
      (value) => value >= wanted,
      worst?.detail,
    );
  });
  const limited = limits.map(({ target, wanted, below, value }) =>
    below === undefined
      ? row(target, `at least ${wanted}`, value(run), (reached) => reached >= wanted)
      : row(target, `below ${below}`, value(run), (reached) => reached < below),
  );
  return [...compared, ...limited];
}

function row(target, wanted, value, test, detail = '') {
  if (value === undefined) {
    return {
      target,
      wanted,
      value: null,
      reached: null,
      detail: 'waived: not measured in this run',
    };
  }
  return { target, wanted, value, reached: test(value), detail };
}
