// Hostfiles, and which process of a job goes to which host.
import { isIPv6 } from 'node:net';

import { printable } from '../printable.js';
import type { JobSpec } from './job.js';

export interface Host {
  readonly name: string;
  /** Number of processes it takes; undefined if the file does not tell. */
  readonly slots?: number;
}

/** `node1`, `node1:4`, `[::1]:2`. */
const hostWord = /^(?<name>\[[^\]\s]*\]|[^\s:=]+)(?::(?<count>\d+))?$/;
/** A setting behind a host: `slots=4`, or Open MPI's limit. */
const settingWord = /^(?<key>slots|max[_-]slots)=(?<count>\d+)$/;

/**
 * A host as ssh, mpirun and srun accept it: USER@NAME, NAME or an address. They would read a leading hyphen as an
 * option and a comma as two hosts.
 */
const hostName = /^(?:\w[\w.-]*@)?(?:\w[\w.-]*|\[[0-9a-fA-F:]+(?:%\w+)?\])$/;

interface Word {
  readonly name: string;
  slots?: number;
  most?: number;
}

/** The hosts of an entry with their settings; undefined if it is invalid. */
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
    // A bare number is probably a count, not a host.
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

/** MXNet's hostfiles have HOST:PORT instead of HOST:SLOTS. */
const sshPort = 22;
/** Larger numbers are taken for ports. */
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
 * Reads a hostfile: hosts as `host`, `host:slots` or `host slots=count`, comments after #. Slots of repeated hosts add
 * up; a host with 0 slots gets no process.
 *
 * @param mayBePort whether `host:number` may be meant as a port; the error then says how to write it
 * @throws Error that names the invalid line
 */
export function parseHostfile(text: string, mayBePort = false): Host[] {
  return parse(text.split('\n'), 'line', mayBePort);
}

/**
 * Hosts on the command line: `host:slots,host:slots`.
 *
 * @throws Error that names the invalid host
 */
export function parseHostList(text: string, mayBePort = false): Host[] {
  return parse(text.split(','), 'host', mayBePort);
}

/** Deals `count` items round-robin to hosts, up to `room` each. */
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
 * The host of each process, workers first. Servers are dealt round-robin, so that no host carries the traffic of all.
 * Workers then fill host after host, so that neighbouring ranks share memory. Without any slots, hosts get equal parts;
 * otherwise a host without slots has one.
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
  // Servers start from the last host: the first has the most workers if slots stay free.
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
