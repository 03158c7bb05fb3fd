import { aNumber, having, orNull } from '../checks.js';
import { contextKind, limitKind, statisticsKind } from './kinds.js';
import type { Limit, Statistics, Verdict, VerdictLevel } from './result.js';
import type { TimeShares } from './store-traffic.js';
import { percentText, shareLevels } from './units.js';

/** The facts for a verdict besides the times. */
export interface VerdictContext {
  /** The judged samples. */
  statistics: Statistics;
  /** Null if there is nothing to compare with, or nothing must move. */
  limit: Limit | null;
  /** Arrays per operation; 1 for a single buffer. */
  arrays?: number;
  /** S: bytes of those arrays, for one device. */
  bytes: number;
  /** Threads of the kernels in all processes of the run. */
  threads?: number | null;
  /** Cores that the processes may use. */
  availableCores?: number | null;
  /** CPU limit of the control group, in cores; null if unlimited. */
  grantedCores?: number | null;
  /** Null if unknown. */
  lastLevelCacheBytes?: number | null;
  /** Number of processes or workers; 1 if one process holds all ranks. */
  processes?: number;
  /** Whether every rank maps the memory (`allocShared`), so that nothing is staged. */
  sharedMemory?: boolean;
  /** Whether gradients are compressed. */
  compressed?: boolean;
  /** Whether GPUs do the work. */
  onGpus?: boolean;
  /** The time shares of a store with several workers. */
  shares?: TimeShares;
  /** The optimizer in the timed region. */
  optimizer?: string | null;
}

// Estimates are inexact: a value slightly above one is at it.
const aboveRatio = 1.02;
// Below this bound a call's fixed cost (waking threads, entering native code) exceeds any copying.
const latencyBoundSeconds = 20e-6;
// The time for a smaller array is less than that of waking threads for it.
const smallArrayBytes = 64 * 1024;
// Distance from minimum to 95th percentile relative to the median, on a quiet machine.
const noisySpread = 0.35;

const judged = having({ statistics: statisticsKind, limit: orNull(limitKind), bytes: aNumber });

/** Judges a median time against its limit, with the likeliest reason if it is low or unsteady. */
export function judge(context: VerdictContext): Verdict {
  judged(context, 'context');
  contextKind(context, 'context');
  const { limit, statistics } = context;
  if (limit === null) {
    return {
      level: 'none',
      reason: 'no limit',
      text: 'no limit was measured, so there is nothing to judge this against',
      likelyCause: noise(statistics),
    };
  }
  const percent = percentText(limit.ratio, [1]);
  if (limit.basis !== undefined) return judgeExpected(context, limit, limit.basis, percent);
  if (limit.kind === 'between cores') return judgeCores(context, limit, percent);
  if (limit.loopBytes !== undefined && limit.ratio > 1) return aboveLoop(limit, percent);
  if (limit.ratio > 1) {
    return {
      level: 'good',
      text: `${percent} of the copy limit: faster than memory`,
      likelyCause: inCache(context)
        ? 'the data fits in the last cache level, so main memory is not the limit'
        : 'part of the data stayed in a cache, or the copy was disturbed when it was measured',
    };
  }
  if (limit.ratio < shareLevels.good && limit.boundSeconds < latencyBoundSeconds) {
    return {
      level: 'none',
      reason: 'fixed cost',
      text: `${percent} of the copy limit; at this size the fixed cost of a call decides, not bandwidth`,
      likelyCause: null,
    };
  }
  const level = levelOf(limit.ratio);
  return {
    level,
    text: `${percent} of the copy limit: ${texts[level]}`,
    likelyCause: level === 'good' ? noise(statistics) : likelyCause(context),
  };
}

// The best of a few passes varies by this factor.
const repeatsWithin = 1.05;

/** The loop is the limit; if a figure beats it by more than the scatter, explains why. */
function aboveLoop({ ratio }: Limit, percent: string): Verdict {
  const text = `${percent} of the copy limit at this size: as fast as a plain loop`;
  const disturbed =
    'the plain loop was measured several times and still disturbed by other load; repeat when the machine is quiet';
  return { level: 'good', text, likelyCause: ratio > repeatsWithin ? disturbed : null };
}

/** Against the rate between cores. */
function judgeCores(context: VerdictContext, limit: Limit, percent: string): Verdict {
  const text = `${percent} of what passes between the cores`;
  if (limit.ratio > 1) {
    const disturbed =
      'the cores were measured several times and still disturbed by other load; repeat when the machine is quiet';
    const cause = limit.ratio > repeatsWithin ? disturbed : null;
    return { level: 'good', text: `${text}: as fast as they allow`, likelyCause: cause };
  }
  if (limit.ratio < shareLevels.good && limit.boundSeconds < latencyBoundSeconds) {
    return {
      level: 'none',
      reason: 'fixed cost',
      text: `${text}; at this size the fixed cost of a call decides, not bandwidth`,
      likelyCause: null,
    };
  }
  const level = levelOf(limit.ratio);
  const likely = level === 'good' ? noise(context.statistics) : likelyCause(context);
  return { level, text: `${text}: ${coreTexts[level]}`, likelyCause: likely };
}

/** Against a known limit instead of a measured one: that of links, or a library's estimate. */
function judgeExpected(
  context: VerdictContext,
  limit: Limit,
  basis: string,
  percent: string,
): Verdict {
  const text = `${percent} of ${basis}`;
  if (limit.ratio > aboveRatio) {
    return {
      level: 'good',
      text: `${text}: above it`,
      likelyCause:
        'sums in the switch and trees send fewer bytes than the formula counts, and small data stays in caches',
    };
  }
  const steady = noise(context.statistics);
  if (limit.ratio < shareLevels.good && limit.boundSeconds < latencyBoundSeconds) {
    return {
      level: 'none',
      reason: 'fixed cost',
      text: `${text}; at this size the fixed cost of a call decides`,
      likelyCause: null,
    };
  }
  const level = levelOf(limit.ratio);
  if (level === 'good') return { level, text, likelyCause: steady };
  const advice = 'measure the links by themselves: gradlink p2p --matrix';
  return { level, text, likelyCause: steady === null ? advice : `${steady}; ${advice}` };
}

const texts: Record<Exclude<VerdictLevel, 'none'>, string> = {
  good: 'near what this memory can do',
  fair: 'usable, with room to gain',
  poor: 'far below what this memory can do',
};

const coreTexts: Record<Exclude<VerdictLevel, 'none'>, string> = {
  good: 'near what these cores can do',
  fair: 'usable, with room to gain',
  poor: 'far below what these cores can do',
};

/** The level of a share of a limit. */
export function levelOf(ratio: number): Exclude<VerdictLevel, 'none'> {
  if (ratio >= shareLevels.good) return 'good';
  return ratio >= shareLevels.fair ? 'fair' : 'poor';
}

/** Most specific first: known causes come before guesses. */
function likelyCause(context: VerdictContext): string {
  const {
    statistics,
    bytes,
    arrays = 1,
    processes = 1,
    threads = null,
    availableCores = null,
    grantedCores = null,
  } = context;
  if (context.compressed === true) {
    return 'gradient compression spends arithmetic on every element; without --gc-type the store only moves and adds';
  }
  if (availableCores !== null && processes > availableCores) {
    return `${processes} processes share ${availableCores} core${plural(availableCores)}: they wait for one another; use one process per core`;
  }
  const running = Math.max(threads ?? 1, processes);
  if (grantedCores !== null && grantedCores < running) {
    return `the control group grants the time of ${grantedCores.toFixed(1)} cores to ${running} threads, which are stopped in the middle of a call; raise the limit of the container, or lower GRADLINK_NUM_THREADS`;
  }
  if (threads !== null && availableCores !== null && threads < availableCores) {
    return `${threads} of ${availableCores} cores are used; raise GRADLINK_NUM_THREADS`;
  }
  if (context.shares !== undefined)
    return largestShare(context.shares, typeof context.optimizer === 'string');
  const unsteady = noise(statistics);
  if (unsteady !== null) return unsteady;
  if (bytes / arrays < smallArrayBytes) {
    return arrays > 1
      ? `the arrays are small (${Math.round(bytes / arrays)} bytes on average), so the fixed cost of each of the ${arrays} operations weighs`
      : `the array is small (${bytes} bytes), so the fixed cost of a call weighs`;
  }
  if (typeof context.optimizer === 'string') {
    return `the optimizer ${context.optimizer} computes in the timed region; compare with a run without --optimizer`;
  }
  if (processes > 1 && context.sharedMemory !== true) {
    return 'plain arrays of other processes are copied through a shared segment; arrays from allocShared are not';
  }
  if (context.onGpus === true) {
    return 'the GPU waits for calls and launches between its work, or its clocks are held back: see gradlink p2p -t device_local_copy';
  }
  return 'nothing that this run records explains it; look for a virtual machine with shared memory bandwidth, or memory of another NUMA node';
}

const shareCauses: Readonly<Record<keyof TimeShares, string>> = {
  copy: "the workers' copying between their arrays and what they send takes most of the time: fewer devices per worker, or more workers",
  wire: 'what passes between the processes takes most of the time: the link, MPI or TCP across hosts; on one host processes that share cores',
  merge: "the servers' summing takes most of the time: more servers, or fewer workers per server",
  update: 'the optimizer takes most of the time: more servers, or a simpler optimizer',
};

/** Without an optimizer an update is a copy. */
const assigning =
  'storing the sums and copying them to where they are pulled takes most of the time, which memory limits: fewer devices a worker';

function largestShare(shares: TimeShares, hasOptimizer: boolean): string {
  const parts = Object.keys(shareCauses) as (keyof TimeShares)[];
  const largest = parts.reduce((a, b) => (shares[b] > shares[a] ? b : a));
  const cause = largest === 'update' && !hasOptimizer ? assigning : shareCauses[largest];
  return `${cause} (${(shares[largest] * 100).toFixed(0)} %)`;
}

/** How far times scatter; null if they are steady or too few. */
function noise(statistics: Statistics): string | null {
  const { samples, minSeconds, medianSeconds, p95Seconds } = statistics;
  if (samples < 3 || medianSeconds <= 0) return null;
  const spread = (p95Seconds - minSeconds) / medianSeconds;
  if (spread <= noisySpread) return null;
  return `the times scatter (from minimum to 95th percentile ${Math.round(spread * 100)} % of the median): other load on the machine; repeat when it is quiet, with more batches`;
}

function inCache(context: VerdictContext): boolean {
  const { limit, lastLevelCacheBytes = null } = context;
  return (
    limit !== null && lastLevelCacheBytes !== null && limit.mustMoveBytes <= 2 * lastLevelCacheBytes
  );
}

function plural(count: number): string {
  return count === 1 ? '' : 's';
}
