// Jobs without MPI: processes that meet where rank 0 listens.
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

import { listenOn } from '../../lib/network.js';
import type { Running, Scripts } from './processes.js';

/**
 * A port that nobody has. It lies below those from which the system chooses: one of its own could be given to what runs
 * beside the test before rank 0 has started and listens there. `gradlink launch` chooses between the two.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  const ports = { first: randomInt(10_000, 19_000), last: 19_999 };
  const port = await listenOn(server, { ports }, '127.0.0.1');
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The sockets of IPv4 of a process, as the kernel tells. */
export function socketsOf(
  pid: number | undefined,
): { readonly address: string; readonly port: number; readonly listens: boolean }[] {
  const folder = `/proc/${String(pid)}`;
  const links = readdirSync(`${folder}/fd`).map((fd) => {
    try {
      return readlinkSync(`${folder}/fd/${fd}`);
    } catch {
      return ''; // closed meanwhile
    }
  });
  const rows = readFileSync(`${folder}/net/tcp`, 'utf8').trimEnd().split('\n').slice(1);
  return rows
    .map((row) => row.trim().split(/ +/))
    .filter((fields) => links.includes(`socket:[${String(fields[9])}]`))
    .map(([, own = '', , state]) => ({
      address: Buffer.from(own.slice(0, 8), 'hex').reverse().join('.'),
      port: parseInt(own.slice(9), 16),
      listens: state === '0A',
    }));
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
