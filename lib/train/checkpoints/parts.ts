// Exchanges facts of the ranks' parts as numbers: each rank in its own slot of a sum.
import { GradlinkError } from '../../errors.js';
import { rankFile, type RankFile } from './marker.js';
import type { CheckpointRanks, TrainingPlace } from './types.js';

const digestWords = 8;
const hexDigits = 8;
/** Written, under the second name, bytes; then the digest in numbers exact in float64. */
const stride = 3 + digestWords;

/** Each rank's file; undefined if it could not be written. The same on every rank. */
export async function exchangeParts(
  ranks: CheckpointRanks,
  again: boolean,
  part: RankFile | GradlinkError,
): Promise<(RankFile | undefined)[]> {
  const all = new Float64Array(ranks.size * stride);
  if (!(part instanceof GradlinkError)) {
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

/** A rank's position in its run, which must be equal on all ranks. */
export type PlaceNumbers = Pick<TrainingPlace, 'step' | 'samplesSeen'>;

/** Each rank's position; undefined if it cannot save. The same on every rank. */
export async function exchangePlaces(
  ranks: CheckpointRanks,
  place: PlaceNumbers | undefined,
): Promise<(PlaceNumbers | undefined)[]> {
  const all = new Float64Array(3 * ranks.size);
  if (place !== undefined) all.set([1, place.step, place.samplesSeen], 3 * ranks.rank);
  await ranks.allReduce(all);
  return Array.from({ length: ranks.size }, (_, rank) => {
    const [can, step = 0, samplesSeen = 0] = all.subarray(3 * rank, 3 * rank + 3);
    return can === 1 ? { step, samplesSeen } : undefined;
  });
}

/** The ranks for which `holds` is true, the same on every rank. */
export async function ranksWhere(ranks: CheckpointRanks, holds: boolean): Promise<number[]> {
  const all = new Float64Array(ranks.size);
  if (holds) all[ranks.rank] = 1;
  await ranks.allReduce(all);
  return [...all.keys()].filter((rank) => all[rank] !== 0);
}
