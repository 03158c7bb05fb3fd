// Finds the processes of a job through /proc, so that what a rank started in the background ends with the job.
import { readdirSync, readFileSync } from 'node:fs';

/** How many more descriptors this process may open; Infinity where nobody says. */
export function freeDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
    return most - readdirSync('/proc/self/fd').length;
  } catch {
    return Infinity;
  }
}

/** Process group and state, from the text behind the command name (which may hold blanks and parentheses). */
function groupOf(pid: string): number | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // A zombie has ended; where nobody reaps orphans it would stay in its group forever.
  return state === 'Z' || state === 'X' ? undefined : Number(group);
}

/**
 * Live processes that belong to a job: members of one of its process groups, or bearers of its mark in the environment
 * they were started with (which holds for those that left the group too).
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
        // It ended meanwhile, or belongs to another user: then it is not ours.
        return false;
      }
    })
    .map(Number);
}

/** Why a program did not start, and the status that a shell ends with then. */
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
 * Sends a signal. A process that has ended meanwhile is no error, nor is one that took another user's identity.
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
