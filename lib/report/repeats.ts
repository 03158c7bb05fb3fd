// Merges the repeats of a case: medians of their figures with ranges.
import { median } from 'simple-statistics';

import type { Bandwidth, CaseResult, Measurement } from '../results/result.js';

export type Measured = CaseResult & Measurement;

/** The range of the repeats' figures. */
export interface Spread {
  readonly least: number;
  readonly median: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  return { least: Math.min(...values), median: median([...values]), most: Math.max(...values) };
}

/** Undefined if a repeat lacks the figure. */
export function spreadBy<T>(
  repeats: readonly T[],
  read: (one: T) => number | null | undefined,
): Spread | undefined {
  const values = repeats.map(read).filter((value) => typeof value === 'number');
  return values.length < repeats.length || values.length === 0 ? undefined : spreadOf(values);
}

/** `20.72 to 23.31 GB/s`: the unit once if both have it; one figure if they read the same. */
export function rangeText({ least, most }: Spread, text: (value: number) => string): string {
  const [low, high] = [text(least), text(most)];
  if (low === high) return low;
  const unit = high.slice(high.indexOf(' '));
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low} to ${high}`;
}

/** The median repeat, by its share of the limit or else by its time; of the middle two the worse one. */
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

/** The case's figures that every repeat has. */
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
 * A case whose times, bandwidths and figures are the medians of its repeats. Share of the limit and verdict belong
 * together and are those of {@link middleOf}.
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
