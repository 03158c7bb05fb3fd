// The workers of a store for measurements: they start each batch together and exchange times.
import { Communicator } from '../../communicator/communicator.js';
import { readJob } from '../../communicator/joining/job.js';
import { parseStoreType } from '../../kvstore/types.js';
import { gatherNumbers } from '../job.js';
import { coresLimitOfJob, type CoresLimit } from '../machine/cores-limit.js';

export interface StoreJob extends AsyncDisposable {
  readonly rank: number;
  readonly size: number;
  barrier(): Promise<void>;
  /** The values of each worker, in rank order; all give the same number. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
  /** Measures the limit between workers; undefined for several hosts. Absent with one worker. */
  readonly measureCores?: (availableCores: number) => Promise<CoresLimit | undefined>;
}

/** For a store of one process. */
export const aloneInJob: StoreJob = {
  rank: 0,
  size: 1,
  barrier: () => Promise.resolve(),
  gather: (values) => Promise.resolve([values]),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

export function isShared(kvStore: string): boolean {
  const { kind } = parseStoreType(kvStore);
  return kind === 'allreduce' || kind.startsWith('dist_');
}

// Checking a large network takes some workers longer than others.
const timeoutMs = 300_000;

/** The job's workers if one of the stores needs them; otherwise this process alone. */
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
