// The time that this process waited for a core, which a busy host lengthens but its network does not.
import { readdirSync, readFileSync } from 'node:fs';

/** Sum over all threads since their start; NaN if unknown. */
export function waitedSeconds(tasks = '/proc/self/task'): number {
  try {
    return readdirSync(tasks).reduce((sum, task) => {
      // Nanoseconds on a core, nanoseconds of waiting for one, and time slices.
      const [, waited] = readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ');
      return sum + Number(waited) * 1e-9;
    }, 0);
  } catch {
    return NaN;
  }
}
