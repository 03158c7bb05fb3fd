// The GPU of a worker that mpirun or srun started, where the job is to give each its own.
import { gpuPerWorkerVariable, sharedText, workerShare, workerVariables } from './gpus.js';
import type { KeeperPlace } from './keeper-place.js';

type Env = Readonly<Record<string, string | undefined>>;

export interface KeeperGpu {
  /** For the worker's environment. */
  readonly variables: Readonly<Record<string, string>>;
  /** A line for the user; from the first worker on each GPU only. */
  readonly warning?: string;
}

export function keeperGpu(
  { localRank, localSize }: Pick<KeeperPlace, 'localRank' | 'localSize'>,
  env: Env,
): KeeperGpu {
  if (env[gpuPerWorkerVariable] !== '1' || localRank === undefined) return { variables: {} };
  // Servers, which come last on each host, count there too: how many workers share is not known beside them.
  const alone = env.GRADLINK_NUM_SERVERS === '0' && localSize !== undefined;
  const share = workerShare({ localRank, ...(alone ? { localSize } : {}) }, env);
  if (share === undefined) return { variables: {} };
  const text = localRank < share.gpus ? sharedText('workers', share) : undefined;
  return {
    variables: workerVariables(share, env),
    ...(text === undefined ? {} : { warning: `gradlink launch: ${text}.\n` }),
  };
}
