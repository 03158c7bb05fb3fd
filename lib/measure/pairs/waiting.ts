// How long this process waited for a core: what a busy host takes longer by, and its network does not.
import { readdirSync, readFileSync } from 'node:fs';

/** All its threads together, since they began; NaN where the system does not tell. */
export function waitedSeconds(tasks = '/proc/self/task'): number {
  try {
    return readdirSync(tasks).reduce((sum, task) => {
      // Nanoseconds on a core, nanoseconds that it waited for one, and turns.
      const [, waited] = readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ');
      return sum + Number(waited) * 1e-9;
    }, 0);
  } catch {
    return NaN;
  }
}
