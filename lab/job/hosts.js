// Two hosts on this machine for lab/job/run.js: network namespaces with a link between them.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Makes them, and is the remote shell to them. */
export const netns = join(import.meta.dirname, '../../test/hosts/netns.sh');

const sides = ['a', 'b'];
const patienceMs = 60_000;

/** @param name of at most 8 characters, which no other hosts of this machine have */
export function makeHosts(name) {
  const printed = execFileSync(netns, ['up', name], { encoding: 'utf8' });
  return printed.trim().split('\n');
}

export const cutLink = (name) => execFileSync(netns, ['cut', name]);

function processesOn(name) {
  return sides.flatMap((side) =>
    execFileSync('ip', ['netns', 'pids', `${name}-${side}`], { encoding: 'utf8' })
      .split('\n')
      // A process that has ended and waits for its parent has no program any more.
      .filter((pid) => pid !== '' && existsSync(`/proc/${pid}/exe`)),
  );
}

/** What jobs share memory by, should it have a name. */
const segments = () => readdirSync('/dev/shm').filter((file) => file.includes('gradlink'));

/**
 * Removes them, once what ran there has ended by itself; of the host that was cut off too, whose processes find out by
 * themselves.
 *
 * @returns what was left then and afterwards
 */
export async function removeHosts(name) {
  const giveUp = performance.now() + patienceMs;
  let processes = processesOn(name);
  while (processes.length > 0 && performance.now() < giveUp) {
    await sleep(50);
    processes = processesOn(name);
  }
  execFileSync(netns, ['down', name]);
  const namespaces = readdirSync('/run/netns').filter((file) => file.startsWith(`${name}-`));
  return {
    processes: processes.length,
    namespaces: namespaces.length,
    segments: segments().length,
  };
}
