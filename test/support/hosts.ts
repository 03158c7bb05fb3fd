// Hosts on one machine, for tests: network namespaces with a link between each two (test/hosts/netns.sh).
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

/** Makes the hosts NAME-a, NAME-b ...; returns their addresses. */
export function makeHosts(name: string, count = 2): string[] {
  return execFileSync(netns, ['up', name, String(count)], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

/** What becomes of the packets of one direction: no more a second, such as `50mbit`; percent lost; milliseconds later. */
type Shape =
  | readonly ['rate', string]
  | readonly ['loss', number]
  /** Needs python3. */
  | readonly ['delay', number];

/** Shapes what one host sends to another: `shapeWay(name, 'a', 'b', 'loss', 1)`. Needs tc. */
export function shapeWay(name: string, from: string, to: string, ...[how, much]: Shape): void {
  execFileSync(netns, ['shape', name, from, to, how, String(much)]);
}

/** Lets a link carry only so much each way: `slowLink(name, 'a', 'b', '50mbit')`. */
export function slowLink(name: string, one: string, other: string, rate: string): void {
  shapeWay(name, one, other, 'rate', rate);
  shapeWay(name, other, one, 'rate', rate);
}

/** Loses all TCP packets between two hosts, as a firewall that says nothing. Needs tc. */
export function blockLink(name: string, one: string, other: string): void {
  execFileSync(netns, ['block', name, one, other]);
}

/** A firewall on a host that forgets connections at rest for so many seconds. Needs nft. */
export function forgetRest(host: string, seconds: number): void {
  execFileSync(netns, ['forget', host, String(seconds)]);
}

/** How many packets of TCP that firewall has let in, and how many connections it knows. */
export function firewallOf(host: string): { packets: number; connections: number } {
  const script = 'nft -j list chain ip firewall input; cat /proc/net/nf_conntrack';
  const ask = ['enter', host, 'sh', '-ec', script];
  const text = execFileSync(netns, ask, { encoding: 'utf8' });
  const [, packets] = /"packets": (\d+)/.exec(text) ?? [];
  return { packets: Number(packets), connections: text.split('ESTABLISHED').length - 1 };
}

/** Breaks the link between NAME-a and NAME-b. */
export function cutLink(name: string): void {
  execFileSync(netns, ['cut', name]);
}

/** Ends what runs on them and removes them. */
export function removeHosts(name: string): void {
  execFileSync(netns, ['down', name]);
}

/** Runs a test on two hosts of its own, NAME-a and NAME-b, or skips it; `lacking`: what else it needs. */
export async function onHosts(
  context: { skip: (why: string) => void },
  prefix: string,
  test: (name: string, address: string) => Promise<void>,
  lacking?: string,
): Promise<void> {
  const reason = noHosts() ?? lacking;
  if (reason !== undefined) context.skip(reason);
  const name = `${prefix}${process.pid % 100_000}`;
  const [address = ''] = makeHosts(name);
  try {
    await test(name, address);
  } finally {
    removeHosts(name);
  }
}
