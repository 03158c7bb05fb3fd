// The installed MPI libraries, their thread level, and their support for GPU arrays.
import type { NativeMpiLibrary } from '../native/communicator.js';
import type { Probed } from './probes.js';
import { output, programFile, type Env } from './system.js';
import type { Finding } from './types.js';

/** How an MPI was built, by its own programs. */
export interface MpiBuild {
  /** Whether several threads may call at once; null if unknown. */
  readonly threads: boolean | null;
  readonly cudaAware: boolean | null;
}

/** @param text output of `ompi_info --parsable --all` */
export function openMpiBuild(text: string): MpiBuild {
  const threads = /MPI_THREAD_MULTIPLE: (yes|no)/.exec(text)?.[1];
  const cuda = /mpi_built_with_cuda_support:value:(true|false)/.exec(text)?.[1];
  return {
    threads: threads === undefined ? null : threads === 'yes',
    cudaAware: cuda === undefined ? null : cuda === 'true',
  };
}

/** @param text output of `mpichversion` */
export function mpichBuild(text: string): MpiBuild {
  const [, configured] = /^MPICH configure:(.*)$/m.exec(text) ?? [];
  if (configured === undefined) return { threads: null, cudaAware: null };
  // Full thread support is the default; CUDA is used only if configured by name.
  const threads = /--enable-threads=(\w+)/.exec(configured)?.[1] ?? 'multiple';
  return {
    threads: threads === 'multiple' || threads === 'runtime' || threads === 'default',
    cudaAware: /--with-cuda(?!=no)/.test(configured) && !configured.includes('--without-cuda'),
  };
}

export async function mpiBuilds(
  env: Env,
  timeoutMs: number,
): Promise<{ readonly openmpi: MpiBuild; readonly mpich: MpiBuild }> {
  const [openmpi, mpich] = await Promise.all([
    output('ompi_info', ['--parsable', '--all'], env, timeoutMs),
    output('mpichversion', [], env, timeoutMs),
  ]);
  return { openmpi: openMpiBuild(openmpi ?? ''), mpich: mpichBuild(mpich ?? '') };
}

const families = {
  openmpi: {
    title: 'Open MPI',
    mpirun: 'mpirun.openmpi',
    debian: 'openmpi-bin',
    headers: 'libopenmpi-dev',
  },
  mpich: { title: 'MPICH', mpirun: 'mpirun.mpich', debian: 'mpich', headers: 'libmpich-dev' },
} as const;

export function mpiFinding(
  name: keyof typeof families,
  library: Probed<NativeMpiLibrary>,
  build: MpiBuild,
  env: Env,
): Finding {
  const { title, mpirun, debian, headers } = families[name];
  if (!('found' in library)) {
    const there = programFile(mpirun, env) !== undefined;
    // The shim exists but the MPI is not in the library path, as before `module load`.
    const [, lacking] = /(?:^|[ (])(libmpi\S*): cannot open/.exec(library.reason) ?? [];
    if (there && lacking !== undefined) {
      return {
        name,
        status: 'missing',
        text: `${title} is installed, but its ${lacking} is not on the library search path`,
        advice: `load its environment module, or put its folder into LD_LIBRARY_PATH`,
      };
    }
    return {
      name,
      status: library.broken ? 'degraded' : 'missing',
      text: library.broken
        ? `${title}: ${library.reason}`
        : there
          ? `${title} is installed, but the part of gradlink that loads it was not built`
          : `no ${title} that loads`,
      advice: there
        ? `needed for jobs under ${title}: apt-get install ${headers}, then npx gradlink build`
        : `needed to launch jobs on several hosts, one MPI is enough: apt-get install ${debian}`,
    };
  }
  const cuda =
    build.cudaAware === null
      ? 'CUDA-awareness unknown'
      : build.cudaAware
        ? 'CUDA-aware'
        : 'not CUDA-aware (gradlink does not need it)';
  const threads =
    build.threads === null
      ? 'thread level unknown'
      : build.threads
        ? 'MPI_THREAD_MULTIPLE'
        : 'no MPI_THREAD_MULTIPLE';
  const degraded = build.threads === false;
  return {
    name,
    status: degraded ? 'degraded' : 'ok',
    text: [library.found.version, threads, cuda].join(', '),
    advice: degraded ? 'gradlink calls MPI from several threads: use a build that allows it' : null,
  };
}
