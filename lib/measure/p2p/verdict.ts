// Judges figures between GPUs and host memory: against the links' limits, against similar pairs, and by NVML's
// readings.
import { median } from 'simple-statistics';

import type { NativeGpuHealth } from '../../native/gpu.js';
import type { ExpectedRate } from '../machine/gpu-rates.js';
import { linksBetween, linksDown, placeName, type Machine } from '../machine/gpus.js';
import type { Statistics, Verdict, VerdictLevel } from '../../results/result.js';
import { percentText, shareLevels, sidedText } from '../../results/units.js';

/** The evidence for one figure. */
export interface P2pEvidence {
  readonly quantity: 'bandwidth' | 'latency';
  /** A latency by the host's clock. */
  readonly byHost: boolean;
  /** Bytes per second, or seconds for a latency. */
  readonly value: number;
  readonly limit: ExpectedRate | undefined;
  readonly statistics: Statistics;
  /** Per copy, or of all copies of a sum. */
  readonly bytes: number;
  /** The sum of several copies; `from` and `to` are the first one's. */
  readonly total: boolean;
  /** The two places; host memory is -1. */
  readonly from: number;
  readonly to: number;
  /** The GPUs involved. */
  readonly gpus: readonly number[];
  /** Between two GPUs without peer access. */
  readonly staged: boolean;
  /** Staging was requested. */
  readonly stagedOnPurpose: boolean;
  /** Other pairs had copies at the same time. */
  readonly crowded: boolean;
  /** During the measurement. */
  readonly health: ReadonlyMap<number, NativeGpuHealth>;
  /** Counted meanwhile: `gpu:0 counted 3 NVLink errors`. */
  readonly errors: readonly string[];
}

// Links also carry headers: with large copies NVLink reaches 0.8 to 0.92 of its rate, PCIe 0.8 to 0.9.
const { good: goodRatio, fair: fairRatio } = shareLevels;
// A figure above its link's rate used another path, or the rate is wrong: the limit then says nothing.
const mostRatio = 1.1;
// Similar pairs of a machine are within a few percent.
const fairOfPeers = 0.8;
const poorOfPeers = 0.5;
// A copy takes microseconds to start, whatever its size.
const shortestJudged = 5e-6;
const smallBuffer = 16 * 2 ** 20;
const noisySpread = 0.35;

type Level = Exclude<VerdictLevel, 'none'>;
const order: readonly Level[] = ['poor', 'fair', 'good'];

function worse(one: Level, other: Level): Level {
  return order.indexOf(one) < order.indexOf(other) ? one : other;
}

function levelOf(ratio: number, fair: number, poor: number): Level {
  if (ratio >= fair) return 'good';
  return ratio >= poor ? 'fair' : 'poor';
}

/** Figures of the same case that should be equal: the same kind of link and the same limit. */
function isLike(one: P2pEvidence, other: P2pEvidence): boolean {
  const local = (evidence: P2pEvidence): boolean => evidence.from === evidence.to;
  return (
    one !== other &&
    one.total === other.total &&
    local(one) === local(other) &&
    one.staged === other.staged &&
    one.limit?.over === other.limit?.over &&
    Math.abs((one.limit?.bytesPerSecond ?? 0) - (other.limit?.bytesPerSecond ?? 0)) <= 1e6
  );
}

/** Relative to the median of similar figures, less is worse; undefined with fewer than two. */
function shareOfPeers(
  evidence: P2pEvidence,
  all: readonly P2pEvidence[],
): { readonly share: number; readonly median: number; readonly count: number } | undefined {
  const values = all.filter((other) => isLike(evidence, other)).map(({ value }) => value);
  if (values.length < 2) return undefined;
  const middle = median(values);
  if (!(middle > 0) || !(evidence.value > 0)) return undefined;
  const share = evidence.quantity === 'latency' ? middle / evidence.value : evidence.value / middle;
  return { share, median: middle, count: values.length };
}

/** @param all the evidence of the same case, including this */
export function judgeP2p(
  machine: Machine,
  evidence: P2pEvidence,
  all: readonly P2pEvidence[],
): Verdict {
  const peers = shareOfPeers(evidence, all);
  const peerLevel =
    peers === undefined ? undefined : levelOf(peers.share, fairOfPeers, poorOfPeers);
  const { limit } = evidence;
  const ratio =
    limit === undefined || evidence.quantity === 'latency'
      ? undefined
      : evidence.value / limit.bytesPerSecond;
  const comparison = peers === undefined ? '' : comparisonText(evidence, peers);
  if (evidence.byHost) {
    return {
      level: 'none',
      reason: 'host time',
      text: "the host's own time, which includes its driver, clocks and other load",
      likelyCause: evidence.errors.length > 0 ? evidence.errors.join('; ') : null,
    };
  }
  if (evidence.stagedOnPurpose) {
    return {
      level: 'none',
      reason: 'comparison',
      text: `peer access was switched off for comparison: staged through host memory${comparison}`,
      likelyCause: evidence.errors.length > 0 ? evidence.errors.join('; ') : null,
    };
  }
  if (ratio === undefined && peerLevel === undefined) {
    return {
      level: 'none',
      reason: 'no limit',
      text: 'nothing to judge this against: no limit is known, and there are no similar figures',
      likelyCause: evidence.errors.length > 0 ? evidence.errors.join('; ') : null,
    };
  }
  if (
    limit !== undefined &&
    ratio !== undefined &&
    ratio < goodRatio &&
    evidence.errors.length === 0 &&
    evidence.bytes / limit.bytesPerSecond < shortestJudged
  ) {
    return {
      level: 'none',
      reason: 'fixed cost',
      text: `${percentText(ratio)} of ${limit.basis}; for a copy of ${evidence.bytes} bytes its fixed cost decides: use a larger --buffer-size`,
      likelyCause: null,
    };
  }
  const tooFast = isTooFast(evidence);
  const limitLevel =
    ratio === undefined || tooFast ? undefined : levelOf(ratio, goodRatio, fairRatio);
  let level = worse(limitLevel ?? 'good', peerLevel ?? 'good');
  if (evidence.errors.length > 0 || downText(machine, evidence) !== undefined) {
    level = worse(level, 'fair');
  }
  const share =
    ratio === undefined || limit === undefined
      ? 'no limit is known'
      : `${percentText(ratio)} of ${limit.basis}${wordOf(limit, ratio, tooFast)}`;
  const text = `${share}${comparison}`;
  if (tooFast && level === 'good') {
    return { level: 'none', reason: 'above limit', text, likelyCause: null };
  }
  const slow = peers !== undefined && peerLevel !== 'good' ? peers : undefined;
  const decidedBy = level === peerLevel ? 'others' : 'faults';
  return {
    level,
    ...(level === limitLevel ? {} : { reason: decidedBy }),
    text,
    likelyCause:
      level === 'good'
        ? unsteady(evidence.statistics)
        : cause(machine, evidence, slow !== undefined),
  };
}

function isTooFast({ quantity, value, limit }: P2pEvidence): boolean {
  if (limit === undefined || quantity === 'latency') return false;
  return value / (limit.linkBytesPerSecond ?? limit.bytesPerSecond) > mostRatio;
}

/** The wording for a figure above its limit. */
function wordOf({ over }: ExpectedRate, ratio: number, tooFast: boolean): string {
  if (ratio <= mostRatio) return '';
  if (!tooFast) return ', which most such links do not reach';
  return over === 'memory'
    ? ': faster than what the driver says of the memory, as what fits its caches is'
    : ': faster than what NVML says of the link, so that it is no limit here';
}

function comparisonText(
  { quantity }: P2pEvidence,
  { share, median, count }: { share: number; median: number; count: number },
): string {
  const shown =
    quantity === 'latency'
      ? `${(median * 1e9).toFixed(0)} ns`
      : `${(median / 1e9).toFixed(2)} GB/s`;
  const times = quantity === 'latency' ? 1 / share : share;
  return `; ${sidedText(times, 2, [fairOfPeers, poorOfPeers])} times the median of ${count} similar figures (${shown})`;
}

/** Most specific first: readings come before guesses. */
function cause(machine: Machine, evidence: P2pEvidence, slowerThanPeers: boolean): string {
  if (evidence.errors.length > 0) {
    return `${evidence.errors.join('; ')}: a cable, bridge or connector that loses packets`;
  }
  const findings = [
    downText(machine, evidence),
    narrowText(evidence),
    stagedText(machine, evidence),
    throttleText(evidence),
  ].filter((text) => text !== undefined);
  if (findings.length > 0) return findings.join('; ');
  const unsteadiness = unsteady(evidence.statistics);
  if (evidence.crowded && sharedText(machine, evidence) !== undefined) {
    return sharedText(machine, evidence) ?? '';
  }
  if (evidence.total && evidence.gpus.length > 2) {
    return 'a sum is as slow as the slowest copy in it: see the cases of single pairs';
  }
  if (slowerThanPeers) {
    const way = `${placeName(evidence.from)} to ${placeName(evidence.to)}`;
    return `only ${way} is slow: check what is between these two (a link that was trained down, a bridge, a PCIe switch or slot)${unsteadiness === null ? '' : `; ${unsteadiness}`}`;
  }
  if (unsteadiness !== null) return unsteadiness;
  if (evidence.quantity === 'bandwidth' && evidence.bytes < smallBuffer) {
    return `the buffer is small (${evidence.bytes} bytes), so the fixed cost of a copy counts; use --buffer-size 64 or more`;
  }
  return 'nothing that this run records explains it; look for other load, a virtual machine, or IOMMU and ACS settings';
}

/** `gpu:0 and gpu:1`, in either direction. */
function bothEnds({ from, to }: P2pEvidence): string {
  return `${placeName(Math.min(from, to))} and ${placeName(Math.max(from, to))}`;
}

function downText(machine: Machine, evidence: P2pEvidence): string | undefined {
  const { from, to } = evidence;
  if (evidence.gpus.length !== 2 || from < 0 || to < 0) return undefined;
  const links = linksBetween(machine, from, to);
  if (links !== undefined && links.expected > links.active) {
    const down = links.expected - links.active;
    return `${down} of ${links.expected} NVLinks between ${bothEnds(evidence)} ${down === 1 ? 'is' : 'are'} down`;
  }
  const without = [from, to].filter((gpu) => linksDown(machine, gpu) > 0);
  // Links may be missing between the two only if both lack some.
  if (links !== undefined || without.length < 2) return undefined;
  return `the NVLinks between ${bothEnds(evidence)} are down`;
}

function narrowText(evidence: P2pEvidence): string | undefined {
  // It does not use PCIe.
  if (evidence.limit?.over !== 'pcie') return undefined;
  const texts = evidence.gpus.flatMap((gpu) => {
    const health = evidence.health.get(gpu) ?? null;
    if (health === null) return [];
    const { pcieGeneration, pcieWidth, maxPcieGeneration, maxPcieWidth } = health;
    const narrow = pcieWidth !== null && maxPcieWidth !== null && pcieWidth < maxPcieWidth;
    const slow =
      pcieGeneration !== null && maxPcieGeneration !== null && pcieGeneration < maxPcieGeneration;
    if (!narrow && !slow) return [];
    return [
      `the PCIe link of ${placeName(gpu)} ran at generation ${pcieGeneration ?? '?'} x${pcieWidth ?? '?'} where generation ${maxPcieGeneration ?? '?'} x${maxPcieWidth ?? '?'} is possible: a slot, riser or BIOS setting`,
    ];
  });
  return texts.length === 0 ? undefined : texts.join('; ');
}

function stagedText(machine: Machine, evidence: P2pEvidence): string | undefined {
  const { staged, from, to } = evidence;
  if (!staged || evidence.gpus.length !== 2) return undefined;
  const { path } = machine.peer(from, to);
  const way = path === null ? '' : ` (they meet at ${path})`;
  return `${bothEnds(evidence)} do not reach each other's memory${way}, so the driver stages through host memory: P2P is off for this pair (driver, IOMMU or ACS, or a GPU without it)`;
}

function throttleText({ gpus, health }: P2pEvidence): string | undefined {
  const texts = gpus.flatMap((gpu) => {
    const reasons = health.get(gpu)?.throttleReasons ?? [];
    return reasons.length === 0
      ? []
      : [`the clocks of ${placeName(gpu)} were held back (${reasons.join(', ')})`];
  });
  return texts.length === 0 ? undefined : texts.join('; ');
}

function sharedText(machine: Machine, { gpus, limit }: P2pEvidence): string | undefined {
  if (limit?.over !== 'pcie') return undefined;
  const shared = gpus.flatMap((one) =>
    gpus
      .filter((other) => one < other && /^PI?XB?$/.test(machine.peer(one, other).path ?? ''))
      .map((other) => `${placeName(one)} and ${placeName(other)}`),
  );
  if (shared.length === 0) return undefined;
  return `${shared.join(', ')} share a PCIe switch, and with it the way to the host`;
}

/** How far times scatter; null if they are steady or too few. */
function unsteady({ samples, minSeconds, maxSeconds, medianSeconds }: Statistics): string | null {
  if (samples < 3 || medianSeconds <= 0) return null;
  const spread = (maxSeconds - minSeconds) / medianSeconds;
  if (spread <= noisySpread) return null;
  return `the times scatter (from minimum to maximum ${Math.round(spread * 100)} % of the median): other load; repeat when it is quiet, with more --samples`;
}
