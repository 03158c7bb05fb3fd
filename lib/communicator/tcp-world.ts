// Ranks that meet without MPI: at the address and port where rank 0 listens.
import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeMpiJoinOptions } from '../native/communicator.js';
import type { JobPlace } from './job.js';

/**
 * From here on what crosses hosts in this process goes over TCP.
 *
 * @throws GradlinkError ERR_UNSUPPORTED where nobody says where rank 0 listens; ERR_INVALID_ARG_VALUE where the process
 *   has joined over MPI already.
 */
export function useTcp(place: JobPlace): void {
  const { master, rank, size, job } = place;
  if (master === undefined && size > 1) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `backend 'tcp': ranks meet where rank 0 listens, and this ${place.launcher} job does not say where: set MASTER_ADDR ` +
        "to a name or an address of rank 0's host and MASTER_PORT to a free port there, the same on all ranks",
    );
  }
  const { address, port } = master ?? { address: '127.0.0.1', port: 0 };
  native().useTcp({ rank, size, address, port, secret: job });
}

/** What the ranks of a world that meet over TCP join with. */
export function tcpWorldOptions(
  place: JobPlace | undefined,
  timeoutMs: number,
): NativeMpiJoinOptions {
  useTcp(place ?? { job: '', rank: 0, size: 1, launcher: '', backend: 'tcp', severalHosts: false });
  return { name: 'world', ranks: new Int32Array(), timeoutMs };
}
