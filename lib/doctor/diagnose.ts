// Everything the doctor looks at, in the order of its lines.
import { gpuFindings } from './gpus.js';
import { addonFindings, hugePagesFinding, ptraceFinding, sharedMemoryFinding } from './host.js';
import { containerLimits } from '../results/container-limits.js';
import { hostsAround } from './hosts/index.js';
import { launcherFindings } from './launchers.js';
import { coresFinding, limitsFinding, memoryFinding, thisMachine } from './limits.js';
import { mpiBuilds, mpiFinding } from './mpi.js';
import { probe } from './probes.js';
import { tfjsFinding } from './tfjs.js';
import { seeTfjsNode, tfjsNodeFinding } from './tfjs-node.js';
import { readTopology } from './topology.js';
import { readText } from './system.js';
import { diagnosisVersion, type Diagnosis, type Topology } from './types.js';

/** A library that takes longer hangs: drivers of many GPUs take seconds to start. */
const timeoutMs = 20_000;

export interface DiagnoseOptions {
  readonly packageVersion: string;
  readonly env: NodeJS.ProcessEnv;
  /** The hostfile for `gradlink launch -H`. */
  readonly hostfile?: string | undefined;
  /** Runs a command on a host, for example `ssh -p 2222`; absent: ssh. */
  readonly remoteShell?: string | undefined;
}

/** Checks this machine. Never fails: errors become findings. */
export async function diagnose({
  packageVersion,
  env,
  hostfile,
  remoteShell,
}: DiagnoseOptions): Promise<Diagnosis> {
  const startedAt = new Date().toISOString();
  const start = performance.now();
  const withMpi = (name: string): NodeJS.ProcessEnv => ({ ...env, GRADLINK_MPI: name });
  const [gpus, openmpi, mpich, builds, tfjsNode] = await Promise.all([
    probe('gpus', timeoutMs, env),
    probe('openmpi', timeoutMs, withMpi('openmpi')),
    probe('mpich', timeoutMs, withMpi('mpich')),
    mpiBuilds(env, timeoutMs),
    seeTfjsNode(timeoutMs, env),
  ]);
  // Runs alone: the other probes would use memory bandwidth.
  const cores = await probe('cores', timeoutMs, env);
  const [limits, machine] = [containerLimits(), thisMachine()];
  const findings = [
    coresFinding(limits, machine),
    memoryFinding(limits, machine),
    limitsFinding(limits),
    ...addonFindings(cores),
    sharedMemoryFinding(),
    hugePagesFinding(),
    ptraceFinding(readText('/proc/sys/kernel/yama/ptrace_scope')),
    mpiFinding('openmpi', openmpi, builds.openmpi, env),
    mpiFinding('mpich', mpich, builds.mpich, env),
    ...gpuFindings(gpus),
    tfjsFinding(),
    ...tfjsNode.map((seen) => tfjsNodeFinding(seen, gpus)),
    ...launcherFindings(env, hostfile),
    ...(await hostsAround({ env, hostfile, remoteShell })),
  ];
  return {
    diagnosisVersion,
    packageVersion,
    startedAt,
    seconds: (performance.now() - start) / 1000,
    findings,
    topology: readTopology(gpus),
  };
}

export async function topologyOf(env: NodeJS.ProcessEnv): Promise<Topology> {
  return readTopology(await probe('gpus', timeoutMs, env));
}
