// The names that torchrun gives a process its place by. Programs written for it, and libraries that read them, find
// themselves in a job of `gradlink launch` without a change.
import { createHash } from 'node:crypto';

import type { JobSpec } from './job.js';
import { loopbackAddress, portsVariable, readPorts, type PortRange } from '../network.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Of a worker; the launcher alone sets them. */
export const placeVariables = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'] as const;

/** Where rank 0 listens for whoever needs to meet; what the user has set stays. */
export const meetingVariables = ['MASTER_ADDR', 'MASTER_PORT'] as const;

/** Below the ports that systems give away by themselves, so that a port which is free now still is in a moment. */
const usualPorts: PortRange = { first: 20_000, last: 29_999 };

/** Two jobs of a host have one each, with luck; whoever needs a certain one sets MASTER_PORT. */
function portOf(jobId: string, { first, last }: PortRange, taken: number): string {
  const digest = createHash('sha256').update(`port of ${jobId}`).digest();
  const port = first + (digest.readUInt32LE(0) % (last - first + 1));
  if (port !== taken) return String(port);
  return String(port === last ? first : port + 1);
}

/** `node1` of `user@node1`, `fe80::1` of `[fe80::1]`. */
function bareName(host: string): string {
  return host.replace(/^.*@/, '').replace(/^\[(.*)\]$/, '$1');
}

function addressOf({ hosts, control }: Pick<JobSpec, 'hosts' | 'control'>): string | undefined {
  if (control === undefined || control.startsWith(`${loopbackAddress}:`)) return loopbackAddress;
  return hosts?.[0] === undefined ? undefined : bareName(hosts[0]);
}

/** MASTER_ADDR, as far as it is known before the processes are started, and MASTER_PORT. */
export function meetingPoint(
  job: Pick<JobSpec, 'hosts' | 'control' | 'env' | 'outerEnv'>,
  jobId: string,
): Readonly<Record<string, string>> {
  const given: Env = { ...job.outerEnv, ...job.env };
  const address = given['MASTER_ADDR'] ?? addressOf(job);
  const ports = readPorts(given[portsVariable]) ?? usualPorts;
  // The launcher itself listens there.
  const taken = Number(job.control?.split(':').at(-1));
  return {
    ...(address === undefined ? {} : { MASTER_ADDR: address }),
    MASTER_PORT: given['MASTER_PORT'] ?? portOf(jobId, ports, taken),
  };
}

/** The first host of Slurm's `node[03-05,7],gpu1`. */
export function firstNode(list: string | undefined): string | undefined {
  const [, prefix, ranges, rest = ''] =
    /^([\w.-]+)(?:\[([\d,-]+)\]([\w.-]*))?(?:,|$)/.exec(list ?? '') ?? [];
  if (prefix === undefined) return undefined;
  return `${prefix}${/^\d*/.exec(ranges ?? '')?.[0] ?? ''}${rest}`;
}

export interface WorkerPlace {
  readonly rank: number;
  readonly size: number;
  readonly localRank?: number | undefined;
  readonly localSize?: number | undefined;
}

/** A worker's place, by torchrun's names, as far as it is known. */
export function placeEnvironment({
  rank,
  size,
  localRank,
  localSize,
}: WorkerPlace): Readonly<Record<string, string>> {
  return {
    RANK: String(rank),
    WORLD_SIZE: String(size),
    ...(localRank === undefined ? {} : { LOCAL_RANK: String(localRank) }),
    ...(localSize === undefined ? {} : { LOCAL_WORLD_SIZE: String(localSize) }),
  };
}
