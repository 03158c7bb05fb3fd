// Which host each rank runs on.
import { hostname } from 'node:os';

import type { CallOptions } from '../calls/types.js';

/** Linux has no longer names of hosts. */
const mostNameBytes = 64;

interface Ranks {
  readonly size: number;
  allGather(data: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
}

/** The host of each rank, in the order of ranks; every rank calls it. */
export async function hostsOfRanks(communicator: Ranks, options?: CallOptions): Promise<string[]> {
  const name = new Uint8Array(mostNameBytes);
  new TextEncoder().encodeInto(hostname(), name);
  const all = await communicator.allGather(name, options);
  return Array.from({ length: communicator.size }, (_, rank) => {
    const bytes = all.subarray(rank * mostNameBytes, (rank + 1) * mostNameBytes);
    const [host = ''] = new TextDecoder().decode(bytes).split('\0', 1);
    return host;
  });
}
