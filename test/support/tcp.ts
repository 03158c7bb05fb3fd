// Jobs without MPI: processes that meet where rank 0 listens.
import { createServer, type AddressInfo } from 'node:net';

import type { Running, Scripts } from './processes.js';

/** A port that nobody has: the system's choice, given back. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const loopback = '127.0.0.1';

/** What whoever starts rank `rank` of `size` tells it. `address`: of rank 0, which needs a secret where it is no loopback. */
export function placeOf(
  rank: number,
  size: number,
  port: number,
  address = loopback,
): Record<string, string> {
  return {
    // Not that of a launcher around the tests.
    GRADLINK_JOB: address === loopback ? '' : 'of this test',
    GRADLINK_RANK: '',
    RANK: String(rank),
    WORLD_SIZE: String(size),
    MASTER_ADDR: address,
    MASTER_PORT: String(port),
  };
}

/** Starts the script as each rank of a job. */
export async function startOverTcp(
  scripts: Scripts,
  size: number,
  source: string,
  env: Record<string, string> = {},
): Promise<Running[]> {
  const port = await freePort();
  return Array.from({ length: size }, (_, rank) =>
    scripts.start(source, { ...placeOf(rank, size, port), ...env }),
  );
}
