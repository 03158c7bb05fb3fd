// The addon on this host, and which memory the host lets processes share.
import { statfsSync } from 'node:fs';

import { bandwidthText, timeText } from '../results/units.js';
import { gibibytes } from './limits.js';
import type { CoresFound, Probed } from './probes.js';
import { readText } from './system.js';
import type { Finding } from './types.js';

/** Containers get less by default; a few large arrays fill it. */
const enoughShared = 2 ** 30;
/** SIMD level, threads and quick bandwidth of the memory. */
export function addonFindings(cores: Probed<CoresFound>): Finding[] {
  if (!('found' in cores)) {
    // The loader's message lists its attempts, then the remedies.
    const [text = '', ...remedies] = cores.reason.split('\nDo one of these:\n  - ');
    const advice = remedies.join('').replaceAll('\n  - ', '; or ');
    return [{ name: 'addon', status: 'missing', text, advice: advice === '' ? null : advice }];
  }
  const { addon, simdLevel, threads, copyBytesPerSecond, wakeUpSeconds } = cores.found;
  const scalar = simdLevel === 'scalar';
  return [
    { name: 'addon', status: 'ok', text: addon, advice: null },
    {
      name: 'simd',
      status: scalar ? 'degraded' : 'ok',
      text: `${simdLevel}, ${String(threads)} thread${threads === 1 ? '' : 's'}`,
      advice: scalar
        ? 'this processor has neither AVX2 nor NEON: sums run one element at a time'
        : null,
    },
    {
      name: 'memory bandwidth',
      status: 'ok',
      text: `${bandwidthText(copyBytesPerSecond)} read and written by a copy past the caches (quick look)`,
      advice: null,
    },
    {
      name: 'wake-up',
      status: 'ok',
      text: `${timeText(wakeUpSeconds)} until a thread that sleeps runs; ranks with a core each spin about as long before they sleep`,
      advice: null,
    },
  ];
}

export function sharedMemoryFinding(folder = '/dev/shm'): Finding {
  const name = 'shared memory';
  try {
    const { bsize, blocks, bavail } = statfsSync(folder);
    const size = bsize * blocks;
    const free = bsize * bavail;
    const small = free < enoughShared;
    return {
      name,
      status: small ? 'degraded' : 'ok',
      text: `${folder}: ${gibibytes(size)}, ${gibibytes(free)} free`,
      advice: small
        ? 'ranks of several processes keep their arrays here: start the container with --shm-size=8g, or mount -o remount,size=8g /dev/shm'
        : null,
    };
  } catch (error) {
    return {
      name,
      status: 'missing',
      text: `${folder} cannot be used (${(error as Error).message})`,
      advice: 'ranks of several processes need it: mount -t tmpfs tmpfs /dev/shm',
    };
  }
}

/** The selected word: `always [madvise] never`. */
function chosen(text: string | undefined): string | undefined {
  return /\[([^[\]]+)\]/.exec(text ?? '')?.[1];
}

/** Huge pages: a program may request them for its arrays; shared memory has them only if the system is set so. */
export function hugePagesFinding(folder = '/sys/kernel/mm/transparent_hugepage'): Finding {
  const name = 'huge pages';
  const arrays = chosen(readText(`${folder}/enabled`));
  const shared = chosen(readText(`${folder}/shmem_enabled`));
  if (arrays === undefined) {
    return { name, status: 'ok', text: 'this kernel has none', advice: null };
  }
  const ways = { always: 'for all', madvise: 'on request' } as Readonly<Record<string, string>>;
  return {
    name,
    status: arrays === 'never' ? 'degraded' : 'ok',
    text: `arrays: ${ways[arrays] ?? arrays}; memory between processes: ${shared ?? 'unknown'}`,
    advice:
      arrays === 'never'
        ? `large arrays cost 512 first touches instead of one: echo madvise > ${folder}/enabled`
        : null,
  };
}

const scopes = [
  'any process of this user',
  'its ancestors, and processes that it names',
  'administrators only',
  'no process',
] as const;

/** Whether processes may read each other's memory: Open MPI and MPICH then copy once. gradlink does not need it. */
export function ptraceFinding(text: string | undefined): Finding {
  const name = 'ptrace scope';
  if (text === undefined) {
    return { name, status: 'ok', text: 'not restricted (no Yama)', advice: null };
  }
  const scope = Number(text);
  const who = scopes[scope] ?? 'unknown';
  return {
    name,
    status: scope === 0 ? 'ok' : 'degraded',
    text: `${text}: who may read a process's memory: ${who}`,
    advice:
      scope === 0
        ? null
        : 'MPI between processes of one host copies twice (gradlink itself does not need it): sysctl kernel.yama.ptrace_scope=0',
  };
}
