// The rows of a comparison as cases of a report.
import { mebibyte, percentText } from '../../results/units.js';
import { mean } from 'simple-statistics';

import type { Bandwidth, CaseResult, Check, Statistics, Verdict } from '../../results/result.js';
import { describe, percentile } from '../../results/statistics.js';
import type { DdpRow } from './compare.js';

/** Shared by the cases of one run. */
export interface DdpContext {
  readonly model: string;
  readonly synthetic: boolean;
  readonly ranks: number;
  readonly gradientBytes: number;
  readonly gradients: number;
  readonly warmupSteps: number;
  readonly originalUnits: boolean;
}

export const ddpPhases = ['forward', 'backward'] as const;
export type DdpPhase = (typeof ddpPhases)[number];

/** Columns of the original's table; each with its difference to `overlap`. */
export const ddpFigures = ['mean', 'p50', 'p90', 'p95', 'p99'] as const;
export type DdpFigure = (typeof ddpFigures)[number];

// At 85 % the rest is little more than the last bucket, which cannot overlap; at half of it, overlap does not work.
const goodShare = 0.85;
const fairShare = 0.5;

type Figures = Readonly<Record<DdpFigure, number>>;

/** Of all ranks' samples: the original keeps only those of the last rank that wrote. */
function figuresOf(samples: readonly number[]): Figures {
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    mean: mean(sorted),
    p50: percentile(sorted, 50),
    p90: percentile(sorted, 90),
    p95: percentile(sorted, 95),
    p99: percentile(sorted, 99),
  };
}

function samplesOf(row: DdpRow, phase: DdpPhase): readonly (readonly number[])[] {
  return phase === 'forward' ? row.forwardSeconds : row.backwardSeconds;
}

/** The time that communication adds to the backward pass, and the share that overlaps. */
interface Exchange {
  readonly exposedSeconds: number;
  /** Negative if the pass took longer than without overlap; null if the times scatter too much. */
  readonly hidden: number | null;
}

function exchangeOf(row: DdpRow, { medianSeconds, medianInterval }: Statistics): Exchange {
  const { computeSeconds, communicationSeconds, computeSpreadSeconds } = row;
  const exposedSeconds = medianSeconds - computeSeconds;
  const { lowerSeconds, upperSeconds } = medianInterval;
  const scatter = (upperSeconds - lowerSeconds) / 2 + computeSpreadSeconds;
  const told = communicationSeconds > scatter;
  return { exposedSeconds, hidden: told ? 1 - exposedSeconds / communicationSeconds : null };
}

/** `95 %`, or `nothing`. */
export function hiddenText(share: number): string {
  return share < 0 ? 'nothing' : percentText(Math.min(share, 1), [goodShare]);
}

function bandwidthOf(bytes: number, statistics: Statistics, factor: number, formula: string) {
  const { medianSeconds, medianInterval } = statistics;
  const at = (seconds: number): number => (bytes * factor) / seconds;
  const bandwidth: Bandwidth = {
    bytesPerSecond: at(medianSeconds),
    lowerBytesPerSecond: at(medianInterval.upperSeconds),
    upperBytesPerSecond: at(medianInterval.lowerSeconds),
    formula,
  };
  return bandwidth;
}

function verdictOf(row: DdpRow, phase: DdpPhase, { hidden: share }: Exchange): Verdict {
  if (phase === 'forward') {
    const text = 'nothing is reduced in a forward pass';
    return { level: 'none', reason: 'nothing exchanged', text, likelyCause: null };
  }
  if (share === null) {
    const text = 'the times of the backward pass scatter by more than the communication takes';
    return { level: 'none', reason: 'scatter', text, likelyCause: null };
  }
  const percent = `${hiddenText(share)} of the communication is hidden behind the backward pass`;
  if (row.mode !== 'overlap') {
    return { level: 'none', reason: 'comparison', text: percent, likelyCause: null };
  }
  const reason = 'hidden';
  if (row.communicationSeconds > row.computeSeconds) {
    const cause =
      'communication alone takes longer than the backward pass: not all of it can be hidden';
    const level = share >= fairShare ? 'fair' : 'poor';
    return { level, reason, text: percent, likelyCause: cause };
  }
  if (share >= goodShare) return { level: 'good', reason, text: percent, likelyCause: null };
  return {
    level: share >= fairShare ? 'fair' : 'poor',
    reason,
    text: percent,
    likelyCause:
      row.buckets < 3
        ? 'few buckets: most bytes wait for the end of the backward pass; try a smaller bucket size'
        : 'computing and communicating share cores, or the last bucket is large; try another bucket size',
  };
}

function checkOf({ wrong }: DdpRow, phase: DdpPhase): Check {
  const checked = phase === 'backward' && wrong !== null;
  return {
    kind: checked ? 'exact' : 'none',
    wrong: checked ? wrong : null,
    error: null,
    tolerance: null,
    passed: !checked || wrong === 0,
  };
}

function caseOf(
  row: DdpRow,
  base: DdpRow | undefined,
  phase: DdpPhase,
  context: DdpContext,
): CaseResult {
  const perRank = samplesOf(row, phase);
  const samples = perRank.flat();
  const statistics = describe(samples);
  const figures = figuresOf(samples);
  const compared = base === undefined ? undefined : figuresOf(samplesOf(base, phase).flat());
  const values: Record<string, number | null> = {
    meanSeconds: figures.mean,
    p50Seconds: figures.p50,
    p90Seconds: figures.p90,
    p95Seconds: figures.p95,
    p99Seconds: figures.p99,
    buckets: row.buckets,
    largestBucketBytes: row.bucketBytes,
  };
  for (const figure of ddpFigures) {
    values[`${figure}DeltaPercent`] =
      compared === undefined
        ? null
        : (100 * (figures[figure] - compared[figure])) / compared[figure];
  }
  perRank.forEach((own, rank) => (values[`rank${rank}MeanSeconds`] = mean(own)));
  const exchange = exchangeOf(row, statistics);
  if (phase === 'backward') {
    const { exposedSeconds, hidden } = exchange;
    values['computeSeconds'] = row.computeSeconds;
    values['communicationSeconds'] = row.communicationSeconds;
    values['exposedSeconds'] = exposedSeconds;
    values['hiddenPercent'] = hidden === null ? null : 100 * hidden;
  }
  const { gradientBytes: bytes, ranks } = context;
  const check = checkOf(row, phase);
  const measured = {
    name: 'ddp',
    parameters: {
      mode: row.mode,
      phase,
      model: context.model,
      synthetic: context.synthetic,
      ranks,
      bucketBytes: row.bucketMebibytes * mebibyte,
      originalUnits: context.originalUnits,
    },
    samplesSeconds: samples,
    iterationsPerSample: 1,
    warmupIterations: context.warmupSteps,
    statistics,
    bytes,
    arrays: context.gradients,
    algorithmBandwidth: bandwidthOf(bytes, statistics, 1, 'S / t'),
    busBandwidth: bandwidthOf(bytes, statistics, (2 * (ranks - 1)) / ranks, 'S * 2(n-1)/n / t'),
    limit: null,
    check,
    verdict: verdictOf(row, phase, exchange),
    values,
  } as const;
  return check.passed
    ? { status: 'ok', ...measured }
    : {
        status: 'error',
        reason: `${row.wrong} elements of reduced gradients are wrong`,
        ...measured,
      };
}

/**
 * A case for each row and phase, with the phases of a bucket size together. Samples are in rank order; differences are
 * to `overlap` with the same bucket size.
 */
export function ddpCases(rows: readonly DdpRow[], context: DdpContext): CaseResult[] {
  const sizes = [...new Set(rows.map(({ bucketMebibytes }) => bucketMebibytes))];
  return sizes.flatMap((size) => {
    const same = rows.filter(({ bucketMebibytes }) => bucketMebibytes === size);
    const base = same.find(({ mode }) => mode === 'overlap');
    return ddpPhases.flatMap((phase) => same.map((row) => caseOf(row, base, phase, context)));
  });
}
