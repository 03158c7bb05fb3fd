// This process's rank in its MPI job, and what must happen when it fails.
import { inspect } from 'node:util';

import { GradlinkError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeCheck, NativeCommunicator } from '../native/communicator.js';
import type { JobPlace } from './job.js';

/**
 * Joins the workers of the job.
 *
 * @param place - undefined where no launcher started this process: a world of one.
 * @param gpu - where this rank's arrays are; null for the host's memory.
 * @param nccl - their data goes through NCCL, and the ranks agree as it says; null: through the memory of the host.
 */
export async function joinMpiWorld(
  place: JobPlace | undefined,
  timeoutMs: number,
  gpu: number | null,
  nccl: NativeCheck | null = null,
): Promise<NativeCommunicator> {
  if (place !== undefined && place.mpi === undefined) {
    throw new GradlinkError(
      'ERR_UNSUPPORTED',
      `backend 'mpi': ${place.launcher} starts no MPI processes; use mpirun, srun --mpi=pmix or ` +
        '`gradlink launch --launcher mpi`',
    );
  }
  const workers = place?.size ?? 1;
  const all = place?.mpi?.size ?? 1;
  // Without servers the workers are all there is, whatever MPI numbers them.
  const ranks = Int32Array.from({ length: workers < all ? workers : 0 }, (_, rank) => rank);
  endJobOnFailure();
  const joined = await native().NativeCommunicator.joinMpi(
    { name: 'world', ranks, timeoutMs },
    gpu,
    nccl,
  );
  if (joined.size === workers) return joined;
  const { size } = joined;
  await joined.close();
  throw new GradlinkError(
    'ERR_MISMATCH',
    `${place?.launcher ?? 'no launcher'} says that this job has ${workers} ranks, MPI finds ${size}: the launcher and ` +
      'the MPI library do not speak to one another. Use the mpirun of the same MPI, srun --mpi=pmix for Open MPI, ' +
      'or name the other MPI in GRADLINK_MPI',
  );
}

let watching = false;

/**
 * The others of the job would wait for a process that is gone. An uncaught error ends them all, with its message; so
 * does an exit status other than 0.
 */
export function endJobOnFailure(): void {
  if (watching) return;
  watching = true;
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    // Somebody else's handler decides whether the process goes on.
    const handled =
      process.listenerCount('uncaughtException') > 0 ||
      process.hasUncaughtExceptionCaptureCallback();
    if (!handled) native().abortMpiJob(`${origin}: ${inspect(error)}`, 1);
  });
  process.on('exit', (status) => {
    if (status !== 0) {
      native().abortMpiJob(`a process of the job exits with status ${status}`, status & 0xff || 1);
    }
  });
}
