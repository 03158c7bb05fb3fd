// The bandwidth limit of a case, and the sizes that it applies to.
import type { Measurement } from '../../results/result.js';
import { spreadOf } from '../repeats.js';
import { groupBy } from '../../results/grouping.js';

/** The smallest measured loop between two cores. */
const smallestPassed = 4096;
/** Two limits this close are drawn as one line. */
const alike = 1.02;

/** The bus bandwidth at a measurement's limit; null without one. */
export function limitBandwidth({ limit, busBandwidth }: Measurement): number | null {
  if (limit === null || limit.ratio <= 0 || busBandwidth.bytesPerSecond <= 0) return null;
  return busBandwidth.bytesPerSecond / limit.ratio;
}

/**
 * Whether the limit applies to this size: not if it is of the smallest measured loop, or of memory that caches beat.
 */
function holds({ limit }: Measurement): boolean {
  if (limit === null) return false;
  const { basis, kind, loopBytes, mustMoveBytes, ratio } = limit;
  if (basis !== undefined) return true;
  if (kind === 'between cores') return mustMoveBytes >= smallestPassed;
  return loopBytes === undefined ? ratio <= 1 : mustMoveBytes >= loopBytes;
}

export interface LimitPoint {
  readonly series: string;
  readonly size: number;
  /** In GB/s. */
  readonly limit: number;
}

/**
 * The points of limit lines, one for repeats; `shared` if all series have the same line, which is then returned once.
 */
export function limitPoints(
  points: readonly {
    readonly series: string;
    readonly size: number;
    readonly measurement: Measurement;
  }[],
): { readonly points: readonly LimitPoint[]; readonly shared: boolean } {
  const all = points.flatMap(({ series, size, measurement }): LimitPoint[] => {
    const limit = holds(measurement) ? limitBandwidth(measurement) : null;
    return limit === null ? [] : [{ series, size, limit: limit / 1e9 }];
  });
  // Repeats use the median, as for their figures.
  const held = [...groupBy(all, ({ series, size }) => JSON.stringify([series, size])).values()].map(
    (repeats) => ({ ...repeats[0]!, limit: spreadOf(repeats.map(({ limit }) => limit)).median }),
  );
  const bySize = new Map<number, number[]>();
  for (const { size, limit } of held) bySize.set(size, [...(bySize.get(size) ?? []), limit]);
  const shared = [...bySize.values()].every(
    (limits) => Math.max(...limits) <= alike * Math.min(...limits),
  );
  if (!shared) return { points: held, shared };
  const once = [...bySize].map(([size, limits]) => ({
    series: held[0]?.series ?? '',
    size,
    limit: Math.max(...limits),
  }));
  return { points: once.sort((a, b) => a.size - b.size), shared };
}
