// Facts that should be the same on every host of a job.
import { cpus } from 'node:os';

import { probe } from '../probes.js';
import { version } from '../../version.js';

/** The facts of one host as text to compare; null if it has none. */
export interface HostFacts {
  readonly gradlink: string;
  readonly node: string;
  readonly driver: string | null;
  readonly nccl: string | null;
  readonly openmpi: string | null;
  readonly mpich: string | null;
  /** `8 x NVIDIA H100`; several kinds with commas. */
  readonly gpus: string | null;
  readonly processor: string;
}

export const factNames = [
  'gradlink',
  'node',
  'driver',
  'nccl',
  'openmpi',
  'mpich',
  'gpus',
  'processor',
] as const satisfies readonly (keyof HostFacts)[];

const timeoutMs = 20_000;

/** `2 x A, 1 x B`, in order of first appearance. */
export function counted(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const texts = [...counts].map(([name, count]) => `${count} x ${name}`);
  return texts.length === 0 ? null : texts.join(', ');
}

export async function factsHere(env: NodeJS.ProcessEnv): Promise<HostFacts> {
  const mpi = (name: 'openmpi' | 'mpich') => probe(name, timeoutMs, { ...env, GRADLINK_MPI: name });
  const [gpus, openmpi, mpich] = await Promise.all([
    probe('gpus', timeoutMs, env),
    mpi('openmpi'),
    mpi('mpich'),
  ]);
  const found = 'found' in gpus ? gpus.found : undefined;
  const libraries = found?.libraries;
  const driver = libraries?.driverRelease ?? libraries?.driverVersion;
  const processors = cpus();
  return {
    gradlink: version,
    node: process.version,
    driver: driver === undefined ? null : String(driver),
    nccl: libraries?.ncclVersion ?? null,
    openmpi: 'found' in openmpi ? openmpi.found.version : null,
    mpich: 'found' in mpich ? mpich.found.version : null,
    // All GPUs of the machine if NVML tells: the launcher decides which ones a process sees.
    gpus: counted(
      found === undefined
        ? []
        : found.installed.length > 0
          ? found.installed.map(({ name }) => name ?? 'unknown')
          : found.gpus.map(({ name }) => name),
    ),
    processor: `${processors.length} cores, ${processors[0]?.model.trim() ?? 'unknown'}`,
  };
}
