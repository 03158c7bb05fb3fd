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

/** Collectives that the tools time, under nccl-tests' names, and the scans, which it does not have. */
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

/** Size of a call and what its bandwidths count; all figures follow from it and the time. */
export interface Volume {
  /** S: the numerator of the algorithm bandwidth, in bytes. */
  bytes: number;
  /** What algorithm bandwidth is, for people. */
  algorithmFormula: string;
  /** busBandwidth = busFactor * algorithmBandwidth. */
  busFactor: number;
  /** What bus bandwidth is, for people. */
  busFormula: string;
  /** Bytes that any implementation on one host must read plus those it must write. */
  mustMoveBytes: number;
  /** What `mustMoveBytes` counts, for people. */
  mustMoveFormula: string;
  /** How memory is used; absent: written elsewhere than it is read. */
  access?: MemoryAccess;
}

/** Written elsewhere than it is read, summed to less than is read, or written where it was read. */
export type MemoryAccess = 'copy' | 'sum' | 'rewrite';

interface CollectiveRule {
  native: NativeTimedName;
  /** Why it does not run like this; undefined where it does. */
  waived?: (placement: Placement, op: ReduceOp | null, ranks: number) => string | undefined;
  /** Of what is no collective of the engine's: whether each rank's count is one of n chunks. */
  chunked?: boolean;
  /** S, where it is not all chunks. */
  size?: { text: string; bytes: (chunk: number, n: number) => number };
  bus: 'all-reduce' | 'others' | 'one';
  /** Reads plus writes, in units of S, of n ranks whose buffers share one memory. */
  mustMove: Record<Placement, { text: string; factor: (n: number) => number }>;
}

const outOfPlace =
  (reason: string) =>
  (placement: Placement): string | undefined =>
    placement === 'in-place' ? reason : undefined;

const noAverage = (_: Placement, op: ReduceOp | null): string | undefined =>
  op === 'avg' ? 'a scan has no average' : undefined;

// Out of place every input is read and every output written once. In place, what already lies where it belongs
// is neither: a rank's own chunk, the root's buffer, rank 0's of a scan. A sum overwrites all its inputs, so it saves
// nothing. Nobody reads the last rank's data of an exscan.
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
  // What a rank passes on is S, whatever the number of ranks: no factor, as nccl-tests has it for broadcast and reduce.
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
  // S counts what a rank gets of the others: n chunks are n/(n-1) S.
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

// As nccl-tests has them: a part is the longer the farther apart the ranks are, and a whole multiple of 16 bytes.
function unevenParts(chunk: number, n: number): number {
  const total = chunk * n;
  const whole = (bytes: number) => Math.floor(bytes / 16) * 16;
  if (n === 1) return whole(total);
  const distances = (n * (n - 1)) / 2;
  const parts = Array.from({ length: n }, (_, distance) => whole((distance * total) / distances));
  return parts.reduce((sum, part) => sum + part, 0);
}

/** What a sweep must know of a collective. */
export interface CollectiveTraits {
  readonly native: NativeTimedName;
  /** Each rank's count is one of n chunks of the size; else it is the size itself. */
  readonly chunked: boolean;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** Why it does not run like this; undefined where it does. */
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
 * Volume of one collective call, with the definitions of nccl-tests: S is the buffer of one rank, or for
 * all_gather, reduce_scatter, alltoall, gather and scatter the n chunks together.
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

/** Only what every rank gets of a sum lies where the inputs lay; a root's sum is less than they are. */
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

/** What a store does with a network's arrays besides moving them. */
export interface StoreCall {
  /** S: bytes of all arrays of one device. */
  bytes: number;
  /** Of each worker. */
  devices: number;
  /** Arrays of the size of a weight that the optimizer keeps (sgd 0, with momentum 1, adam 2); null without optimizer. */
  optimizerStates?: number | null;
  /** Whether gradients are compressed, which keeps a residual for each device. */
  compressed?: boolean;
  /** Of a store of several workers, all on one host: how many, and whether servers merge. */
  workers?: number;
  /** Whether values lie on servers. */
  servers?: boolean;
}

const storeCall = having({
  bytes: anAmount,
  devices: aPositive,
  optimizerStates: orAbsent(orNull(anAmount)),
  workers: orAbsent(aPositive),
});

/**
 * Volume of one batch of `measure`: each device's gradients are pushed and the result pulled by each. The bus
 * bandwidth is the figure that MXNet prints per device, `S * 2(n-1)/n / t`, n being this process's devices.
 */
export function storeVolume(call: StoreCall): Volume {
  storeCall(call, 'call');
  const { bytes, devices: n, optimizerStates = null, compressed = false, workers: w } = call;
  if (w !== undefined) return sharedVolume(call, w);
  // Gradients in, stored value out, weights out. The re-reading of the stored value by the pull is not counted: a
  // store that does both in one pass saves it.
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
 * Of all workers together. With servers: what is pushed lies in memory that the server reads, and what it answers in
 * memory that the worker reads, so each worker writes S besides its own arrays and reads S; the servers' own sums and
 * optimizers are not counted. Without: an all-reduce's.
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
 * MXNet's figure per device, in bytes a second: `bytes * 2(n-1)/n / seconds`; 0 for one device.
 * Workers and servers do not enter it, so for distributed stores it is not the bandwidth of a network.
 */
export function mxnetBandwidth(bytes: number, devices: number, seconds: number): number {
  aNumber(bytes, 'bytes');
  aPositive(devices, 'devices');
  return perSecond((bytes * 2 * (devices - 1)) / devices, seconds);
}

/** A bandwidth at the median time, with the interval that the median's interval gives. */
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

/** bytes / seconds; 0 when the time is below what the clock resolves, since a report holds finite numbers only. */
export function perSecond(bytes: number, seconds: number): number {
  aNumber(bytes, 'bytes');
  aNumber(seconds, 'seconds');
  return seconds > 0 ? bytes / seconds : 0;
}
