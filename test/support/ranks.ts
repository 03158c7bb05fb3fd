// Ranks of a group of this process for the tests of a file: opened by a test, closed after it.
import { afterEach } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';

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

/** Of a promise that settled: the code of its error, or 'fulfilled'. */
export const codeOf = (ended: PromiseSettledResult<unknown>): unknown =>
  ended.status === 'rejected' ? (ended.reason as { code?: unknown }).code : ended.status;
