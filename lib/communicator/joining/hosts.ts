// Which host each rank runs on, and what else ranks say of themselves.
import { hostname } from 'node:os';

import type { CallOptions } from '../calls/types.js';

/** Linux has no longer names of hosts. */
const mostNameBytes = 64;

interface Ranks {
  readonly size: number;
  allGather(data: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
}

/** The host of each rank, in the order of ranks; every rank calls it. */
export function hostsOfRanks(communicator: Ranks, options?: CallOptions): Promise<string[]> {
  return textsOfRanks(communicator, hostname(), mostNameBytes, options);
}

/** What each rank says, at most so many bytes of it, in the order of ranks; every rank calls it. */
export async function textsOfRanks(
  communicator: Ranks,
  text: string,
  mostBytes: number,
  options?: CallOptions,
): Promise<string[]> {
  const own = new Uint8Array(mostBytes);
  new TextEncoder().encodeInto(text, own);
  const all = await communicator.allGather(own, options);
  return Array.from({ length: communicator.size }, (_, rank) => {
    const bytes = all.subarray(rank * mostBytes, (rank + 1) * mostBytes);
    const [said = ''] = new TextDecoder().decode(bytes).split('\0', 1);
    return said;
  });
}
