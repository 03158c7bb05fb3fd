// Finds the processes of a job through /proc, so that background processes of a rank end with the job.
import { readdirSync, readFileSync } from 'node:fs';

/** How many more descriptors this process may open; Infinity if unknown. */
export function freeDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
    return most - readdirSync('/proc/self/fd').length;
  } catch {
    return Infinity;
  }
}

/** Process group and state, from the text behind the command name (which may contain spaces and parentheses). */
function groupOf(pid: string): number | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // A zombie has ended; if nobody reaps orphans it would stay in its group forever.
  return state === 'Z' || state === 'X' ? undefined : Number(group);
}

/**
 * Live processes of a job: members of its process groups, and those that carry its mark in their environment, even
 * outside the groups.
 *
 * @param groups process groups of the ranks
 * @param mark `NAME=VALUE`; without it only the groups count
 */
export function jobProcesses(groups: ReadonlySet<number>, mark?: string): number[] {
  const bearsMark = (pid: string): boolean =>
    mark !== undefined && readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const group = groupOf(pid);
        if (group === undefined) return false;
        return groups.has(group) || bearsMark(pid);
      } catch {
        // It has ended, or belongs to another user.
        return false;
      }
    })
    .map(Number);
}

/** Why a program did not start, and the exit status that a shell would give. */
export function startFailure(
  program: string,
  { code, message }: NodeJS.ErrnoException,
): { readonly exitCode: number; readonly what: string } {
  const said: Partial<Record<string, string>> = {
    ENOENT: program.includes('/') ? `no file ${program}` : `no program ${program} in PATH`,
    EACCES: `${program} is not executable`,
  };
  const why = said[code ?? ''];
  return {
    exitCode: code === 'ENOENT' ? 127 : 126,
    what: `could not be started: ${why === undefined ? message : `${why} (${code})`}`,
  };
}

/**
 * Sends a signal. Ignores processes that have ended or run as another user.
 *
 * @param pid a process, or minus a process group
 */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
