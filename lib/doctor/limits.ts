// Limits of a container or of the parent process.
import { availableParallelism, cpus, freemem, totalmem } from 'node:os';

import type { Bound, ContainerLimits } from '../results/container-limits.js';
import type { Finding } from './types.js';

const gibibyte = 2 ** 30;

export function gibibytes(bytes: number): string {
  return `${(bytes / gibibyte).toFixed(bytes < 10 * gibibyte ? 1 : 0)} GiB`;
}

export interface Machine {
  readonly cores: number;
  readonly allowed: number;
  readonly model: string;
  readonly memoryBytes: number;
  readonly freeBytes: number;
}

export function thisMachine(): Machine {
  const processors = cpus();
  return {
    cores: processors.length,
    allowed: availableParallelism(),
    model: processors[0]?.model.trim() ?? 'unknown',
    memoryBytes: totalmem(),
    freeBytes: freemem(),
  };
}

export function coresFinding({ cores, cpuset }: ContainerLimits, machine: Machine): Finding {
  const allowed = Math.min(machine.allowed, cpuset?.value ?? Infinity);
  const text = `${String(allowed)} of ${String(machine.cores)} cores, ${machine.model}`;
  if (cores !== null && cores.value < allowed) {
    return {
      name: 'cores',
      status: 'degraded',
      text: `${text}; the control group grants ${cores.value.toFixed(1)}`,
      advice: `threads beyond the grant are stopped in the middle of a call: raise the limit of the container (${cores.file}), or set GRADLINK_NUM_THREADS`,
    };
  }
  return { name: 'cores', status: 'ok', text, advice: null };
}

export function memoryFinding(limits: ContainerLimits, machine: Machine): Finding {
  const bounds = [limits.memoryBytes, limits.memoryHighBytes, limits.memoryAndSwapBytes];
  const bound = bounds.reduce(
    (least, one) => (one !== null && one.value < (least?.value ?? Infinity) ? one : least),
    null,
  );
  const total = Math.min(machine.memoryBytes, bound?.value ?? Infinity);
  const free = Math.min(machine.freeBytes, limits.memoryLeftBytes ?? Infinity, total);
  const tight = free < total * 0.05;
  const isBound = bound !== null && bound.value < machine.memoryBytes;
  const of = isBound ? ` of ${gibibytes(machine.memoryBytes)}, by ${bound.file}` : '';
  return {
    name: 'memory',
    status: tight ? 'degraded' : 'ok',
    text: `${gibibytes(total)}${of}, ${gibibytes(free)} free`,
    advice: tight
      ? 'large arrays may be swapped or refused: stop what fills the memory, or raise the limit of the container'
      : null,
  };
}

/** Enough descriptors and threads for the ranks, servers and launchers of a host. */
const enoughFiles = 1024;
const enoughProcesses = 512;

interface Row {
  readonly name: string;
  readonly bound: Bound | null;
  readonly text: (value: number) => string;
  /** The remedy if it is too low. */
  readonly advice?: string | undefined;
  readonly least?: number;
}

const plain = String;
const perSecond = (value: number) => `${String(value)}/s`;

/** All other limits, in one line. */
export function limitsFinding(limits: ContainerLimits): Finding {
  const rows: Row[] = [
    {
      name: 'open files',
      bound: limits.openFiles,
      text: plain,
      least: enoughFiles,
      advice: 'raise open files (ulimit -n, --ulimit nofile)',
    },
    {
      name: 'processes of the group',
      bound: limits.processes,
      text: plain,
      least: enoughProcesses,
      advice: 'let the container have more threads (--pids-limit)',
    },
    {
      name: 'processes of the user',
      bound: limits.userProcesses,
      text: plain,
      least: enoughProcesses,
      advice: 'let the user have more threads (ulimit -u, --ulimit nproc)',
    },
    { name: 'locked memory', bound: limits.lockedBytes, text: gibibytesOrLess },
    {
      name: 'address space',
      bound: limits.addressBytes,
      text: gibibytes,
      least: Infinity,
      advice:
        'do not bound the address space (ulimit -v unlimited): shared memory is mapped by every rank',
    },
    {
      name: 'size of a file',
      bound: limits.fileBytes,
      text: gibibytes,
      least: gibibyte,
      advice: 'raise the size of a file (ulimit -f): checkpoints, and shared memory, are files',
    },
    ...Object.entries(limits.hugePages).map(([size, bound]) => ({
      name: `huge pages of ${size}`,
      bound,
      text: gibibytesOrLess,
    })),
    ...Object.entries(limits.io).map(([name, bound]) => ({
      name: `io ${name}`,
      bound,
      text: perSecond,
      least: Infinity,
      advice: 'checkpoints and data wait for the disk within that bound (--device-write-bps)',
    })),
  ];
  const bounded = rows.filter(({ bound }) => bound !== null);
  const low = bounded.filter(({ bound, least = 0 }) => bound!.value < least);
  const shown = bounded.map(({ name, bound, text }) => `${name} ${text(bound!.value)}`);
  const advice = [...new Set(low.map((row) => row.advice ?? ''))].join('; ');
  return {
    name: 'limits',
    status: low.length > 0 ? 'degraded' : 'ok',
    text: shown.length > 0 ? shown.join(', ') : 'none',
    advice: low.length > 0 ? advice : null,
  };
}

function gibibytesOrLess(bytes: number): string {
  return bytes >= gibibyte ? gibibytes(bytes) : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
