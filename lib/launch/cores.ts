// Assigns CPU cores to the job's processes. Without binding, the kernel may keep two waiting ranks on one core for
// seconds while another core idles (2 ranks on 2 cores: half the bandwidth at every size).
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

/** The cores this process may use; empty if the system does not tell. */
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
 * Splits adjacent cores among the processes. With more processes than cores, adjacent processes share a core.
 *
 * @returns a list per process; undefined if each would get all cores
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
 * Binds a running process with all its threads. Binding only affects speed, so a missing `taskset` or process is
 * ignored.
 */
export function bindToCores(pid: number, cores: readonly number[]): void {
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores.join(','), String(pid)], {
    stdio: 'ignore',
  });
}
