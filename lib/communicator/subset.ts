// A subset of ranks by list, implemented as a split: equal lists have equal colors.
import { distinctRanks } from '../checks.js';
import { GradlinkError } from '../errors.js';
import type { Rank } from '../topology/rank.js';
import { hashOf } from './hash.js';

/**
 * @param held - this process's ranks.
 * @param split - called with a color and a key for each of these
 */
export async function subsetOf<P extends { readonly size: number; close(): Promise<void> }>(
  ranks: readonly Rank[],
  size: number,
  held: readonly Rank[],
  split: (colors: (number | null)[], keys: number[]) => Promise<P | null>,
): Promise<P | null> {
  const list = distinctRanks(ranks, size);
  const color = hashOf(list.join()) >>> 1;
  const places = held.map((rank) => list.indexOf(rank));
  const colors = places.map((place) => (place < 0 ? null : color));
  const part = await split(colors, places);
  if (part === null || part.size === list.length) return part;
  await part.close();
  throw new GradlinkError(
    'ERR_MISMATCH',
    `subset: ranks gave different lists: only ${part.size} of the ${list.length} ranks ${list.join(', ')} gave this one`,
    { op: 'subset', usable: true },
  );
}
