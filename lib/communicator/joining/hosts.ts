// The host of each rank, and other short texts from ranks.
import { hostname } from 'node:os';

import type { CallOptions } from '../calls/types.js';

/** Linux allows no longer host names. */
const mostNameBytes = 64;

interface Ranks {
  readonly size: number;
  allGather(data: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
}

/** Collective: the host of each rank, in rank order. */
export function hostsOfRanks(communicator: Ranks, options?: CallOptions): Promise<string[]> {
  return textsOfRanks(communicator, hostname(), mostNameBytes, options);
}

/** Collective: a text of each rank, cut to this many bytes, in rank order. */
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
