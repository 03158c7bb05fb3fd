// Which cores a job's processes run on. Left to itself the kernel keeps two ranks that wait for each other on one core
// for seconds while another idles (2 ranks on 2 cores: half the bandwidth at every size), so each gets cores of its own.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** `0-2,5` as numbers. */
export function parseCoreList(text: string): number[] {
  return text
    .trim()
    .split(',')
    .flatMap((range) => {
      const [first = NaN, last = first] = range.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
}

/** The cores this process may use; none where the system does not say. */
export function allowedCores(): readonly number[] {
  try {
    const [, list] =
      /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return list === undefined ? [] : parseCoreList(list);
  } catch {
    return [];
  }
}

/**
 * Each process's share, in neighbouring cores; where there are more processes than cores, neighbouring processes share
 * one.
 *
 * @returns a list a process; undefined where a share is all there is
 */
export function shareCores(
  processes: number,
  cores: readonly number[],
): readonly (readonly number[] | undefined)[] {
  return Array.from({ length: processes }, (_, index) => {
    const begin = Math.floor((index * cores.length) / processes);
    const end = Math.max(Math.floor(((index + 1) * cores.length) / processes), begin + 1);
    const share = cores.slice(begin, end);
    return share.length < cores.length ? share : undefined;
  });
}

/**
 * Binds a process that has just been started, with the threads it has and will have. Does nothing where the system has
 * no `taskset` or the process is gone: binding is for speed only.
 */
export function bindToCores(pid: number, cores: readonly number[]): void {
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores.join(','), String(pid)], {
    stdio: 'ignore',
  });
}
