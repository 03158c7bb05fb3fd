// The launchers that are installed here, and the job that this process belongs to.
import { readJob } from '../communicator/joining/job.js';
import { parseHostfile } from '../launch/hosts.js';
import { interfacesHere, interfaceVariable, portsVariable, readNetwork } from '../network.js';
import { readInput } from '../results/input-file.js';
import { programFile, type Env } from './system.js';
import type { Finding } from './types.js';

function jobFinding(env: Env): Finding {
  const name = 'job';
  try {
    const job = readJob(env);
    if (job === undefined) {
      return { name, status: 'ok', text: 'none: this process is not part of a job', advice: null };
    }
    const over = { mpi: 'over MPI', tcp: 'over TCP', shm: 'in shared memory' }[job.backend];
    const text = `rank ${String(job.rank)} of ${String(job.size)}, started by ${job.launcher}, ${over}`;
    return { name, status: 'ok', text, advice: null };
  } catch (error) {
    return {
      name,
      status: 'degraded',
      text: (error as Error).message,
      advice: "Communicator.world() would fail: fix or unset the launcher's variables",
    };
  }
}

/** The address that jobs over TCP, the launcher and the doctor listen on, and why. */
function networkFinding(env: Env): Finding {
  const name = 'network';
  try {
    const { chosen, ports } = readNetwork(env);
    const at =
      chosen === undefined
        ? `any of ${interfacesHere()}, as the way to the other hosts goes`
        : `${chosen.interface} (${chosen.address}), by ${chosen.by} of ${interfaceVariable}`;
    const among =
      ports === undefined
        ? 'any port'
        : `ports ${ports.first} to ${ports.last} of ${portsVariable}`;
    return { name, status: 'ok', text: `${at}; ${among}`, advice: null };
  } catch (error) {
    return {
      name,
      status: 'degraded',
      text: (error as Error).message,
      advice: `jobs over TCP, gradlink launch and doctor --hostfile would fail: fix or unset ${interfaceVariable} and ${portsVariable}`,
    };
  }
}

function slurmFinding(env: Env): Finding {
  const name = 'slurm';
  const srun = programFile('srun', env);
  if (srun === undefined) {
    const advice = 'only needed for --launcher slurm: run this on a node of the cluster';
    return { name, status: 'missing', text: 'no srun on the path', advice };
  }
  const id = env['SLURM_JOB_ID'];
  const allocation =
    id === undefined
      ? 'outside an allocation'
      : `allocation ${id} of ${env['SLURM_NNODES'] ?? '?'} nodes`;
  return { name, status: 'ok', text: `${srun}, ${allocation}`, advice: null };
}

function programFinding(
  name: string,
  program: string,
  needed: string,
  debian: string,
  env: Env,
): Finding {
  const file = programFile(program, env);
  return file === undefined
    ? {
        name,
        status: 'missing',
        text: `no ${program} on the path`,
        advice: `only needed ${needed}: apt-get install ${debian}`,
      }
    : { name, status: 'ok', text: file, advice: null };
}

function hostfileFinding(file: string): Finding {
  const name = 'hostfile';
  try {
    const hosts = parseHostfile(readInput(file, 'a list of hosts'));
    const slots = hosts.map((host) => host.slots);
    const known = slots.some((one) => one !== undefined);
    // If some hosts have slots, a host without counts as one, as in launch.
    const sum = slots.reduce<number>((total, one) => total + (one ?? 1), 0);
    if (sum === 0) throw new Error('expected at least one slot, got none');
    const count = `${String(hosts.length)} host${hosts.length === 1 ? '' : 's'}`;
    const text = `${file}: ${count}${known ? `, ${String(sum)} slots` : ', no slots: all hosts take equal shares'}`;
    return { name, status: 'ok', text, advice: null };
  } catch (error) {
    return {
      name,
      status: 'missing',
      text: `${file}: ${(error as Error).message}`,
      advice: 'one host a line: HOST or HOST:SLOTS',
    };
  }
}

/** @param hostfile the hostfile for `gradlink launch -H`; absent: no finding */
export function launcherFindings(env: Env, hostfile: string | undefined): Finding[] {
  return [
    jobFinding(env),
    networkFinding(env),
    programFinding('mpirun', 'mpirun', 'to launch jobs on several hosts', 'openmpi-bin', env),
    programFinding('ssh', 'ssh', 'for --launcher ssh', 'openssh-client', env),
    slurmFinding(env),
    ...(hostfile === undefined ? [] : [hostfileFinding(hostfile)]),
  ];
}
