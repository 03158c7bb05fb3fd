// Hostfiles, and which process of a job goes to which host.
import { isIPv6 } from 'node:net';

import { printable } from '../printable.js';
import type { JobSpec } from './job.js';

export interface Host {
  readonly name: string;
  /** How many processes it takes; undefined where the file does not say. */
  readonly slots?: number;
}

/** `node1`, `node1:4`, `[::1]:2`. */
const hostWord = /^(?<name>\[[^\]\s]*\]|[^\s:=]+)(?::(?<count>\d+))?$/;
/** What stands behind a host: `slots=4`, and Open MPI's limit. */
const settingWord = /^(?<key>slots|max[_-]slots)=(?<count>\d+)$/;

/**
 * What ssh, mpirun and srun may be given: USER@NAME, NAME or an address. One that began with a hyphen would be an option
 * to them, one with a comma would be two hosts.
 */
const hostName = /^(?:\w[\w.-]*@)?(?:\w[\w.-]*|\[[0-9a-fA-F:]+(?:%\w+)?\])$/;

interface Word {
  readonly name: string;
  slots?: number;
  most?: number;
}

/** The hosts of an entry, each with what stands behind it; undefined where it makes no sense. */
function wordsOf(entry: string, mayBePort: boolean): Word[] | undefined {
  const hosts: Word[] = [];
  const joined = entry
    .split('=')
    .map((part) => part.trim())
    .join('=');
  for (const word of joined.split(/\s+/)) {
    const setting = settingWord.exec(word)?.groups;
    const last = hosts.at(-1);
    if (setting !== undefined) {
      if (last === undefined) return undefined;
      const key = setting.key === 'slots' ? 'slots' : 'most';
      if (last[key] !== undefined) return undefined;
      last[key] = Number(setting.count);
      continue;
    }
    // A number by itself is no host, and rather a count.
    const host = isIPv6(word)
      ? { name: `[${word}]`, count: undefined }
      : hostWord.exec(word)?.groups;
    if (host?.name === undefined || /^\d+$/.test(host.name)) return undefined;
    const count = host.count === undefined ? undefined : Number(host.count);
    if (mayBePort && count !== undefined && (count === sshPort || count > mostSlots)) {
      throw new Error(
        `expected the slots of ${printable(host.name)} behind its colon, got ${count}: a port of ssh is ` +
          `--remote-shell "ssh -p ${count}"; that number of slots is '${printable(host.name)} slots=${count}'`,
      );
    }
    hosts.push({ name: host.name, ...(count === undefined ? {} : { slots: count }) });
  }
  return hosts.some(({ slots = 0, most = Infinity }) => slots > most) ? undefined : hosts;
}

/** MXNet's hostfiles have HOST:PORT where others have HOST:SLOTS. */
const sshPort = 22;
/** More processes has no host; ports begin there. */
const mostSlots = 1024;

function parse(entries: readonly string[], unit: 'line' | 'host', mayBePort: boolean): Host[] {
  const hosts = new Map<string, number | undefined>();
  entries.forEach((raw, index) => {
    const entry = raw.replace(/#.*/, '').trim();
    if (entry === '') return;
    const where = `${unit} ${String(index + 1)}`;
    const words = wordsOf(entry, mayBePort);
    if (words === undefined) {
      throw new Error(
        `${where}: expected HOST, HOST:SLOTS or HOST slots=SLOTS max_slots=MOST, got '${printable(entry)}'`,
      );
    }
    for (const { name, slots } of words) {
      if (!hostName.test(name)) {
        throw new Error(
          `${where}: expected a host's name of letters, digits, '.', '-' and '_' that does not begin with a '-', or an address, got '${printable(name)}'`,
        );
      }
      const before = hosts.get(name);
      if (!hosts.has(name)) hosts.set(name, slots);
      else if (before !== undefined || slots !== undefined)
        hosts.set(name, (before ?? 1) + (slots ?? 1));
    }
  });
  if (hosts.size === 0) throw new Error('expected at least one host, got none');
  return [...hosts].map(([name, slots]) => (slots === undefined ? { name } : { name, slots }));
}

/**
 * Reads a hostfile: hosts as `host`, `host:slots` or `host slots=count`; what follows a # is a comment. A host
 * that is named again gets the sum of its slots; one with 0 slots gets no process.
 *
 * @param mayBePort whether a number behind a colon may be meant as a port, which is refused with the way to say it
 * @throws Error that names the line which makes no sense
 */
export function parseHostfile(text: string, mayBePort = false): Host[] {
  return parse(text.split('\n'), 'line', mayBePort);
}

/**
 * Hosts on the command line: `host:slots,host:slots`.
 *
 * @throws Error that names the host which makes no sense
 */
export function parseHostList(text: string, mayBePort = false): Host[] {
  return parse(text.split(','), 'host', mayBePort);
}

/** Deals `count` things to hosts, one a round each, as far as `room` goes. */
function deal(count: number, room: readonly number[]): number[] {
  const dealt = room.map(() => 0);
  for (let left = count; left > 0;) {
    const before = left;
    dealt.forEach((has, host) => {
      if (left > 0 && has < (room[host] ?? 0)) {
        dealt[host] = has + 1;
        left -= 1;
      }
    });
    if (left === before) break;
  }
  return dealt;
}

/**
 * The host of each process, workers first. Servers are dealt one a host and round, so that no host carries the traffic
 * of all; workers fill what is left, host after host, so that neighbouring ranks share memory. Hosts without slots take
 * equal parts; where some have slots, one without has one.
 *
 * @throws Error when there are fewer slots than processes
 */
export function place(
  { workers, servers }: Pick<JobSpec, 'workers' | 'servers'>,
  hosts: readonly Host[],
): string[] {
  const total = workers + servers;
  const counted = hosts.some(({ slots }) => slots !== undefined);
  const room = counted
    ? hosts.map(({ slots }) => slots ?? 1)
    : deal(
        total,
        hosts.map(() => total),
      );
  const slots = room.reduce((sum, each) => sum + each, 0);
  if (slots < total) {
    throw new Error(
      `expected at least ${String(total)} slots for ${String(workers)} workers and ${String(servers)} servers, got ${String(slots)}`,
    );
  }
  // From the last host: the first has the most of the workers where they do not fill all slots.
  const ofServers = deal(servers, room.toReversed()).toReversed();
  let left = workers;
  const ofWorkers = room.map((each, host) => {
    const taken = Math.min(left, each - (ofServers[host] ?? 0));
    left -= taken;
    return taken;
  });
  const names = (counts: readonly number[]): string[] =>
    hosts.flatMap(({ name }, host) => Array.from({ length: counts[host] ?? 0 }, () => name));
  return [...names(ofWorkers), ...names(ofServers)];
}
