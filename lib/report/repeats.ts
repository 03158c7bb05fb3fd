// One case out of its repeats: medians of their figures, with the range they lie in.
import { median } from 'simple-statistics';

import type { Bandwidth, CaseResult, Measurement } from '../results/result.js';

export type Measured = CaseResult & Measurement;

/** Where the figures of the repeats lie. */
export interface Spread {
  readonly least: number;
  readonly median: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { least: Math.min(...values), median: median([...values]), most: Math.max(...values) };
}

/** Of what all repeats tell; undefined where one does not tell it. */
export function spreadBy<T>(
  repeats: readonly T[],
  read: (one: T) => number | null | undefined,
): Spread | undefined {
  const values = repeats.map(read).filter((value) => typeof value === 'number');
  return values.length < repeats.length || values.length === 0 ? undefined : spreadOf(values);
}

/** `20.72 to 23.31 GB/s`: the unit once where both have it; one figure where they read the same. */
export function rangeText({ least, most }: Spread, text: (value: number) => string): string {
  const [low, high] = [text(least), text(most)];
  if (low === high) return low;
  const unit = high.slice(high.indexOf(' '));
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low} to ${high}`;
}

/**
 * The repeat in the middle: by its share of the limit where there is one, else by its time. Of two in the middle the
 * one that promises less.
 */
export function middleOf(repeats: readonly Measured[]): Measured {
  const limited = repeats.every(({ limit }) => limit !== null);
  const worth = ({ limit, statistics }: Measured): number =>
    limited && limit !== null ? limit.ratio : -statistics.medianSeconds;
  const sorted = repeats.toSorted((a, b) => worth(a) - worth(b));
  return sorted[Math.floor((sorted.length - 1) / 2)]!;
}

function middle<T>(repeats: readonly T[], read: (one: T) => number): number {
  return median(repeats.map(read));
}

function bandwidthOf(repeats: readonly Bandwidth[]): Bandwidth {
  return {
    bytesPerSecond: middle(repeats, (one) => one.bytesPerSecond),
    lowerBytesPerSecond: middle(repeats, (one) => one.lowerBytesPerSecond),
    upperBytesPerSecond: middle(repeats, (one) => one.upperBytesPerSecond),
    formula: repeats[0]!.formula,
  };
}

/** The case's own figures that every repeat has. */
function valuesOf(repeats: readonly Measured[]): Readonly<Record<string, number | null>> {
  return Object.fromEntries(
    Object.entries(repeats[0]!.values ?? {}).map(([name, first]) => [
      name,
      spreadBy(repeats, ({ values }) => values?.[name])?.median ??
        (repeats.length > 1 ? null : first),
    ]),
  );
}

/**
 * A case whose times, bandwidths and own figures are the medians of its repeats'. Share of the limit and verdict belong
 * together: both are those of {@link middleOf}.
 */
export function mergedRepeats(repeats: readonly Measured[]): Measured {
  const one = middleOf(repeats);
  if (repeats.length === 1) return one;
  return {
    ...one,
    statistics: {
      ...one.statistics,
      minSeconds: middle(repeats, ({ statistics }) => statistics.minSeconds),
      medianSeconds: middle(repeats, ({ statistics }) => statistics.medianSeconds),
      p95Seconds: middle(repeats, ({ statistics }) => statistics.p95Seconds),
    },
    algorithmBandwidth: bandwidthOf(repeats.map(({ algorithmBandwidth }) => algorithmBandwidth)),
    busBandwidth: bandwidthOf(repeats.map(({ busBandwidth }) => busBandwidth)),
    ...(one.values === undefined ? {} : { values: valuesOf(repeats) }),
  };
}
