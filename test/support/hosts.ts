// Two hosts on one machine, for tests: network namespaces with a link between them (test/hosts/netns.sh).
import { execFileSync } from 'node:child_process';

import { missing } from './launching.js';

/** The script that makes them; as a remote shell it runs a command on one. */
export const netns = new URL('../hosts/netns.sh', import.meta.url).pathname;

/** Why there can be none here; undefined where there can. */
export function noHosts(): string | undefined {
  const reason = missing(['ip', 'nsenter', 'unshare'], true);
  if (reason !== undefined) return reason;
  try {
    execFileSync('unshare', ['--net', '--uts', 'true'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'network namespaces are not allowed here';
  }
}

/** Makes the hosts NAME-a and NAME-b; returns their addresses. */
export function makeHosts(name: string): string[] {
  return execFileSync(netns, ['up', name], { encoding: 'utf8' }).trim().split('\n');
}

/** Breaks the link between them. */
export function cutLink(name: string): void {
  execFileSync(netns, ['cut', name]);
}

/** Ends what runs on them and removes them. */
export function removeHosts(name: string): void {
  execFileSync(netns, ['down', name]);
}
