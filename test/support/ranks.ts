// Ranks of a group of this process for the tests of a file: opened by a test, closed after it.
import { afterEach } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import type { CheckpointRanks } from '../../lib/train/checkpoints/types.js';

/** Call it once, outside of tests; what it gives opens so many ranks, in place of those before. */
export function ranksOfTests(): (n: number) => Promise<readonly Communicator[]> {
  let group: LocalGroup | undefined;
  const close = async () => {
    await group?.close();
    group = undefined;
  };
  afterEach(close);
  return async (n) => {
    await close();
    group = Communicator.local(n);
    return await group.openRanks();
  };
}

/** Runs `body` side by side as each rank of a group in this process. */
export async function asRanks<T>(
  size: number,
  body: (comm: Communicator) => Promise<T>,
): Promise<T[]> {
  await using group = Communicator.local(size);
  const ranks = await group.openRanks();
  return await Promise.all(ranks.map((comm) => body(comm)));
}

/** One rank that hears no other, for what saves checkpoints. */
export const noPeers: CheckpointRanks = {
  rank: 0,
  size: 1,
  allReduce: () => Promise.resolve(),
  broadcast: () => Promise.resolve(),
};

/** Of a promise that settled: the code of its error, or 'fulfilled'. */
export const codeOf = (ended: PromiseSettledResult<unknown>): unknown =>
  ended.status === 'rejected' ? (ended.reason as { code?: unknown }).code : ended.status;
