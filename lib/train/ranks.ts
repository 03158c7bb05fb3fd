// Checks of training's communicators.
import { Communicator, LocalGroup } from '../communicator/communicator.js';
import { GradlinkError, describe } from '../errors.js';

/** Repeats the types' check for untyped programs: one rank with arrays in host memory. */
export function assertRankOnHost(communicator: unknown, name: string): void {
  const isOne = communicator instanceof Communicator;
  if (isOne && communicator.gpus.length === 0) return;
  const got = isOne
    ? 'one whose arrays are on GPUs; join with backend shm or mpi and no gpu'
    : communicator instanceof LocalGroup
      ? 'a group of ranks; take one of its openRanks()'
      : describe(communicator);
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `${name}: expected a communicator of one rank in host memory, got ${got}`,
    { usable: true },
  );
}
