// What the ranks tell one another of their parts: numbers, each rank in a place of its own, summed.
import { rankFile, type RankFile } from './marker.js';
import type { CheckpointRanks } from './types.js';

const digestWords = 8;
const hexDigits = 8;
/** Written or not, again or not, bytes; then the digest as numbers that a double holds exactly. */
const stride = 3 + digestWords;

/** What each rank wrote; undefined where it could not. Every rank gets the same. */
export async function exchangeParts(
  ranks: CheckpointRanks,
  again: boolean,
  part: RankFile | Error,
): Promise<(RankFile | undefined)[]> {
  const all = new Float64Array(ranks.size * stride);
  if (!(part instanceof Error)) {
    const words = Array.from({ length: digestWords }, (_, word) =>
      parseInt(part.sha256.slice(word * hexDigits, (word + 1) * hexDigits), 16),
    );
    all.set([1, again ? 1 : 0, part.bytes, ...words], ranks.rank * stride);
  }
  await ranks.allReduce(all);
  return Array.from({ length: ranks.size }, (_, rank) => {
    const [written, renamed, bytes = 0, ...words] = all.subarray(
      rank * stride,
      (rank + 1) * stride,
    );
    if (written !== 1) return undefined;
    const sha256 = words.map((word) => word.toString(16).padStart(hexDigits, '0')).join('');
    return { name: rankFile(rank, renamed === 1), bytes, sha256 };
  });
}

/** The ranks for which `holds` is true, the same list on every rank. */
export async function ranksWhere(ranks: CheckpointRanks, holds: boolean): Promise<number[]> {
  const all = new Float64Array(ranks.size);
  if (holds) all[ranks.rank] = 1;
  await ranks.allReduce(all);
  return [...all.keys()].filter((rank) => all[rank] !== 0);
}
