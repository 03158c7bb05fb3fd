// Which host each rank runs on.
import { hostname } from 'node:os';

import type { Communicator } from './communicator.js';

/** Linux has no longer names of hosts. */
const mostNameBytes = 64;

/** The host of each rank, in the order of ranks; every rank calls it. */
export async function hostsOfRanks(communicator: Communicator): Promise<string[]> {
  const name = new Uint8Array(mostNameBytes);
  new TextEncoder().encodeInto(hostname(), name);
  const all = await communicator.allGather(name);
  return Array.from({ length: communicator.size }, (_, rank) =>
    new TextDecoder()
      .decode(all.subarray(rank * mostNameBytes, (rank + 1) * mostNameBytes))
      .replace(/\0+$/, ''),
  );
}
