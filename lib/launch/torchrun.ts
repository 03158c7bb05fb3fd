// torchrun's names for a process's rank and size, so that programs and libraries written for torchrun work under
// `gradlink launch`.
import { createHash } from 'node:crypto';

import type { JobSpec } from './job.js';
import { loopbackAddress, portsVariable, readPorts, type PortRange } from '../network.js';

type Env = Readonly<Record<string, string | undefined>>;

/** Set for workers by the launcher only. */
export const placeVariables = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'] as const;

/** Where rank 0 listens for rendezvous; the user's settings win. */
export const meetingVariables = ['MASTER_ADDR', 'MASTER_PORT'] as const;

/** Below the ephemeral range, so that a port which is free now stays free for a moment. */
const usualPorts: PortRange = { first: 20_000, last: 29_999 };

/** Derived from the job, so that two jobs of a host rarely collide; MASTER_PORT sets a certain one. */
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

/** MASTER_PORT, and MASTER_ADDR if it is known before the processes start. */
export function meetingPoint(
  job: Pick<JobSpec, 'hosts' | 'control' | 'env' | 'outerEnv'>,
  jobId: string,
): Readonly<Record<string, string>> {
  const given: Env = { ...job.outerEnv, ...job.env };
  const address = given['MASTER_ADDR'] ?? addressOf(job);
  const ports = readPorts(given[portsVariable]) ?? usualPorts;
  // The launcher itself listens on this port.
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

/** A worker's rank and size in torchrun's names, as far as known. */
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
