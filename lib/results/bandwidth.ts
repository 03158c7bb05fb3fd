import { nativeCollectives, type NativeTimedName, type ReduceOp } from '../collectives.js';
import {
  anAmount,
  aNumber,
  aPositive,
  aString,
  having,
  oneOfWords,
  orAbsent,
  orNull,
} from '../checks.js';
import { statisticsKind } from './kinds.js';
import type { Bandwidth, Statistics } from './result.js';

/** The timed collectives under nccl-tests' names, and the scans, which it lacks. */
export const collectives = [
  'all_reduce',
  'all_gather',
  'reduce_scatter',
  'alltoall',
  'gather',
  'scatter',
  'broadcast',
  'reduce',
  'scan',
  'exscan',
  'sendrecv',
  'alltoallv',
  'hypercube',
] as const;

/** One of {@link collectives}. */
export type Collective = (typeof collectives)[number];

/** Whether a call reads and writes the same memory. */
export type Placement = 'in-place' | 'out-of-place';

/** Size of a call and the definitions of its bandwidths; all figures follow from them and the time. */
export interface Volume {
  /** S: the numerator of the algorithm bandwidth, in bytes. */
  bytes: number;
  /** The algorithm bandwidth in words. */
  algorithmFormula: string;
  /** busBandwidth = busFactor * algorithmBandwidth. */
  busFactor: number;
  /** The bus bandwidth in words. */
  busFormula: string;
  /** Bytes that any implementation on one host must read plus those it must write. */
  mustMoveBytes: number;
  /** The formula of `mustMoveBytes` in words. */
  mustMoveFormula: string;
  /** How memory is used; absent: output and input are separate. */
  access?: MemoryAccess;
}

/** Output separate from input, a sum smaller than its input, or output in place. */
export type MemoryAccess = 'copy' | 'sum' | 'rewrite';

interface CollectiveRule {
  native: NativeTimedName;
  /** Why a case is not supported; undefined if it is. */
  waived?: (placement: Placement, op: ReduceOp | null, ranks: number) => string | undefined;
  /** For calls that are not collectives of the engine: whether each rank's count is one of n chunks. */
  chunked?: boolean;
  /** S, if it is not the total of all chunks. */
  size?: { text: string; bytes: (chunk: number, n: number) => number };
  bus: 'all-reduce' | 'others' | 'one';
  /** Reads plus writes in units of S, for n ranks with a common memory. */
  mustMove: Record<Placement, { text: string; factor: (n: number) => number }>;
}

const outOfPlace =
  (reason: string) =>
  (placement: Placement): string | undefined =>
    placement === 'in-place' ? reason : undefined;

const noAverage = (_: Placement, op: ReduceOp | null): string | undefined =>
  op === 'avg' ? 'a scan has no average' : undefined;

// Out of place every input is read and every output written once. In place, data already in its final place counts as
// neither: a rank's own chunk, the root's buffer, rank 0's in a scan. A sum overwrites all its inputs, so it saves
// nothing. The last rank's data of an exscan is not read.
const rules: Readonly<Record<Collective, CollectiveRule>> = {
  all_reduce: {
    native: 'allReduce',
    bus: 'all-reduce',
    mustMove: {
      'out-of-place': { text: 'n S + n S', factor: (n) => 2 * n },
      'in-place': { text: 'n S + n S', factor: (n) => (n > 1 ? 2 * n : 0) },
    },
  },
  all_gather: {
    native: 'allGather',
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'S + n S', factor: (n) => 1 + n },
      'in-place': { text: 'S + (n-1) S', factor: (n) => (n > 1 ? n : 0) },
    },
  },
  reduce_scatter: {
    native: 'reduceScatter',
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'n S + S', factor: (n) => n + 1 },
      'in-place': { text: 'n S + S', factor: (n) => (n > 1 ? n + 1 : 0) },
    },
  },
  alltoall: {
    native: 'allToAll',
    waived: outOfPlace('an all-to-all has no in-place form'),
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'n S + n S', factor: (n) => 2 * n },
      'in-place': { text: '(n-1) S + (n-1) S', factor: (n) => 2 * (n - 1) },
    },
  },
  gather: {
    native: 'gather',
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'S + S', factor: () => 2 },
      'in-place': { text: 'S (n-1)/n + S (n-1)/n', factor: (n) => (2 * (n - 1)) / n },
    },
  },
  scatter: {
    native: 'scatter',
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'S + S', factor: () => 2 },
      'in-place': { text: 'S (n-1)/n + S (n-1)/n', factor: (n) => (2 * (n - 1)) / n },
    },
  },
  broadcast: {
    native: 'broadcast',
    bus: 'one',
    mustMove: {
      'out-of-place': { text: 'S + n S', factor: (n) => 1 + n },
      'in-place': { text: 'S + (n-1) S', factor: (n) => (n > 1 ? n : 0) },
    },
  },
  reduce: {
    native: 'reduce',
    bus: 'one',
    mustMove: {
      'out-of-place': { text: 'n S + S', factor: (n) => n + 1 },
      'in-place': { text: 'n S + S', factor: (n) => (n > 1 ? n + 1 : 0) },
    },
  },
  // A rank forwards S for any number of ranks: factor 1, as nccl-tests has it for broadcast and reduce.
  scan: {
    native: 'scan',
    waived: noAverage,
    bus: 'one',
    mustMove: {
      'out-of-place': { text: 'n S + n S', factor: (n) => 2 * n },
      'in-place': { text: 'n S + (n-1) S', factor: (n) => (n > 1 ? 2 * n - 1 : 0) },
    },
  },
  exscan: {
    native: 'exscan',
    waived: noAverage,
    bus: 'one',
    mustMove: {
      'out-of-place': { text: '(n-1) S + n S', factor: (n) => 2 * n - 1 },
      'in-place': { text: '(n-1) S + n S', factor: (n) => 2 * n - 1 },
    },
  },
  sendrecv: {
    native: 'sendReceive',
    waived: outOfPlace('a rank cannot send and receive in the same memory'),
    bus: 'one',
    mustMove: {
      'out-of-place': { text: 'n S + n S', factor: (n) => 2 * n },
      'in-place': { text: 'n S + n S', factor: (n) => 2 * n },
    },
  },
  alltoallv: {
    native: 'allToAllV',
    waived: outOfPlace('an all-to-all has no in-place form'),
    chunked: true,
    size: { text: 'the parts that a rank sends', bytes: unevenParts },
    bus: 'others',
    mustMove: {
      'out-of-place': { text: 'n S + n S', factor: (n) => 2 * n },
      'in-place': { text: 'n S + n S', factor: (n) => 2 * n },
    },
  },
  // S counts a rank's data from the others: n chunks are n/(n-1) S.
  hypercube: {
    native: 'hypercube',
    waived: (_, __, ranks) =>
      (ranks & (ranks - 1)) === 0 ? undefined : `${ranks} ranks are not a power of two`,
    chunked: true,
    size: { text: 'count per rank * element size * (n-1)', bytes: (chunk, n) => chunk * (n - 1) },
    bus: 'one',
    mustMove: {
      'out-of-place': {
        text: 'n/(n-1) S + n n/(n-1) S',
        factor: (n) => (n > 1 ? ((n + 1) * n) / (n - 1) : 0),
      },
      'in-place': {
        text: 'n/(n-1) S + n S',
        factor: (n) => (n > 1 ? n / (n - 1) + n : 0),
      },
    },
  },
};

// As in nccl-tests: parts grow with the distance between the ranks, in multiples of 16 bytes.
function unevenParts(chunk: number, n: number): number {
  const total = chunk * n;
  const whole = (bytes: number) => Math.floor(bytes / 16) * 16;
  if (n === 1) return whole(total);
  const distances = (n * (n - 1)) / 2;
  const parts = Array.from({ length: n }, (_, distance) => whole((distance * total) / distances));
  return parts.reduce((sum, part) => sum + part, 0);
}

/** The properties of a collective that a sweep needs. */
export interface CollectiveTraits {
  readonly native: NativeTimedName;
  /** Whether each rank's count is one of n chunks of the size; otherwise it is the size itself. */
  readonly chunked: boolean;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** Why a case is not supported; undefined if it is. */
  readonly waived?: CollectiveRule['waived'];
}

export function traitsOf(collective: Collective): CollectiveTraits {
  const { native, waived, chunked } = rules[collective];
  const row = nativeCollectives.find(({ name }) => name === native);
  const sides = row === undefined ? [] : [row.in, row.out];
  return {
    native,
    chunked: chunked ?? sides.some((blocks) => blocks === 'each' || blocks === 'eachAtRoot'),
    reduces: row?.hasOp ?? false,
    rooted: row?.hasRoot ?? false,
    ...(waived === undefined ? {} : { waived }),
  };
}

const busRules = {
  'all-reduce': { text: 'algbw * 2(n-1)/n', factor: (n: number) => (2 * (n - 1)) / n },
  others: { text: 'algbw * (n-1)/n', factor: (n: number) => (n - 1) / n },
  one: { text: 'algbw', factor: () => 1 },
} as const;

/**
 * Volume of one collective call, with the definitions of nccl-tests: S is one rank's buffer, or for all_gather,
 * reduce_scatter, alltoall, gather and scatter the total of the n chunks.
 *
 * @param call `countPerRank` is the elements of one rank's chunk (chunked collectives) or buffer (the others)
 */
export function collectiveVolume(
  collective: Collective,
  call: { countPerRank: number; elementBytes: number; ranks: number; placement: Placement },
): Volume {
  knownCollective(collective, 'collective');
  volumeCall(call, 'call');
  const { countPerRank, elementBytes, ranks, placement } = call;
  const rule = rules[collective];
  const { chunked } = traitsOf(collective);
  const bus = busRules[rule.bus];
  const mustMove = rule.mustMove[placement];
  const chunk = countPerRank * elementBytes;
  const bytes = rule.size?.bytes(chunk, ranks) ?? chunk * (chunked ? ranks : 1);
  const usual = chunked ? 'count per rank * element size * n' : 'count * element size';
  return {
    bytes,
    algorithmFormula: `S / t, S = ${rule.size?.text ?? usual}`,
    busFactor: bus.factor(ranks),
    busFormula: bus.text,
    mustMoveBytes: bytes * mustMove.factor(ranks),
    mustMoveFormula: `read + write = ${mustMove.text}`,
    access: accessOf(collective, placement),
  };
}

/** Only a sum for every rank overwrites its inputs; a root's sum is smaller than they are. */
function accessOf(collective: Collective, placement: Placement): MemoryAccess {
  if (collective === 'reduce' || collective === 'reduce_scatter') return 'sum';
  const everywhere = collective === 'all_reduce' || collective.endsWith('scan');
  return everywhere && placement === 'in-place' ? 'rewrite' : 'copy';
}

const knownCollective = oneOfWords(collectives);
const volumeCall = having({
  countPerRank: anAmount,
  elementBytes: anAmount,
  ranks: aPositive,
  placement: oneOfWords(['in-place', 'out-of-place']),
});

/** The work of a store besides moving a network's arrays. */
export interface StoreCall {
  /** S: bytes of all arrays of one device. */
  bytes: number;
  /** Per worker. */
  devices: number;
  /** The optimizer's state in weight sizes (sgd 0, with momentum 1, adam 2); null without an optimizer. */
  optimizerStates?: number | null;
  /** Whether gradients are compressed, which keeps a residual per device. */
  compressed?: boolean;
  /** The number of workers, all on one host. */
  workers?: number;
  /** Whether values are on servers. */
  servers?: boolean;
}

const storeCall = having({
  bytes: anAmount,
  devices: aPositive,
  optimizerStates: orAbsent(orNull(anAmount)),
  workers: orAbsent(aPositive),
});

/**
 * Volume of a `measure` batch: each device pushes its gradients and pulls the result. Its bus bandwidth is MXNet's
 * figure per device, `S * 2(n-1)/n / t`, with n devices of this process.
 */
export function storeVolume(call: StoreCall): Volume {
  storeCall(call, 'call');
  const { bytes, devices: n, optimizerStates = null, compressed = false, workers: w } = call;
  if (w !== undefined) return sharedVolume(call, w);
  // Gradients in, stored value out, weights out. The pull's read of the stored value is not counted, because a store
  // may do both in one pass.
  const terms = [`${n} S gradients read`, 'S stored', `${n} S weights written`];
  let factor = 2 * n + 1;
  if (optimizerStates !== null) {
    terms.push('S weight read');
    factor += 1;
    if (optimizerStates > 0) {
      terms.push(`${2 * optimizerStates} S optimizer states read and written`);
      factor += 2 * optimizerStates;
    }
  }
  if (compressed) {
    terms.push(`${2 * n} S residuals read and written`);
    factor += 2 * n;
  }
  return {
    bytes,
    algorithmFormula: 'S / t, S = elements * element size',
    busFactor: (2 * (n - 1)) / n,
    busFormula: 'S * 2(n-1)/n / t, n = devices of this process',
    mustMoveBytes: factor * bytes,
    mustMoveFormula: terms.join(' + '),
  };
}

/**
 * The volume of all workers. With servers, each worker writes S and reads S besides its own arrays, because pushes and
 * answers are in shared memory; the servers' sums and optimizers are not counted. Without servers it is an
 * all-reduce's.
 */
function sharedVolume({ bytes, devices: n, servers = false }: StoreCall, w: number): Volume {
  const between = servers ? 2 : 0;
  return {
    bytes,
    algorithmFormula: 'S / t, S = elements * element size',
    busFactor: (2 * (n - 1)) / n,
    busFormula: 'S * 2(n-1)/n / t, n = devices of this process',
    mustMoveBytes: w * (2 * n + between) * bytes,
    mustMoveFormula: servers
      ? `${w} workers x (${n} S gradients read + S pushed + S pulled + ${n} S weights written)`
      : `${w} workers x (${n} S gradients read + ${n} S weights written)`,
  };
}

/**
 * MXNet's figure per device in bytes per second: `bytes * 2(n-1)/n / seconds`; 0 for one device. It ignores workers and
 * servers, so for distributed stores it is not a network bandwidth.
 */
export function mxnetBandwidth(bytes: number, devices: number, seconds: number): number {
  aNumber(bytes, 'bytes');
  aPositive(devices, 'devices');
  return perSecond((bytes * 2 * (devices - 1)) / devices, seconds);
}

/** The bandwidth at the median time, with the interval from the median's interval. */
export function bandwidth(bytes: number, statistics: Statistics, formula: string): Bandwidth {
  anAmount(bytes, 'bytes');
  statisticsKind(statistics, 'statistics');
  aString(formula, 'formula');
  const { lowerSeconds, upperSeconds } = statistics.medianInterval;
  return {
    bytesPerSecond: perSecond(bytes, statistics.medianSeconds),
    lowerBytesPerSecond: perSecond(bytes, upperSeconds),
    upperBytesPerSecond: perSecond(bytes, lowerSeconds),
    formula,
  };
}

/** bytes / seconds; 0 below the clock's resolution, because reports hold only finite numbers. */
export function perSecond(bytes: number, seconds: number): number {
  aNumber(bytes, 'bytes');
  aNumber(seconds, 'seconds');
  return seconds > 0 ? bytes / seconds : 0;
}
