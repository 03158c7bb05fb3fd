// Gives this rank a GPU of its own, before TensorFlow sees them all.
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
 * Lets this process see one GPU, by its place among the ranks of its host, and take memory as it needs it. Outside a job
 * all GPUs stay visible. What the user set stays as it is, and of a list of GPUs each rank gets its entry.
 *
 * @returns undefined outside a job, and where there is no GPU.
 */
export function takeOwnGpu(): GpuShare | undefined {
  // The environment of a worker thread is a copy that no library reads.
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
  // Once a GPU; the launcher has said it where it gave the GPUs.
  const first = (localPlace(env)?.localRank ?? 0) < share.gpus;
  const shared = sharedText('ranks', share);
  if (shared !== undefined && first && env[ownGpuVariable] === undefined) {
    warn(shared, 'GRADLINK_GPU_SHARED');
  }
  return share;
}
