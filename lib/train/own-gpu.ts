// Assigns a GPU to this rank before TensorFlow sees them all.
import { isMainThread } from 'node:worker_threads';

import {
  driverIsLoaded,
  growthVariables,
  localPlace,
  ownGpuVariable,
  ownShare,
  sharedText,
  shareVariables,
  type GpuShare,
} from '../launch/gpus.js';

let given: GpuShare | undefined;

function warn(message: string, code: string): void {
  process.emitWarning(message, { type: 'GradlinkWarning', code });
}

/**
 * Makes one GPU visible to this process, by its local rank, and lets TensorFlow allocate memory as needed. Outside a
 * job all GPUs stay visible. The user's settings stay, and each rank takes its entry of a list of GPUs.
 *
 * @returns undefined outside a job and without a GPU.
 */
export function takeOwnGpu(): GpuShare | undefined {
  // A worker thread's environment is a copy that libraries do not read.
  if (!isMainThread) return undefined;
  if (given !== undefined) return given;
  const { env } = process;
  Object.assign(env, growthVariables(env));
  const share = ownShare(env);
  if (share === undefined) return undefined;
  if (env[ownGpuVariable] === undefined && share.gpus > 1 && driverIsLoaded()) {
    warn(
      'the CUDA driver was loaded before the backend of TensorFlow.js, so that this rank can no longer have a GPU of its ' +
        'own: call useBackend() before anything that uses GPUs, that package included, or use gradlink launch --gpu-per-worker',
      'GRADLINK_GPU_LATE',
    );
    return undefined;
  }
  Object.assign(env, shareVariables(share, env));
  given = share;
  // Warn once per GPU; a launcher that assigned the GPUs has already warned.
  const first = (localPlace(env)?.localRank ?? 0) < share.gpus;
  const shared = sharedText('ranks', share);
  if (shared !== undefined && first && env[ownGpuVariable] === undefined) {
    warn(shared, 'GRADLINK_GPU_SHARED');
  }
  return share;
}
