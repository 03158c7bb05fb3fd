// The workers that run a store together, as far as measuring needs them: they start each batch together and tell one
// another what it took.
import { Communicator } from '../../communicator/communicator.js';
import { readJob } from '../../communicator/joining/job.js';
import { parseStoreType } from '../../kvstore/types.js';
import { gatherNumbers } from '../job.js';
import { coresLimitOfJob, type CoresLimit } from '../machine/cores-limit.js';

export interface StoreJob extends AsyncDisposable {
  readonly rank: number;
  readonly size: number;
  barrier(): Promise<void>;
  /** What each worker brings, in the order of ranks; all bring equally many. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
  /** Measures what passes between the workers; undefined of several hosts. Absent where there is one worker. */
  readonly measureCores?: (availableCores: number) => Promise<CoresLimit | undefined>;
}

/** A store of one process. */
export const aloneInJob: StoreJob = {
  rank: 0,
  size: 1,
  barrier: () => Promise.resolve(),
  gather: (values) => Promise.resolve([values]),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/** Whether a store of this type is made of all workers of a job. */
export function isShared(kvStore: string): boolean {
  const { kind } = parseStoreType(kvStore);
  return kind === 'allreduce' || kind.startsWith('dist_');
}

// Checking a large network's results takes one worker longer than another.
const timeoutMs = 300_000;

/** The job's workers where one of the stores is made of them; else this process alone. */
export async function openStoreJob(kvStores: readonly string[]): Promise<StoreJob> {
  if (!kvStores.some(isShared) || readJob() === undefined) return aloneInJob;
  const world = await Communicator.world({ timeoutMs });
  return {
    rank: world.rank,
    size: world.size,
    barrier: () => world.barrier(),
    gather: (values) => gatherNumbers(world, values),
    measureCores: (availableCores) => coresLimitOfJob(world, availableCores),
    [Symbol.asyncDispose]: () => world.close(),
  };
}
