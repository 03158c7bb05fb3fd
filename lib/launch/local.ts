// The launcher `local`: every process is a child on this host.
import { shareCores } from './cores.js';
import { shareCoresNear } from './gpu-cores.js';
import { workerShare, workerVariables, type GpuShare } from './gpus.js';
import { jobEnvironment, labelOf, variablesOf, type JobSpec, type Launcher } from './job.js';
import { serverCommand } from './programs.js';
import { placeEnvironment } from './torchrun.js';

/**
 * Gives workers and servers their own cores while there are enough. Beyond that each role is spread over all cores,
 * because a worker mostly waits for its servers rather than running beside them.
 */
function shares(
  job: JobSpec,
  gpus: readonly (GpuShare | undefined)[],
): readonly (readonly number[] | undefined)[] {
  const { workers, servers, cores } = job;
  const near = shareCoresNear(
    gpus.map((share) => share?.gpu.split(',') ?? []),
    cores,
  );
  if (near !== undefined) return [...near, ...shareCores(servers, cores)];
  return workers + servers <= cores.length
    ? shareCores(workers + servers, cores)
    : [...shareCores(workers, cores), ...shareCores(servers, cores)];
}

function gpuShares(
  { gpusPerWorker, workers }: JobSpec,
  env: JobSpec['outerEnv'],
): readonly (GpuShare | undefined)[] {
  return Array.from({ length: workers }, (_, localRank) =>
    gpusPerWorker === undefined
      ? undefined
      : workerShare({ localRank, localSize: workers }, env, undefined, gpusPerWorker),
  );
}

export const local: Launcher = {
  name: 'local',
  plan(job, jobId) {
    const common = jobEnvironment(job, jobId);
    const size = job.workers;
    const outer = variablesOf(job);
    const gpus = gpuShares(job, outer);
    return shares(job, gpus).map((cores, place) => {
      const bound = cores === undefined ? {} : { cores };
      if (place >= job.workers) {
        const index = place - job.workers;
        return {
          ...bound,
          index,
          role: 'server' as const,
          label: labelOf('server', index),
          command: serverCommand(),
          env: {
            ...common,
            ...job.roleEnv?.server,
            GRADLINK_ROLE: 'server',
            GRADLINK_SERVER_RANK: String(index),
          },
        };
      }
      return {
        ...bound,
        index: place,
        role: 'worker' as const,
        label: labelOf('worker', place),
        command: job.command,
        // Communicator.world() reads these. Ranks follow launch order on this one host.
        env: {
          ...common,
          ...job.roleEnv?.worker,
          ...workerVariables(gpus[place], outer),
          ...placeEnvironment({ rank: place, size, localRank: place, localSize: size }),
          GRADLINK_ROLE: 'worker',
          GRADLINK_RANK: String(place),
          GRADLINK_SIZE: String(job.workers),
          GRADLINK_LOCAL_RANK: String(place),
          GRADLINK_LOCAL_SIZE: String(job.workers),
        },
      };
    });
  },
};
