// A smaller job after the loss of a worker or a host.
import type { JobSpec } from './job.js';
import type { Member } from './members.js';

export interface Shrunk {
  readonly job: JobSpec;
  /** Hosts on which no process of the job is left. */
  readonly without: readonly string[];
}

/** Its number among all processes, workers first. */
function placeOf({ role, index }: Member, { workers }: JobSpec): number {
  return role === 'server' ? workers + index : index;
}

/**
 * Leaves out lost workers. Servers stay as many, because clients count on it: those of a lost host move round-robin to
 * the remaining hosts.
 *
 * @param launcher its name; srun is given the lost hosts to exclude
 * @returns the smaller job, or why there is none
 */
export function shrink(
  job: JobSpec,
  lost: readonly Member[],
  launcher: string,
): Shrunk | { readonly reason: string } {
  const places = new Set(lost.map((member) => placeOf(member, job)));
  const lostWorkers = [...places].filter((place) => place < job.workers).length;
  const workers = job.workers - lostWorkers;
  const { hosts } = job;
  if (hosts === undefined) return withoutNames({ ...job, workers }, lost, launcher);
  const left = hosts.filter((_, place) => !places.has(place));
  const ofWorkers = hosts.slice(0, job.workers).filter((_, place) => !places.has(place));
  // A host that lost only some of its processes is still there.
  const there = [...new Set(left)];
  let next = 0;
  const ofServers = hosts
    .slice(job.workers)
    .map((host) => (there.includes(host) ? host : (there[next++ % there.length] ?? host)));
  const without = [...new Set(hosts)].filter((host) => !there.includes(host));
  return { job: { ...job, workers, hosts: [...ofWorkers, ...ofServers] }, without };
}

/** For hosts that mpirun or srun chose. */
function withoutNames(
  job: JobSpec,
  lost: readonly Member[],
  launcher: string,
): Shrunk | { readonly reason: string } {
  const away = lost.flatMap(({ host }) => (host === undefined ? [] : [host]));
  const without = [...new Set(away)];
  if (without.length === 0) return { job, without };
  if (launcher !== 'slurm') {
    return {
      reason: `mpirun chooses the hosts, and would take ${without.join(', ')} again: name the hosts with -H`,
    };
  }
  const starterArguments = [...job.starterArguments, `--exclude=${without.join(',')}`];
  return { job: { ...job, starterArguments }, without };
}
