// The job of this process for measurements: its size, and values from each rank.
import type { Communicator } from '../communicator/communicator.js';
import { readJob } from '../communicator/joining/job.js';
import { argumentError } from '../errors.js';

/** The size of this process's job; undefined without a launcher. */
export function jobSize(): number | undefined {
  return readJob()?.size;
}

/** The values of each rank, in order; all give the same number. */
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
 * The number of ranks of a run: the job's, or without a job as requested.
 *
 * @param refuse makes the error if the job's number differs from the requested one; default a RangeError
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
