// The job that this process belongs to, as far as measuring needs it: how many ranks, and what each of them brings.
import type { Communicator } from '../communicator/communicator.js';
import { readJob } from '../communicator/joining/job.js';
import { argumentError } from '../errors.js';

/** Whether a launcher has started this process as one rank of a job, and of how many. */
export function jobSize(): number | undefined {
  return readJob()?.size;
}

/** What each rank of a communicator brings, in their order; all bring equally many. */
export async function gatherNumbers(
  world: Communicator,
  values: readonly number[],
): Promise<number[][]> {
  const all = await world.allGather(Float64Array.from(values));
  return Array.from({ length: world.size }, (_, rank) =>
    Array.from(all.subarray(rank * values.length, (rank + 1) * values.length)),
  );
}

/**
 * Ranks that a run has: those of the job, or as many as are asked for where there is none.
 *
 * @param refuse makes the error where the job has another number than is asked for; default a RangeError
 *   ERR_OUT_OF_RANGE
 */
export function rankCount(
  asked: number | undefined,
  alone: number,
  refuse: (expected: string, asked: number) => Error = (expected, got) =>
    argumentError('ERR_OUT_OF_RANGE', 'ranks', expected, got),
): number {
  const size = jobSize();
  if (size === undefined || asked === undefined || asked === size) return size ?? asked ?? alone;
  throw refuse(`the ${size} ranks of the job that this process belongs to`, asked);
}
