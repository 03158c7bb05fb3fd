// The time to exchange n bytes of gradients with each scheme. docs/predict.md has the formulas.
import { anAmount, aNumber, aPositive, having, oneOfWords, orAbsent } from '../checks.js';
import { latencySeconds, linkKind, messageSeconds, streamSeconds, type Link } from './link.js';

/** How workers exchange gradients. */
export const schemes = [
  'ring',
  'tree',
  'halving-doubling',
  'hierarchical',
  'one-peer',
  'parameter-server',
] as const;
/** One of {@link schemes}. */
export type Scheme = (typeof schemes)[number];

/** Whether every worker gets the full mean. Averaging with a neighbour needs more steps for the same result. */
export function isAllReduce(scheme: Scheme): boolean {
  return scheme !== 'one-peer';
}

/** The workers and their links. */
export interface Cluster {
  /** On all hosts. */
  readonly workers: number;
  /** Workers per host. */
  readonly perHost: number;
  /** Between workers of a host. */
  readonly inside: Link;
  /** Between hosts, shared by all workers of a host. */
  readonly between: Link;
  /** Servers of the parameter-server scheme. */
  readonly servers: number;
  /** Links like `between` that a host uses in parallel, such as one network interface per GPU; 1 unless given. */
  readonly rails?: number;
}

export function hostsOf(workers: number, perHost: number): number {
  return Math.max(Math.ceil(workers / perHost), 1);
}

const log2 = (count: number): number => Math.ceil(Math.log2(count));

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}

interface Shape extends Cluster {
  readonly rails: number;
  readonly hosts: number;
  /** Participating workers per host. */
  readonly group: number;
}

function shapeOf(cluster: Cluster): Shape {
  const hosts = hostsOf(cluster.workers, cluster.perHost);
  return {
    ...cluster,
    rails: cluster.rails ?? 1,
    hosts,
    group: Math.min(cluster.workers, cluster.perHost),
  };
}

/** A ring crosses each host's border once: the slowest link determines every step. */
function ring(bytes: number, { workers, hosts, inside, between, rails }: Shape): number {
  const part = bytes / workers;
  const step = messageSeconds(inside, part);
  const border = hosts > 1 ? messageSeconds(between, part / rails) : 0;
  return 2 * (workers - 1) * Math.max(step, border);
}

function tree(bytes: number, { hosts, group, inside, between, rails }: Shape): number {
  const depth = log2(group) * latencySeconds(inside) + log2(hosts) * latencySeconds(between);
  const streamed = Math.max(
    group > 1 ? streamSeconds(inside, bytes) : 0,
    hosts > 1 ? streamSeconds(between, bytes / rails) : 0,
  );
  return 2 * depth + 2 * streamed;
}

/** Halving rounds over `count` ranks with `bytes` each; ranks beyond a power of two are folded in first. */
function halvingRounds(bytes: number, count: number, link: Link): number {
  let seconds = isPowerOfTwo(count) ? 0 : 2 * messageSeconds(link, bytes);
  for (let part = bytes / 2, left = Math.floor(Math.log2(count)); left > 0; part /= 2, left -= 1) {
    seconds += 2 * messageSeconds(link, part);
  }
  return seconds;
}

/** Nearest first: the network carries 1/group of the bytes, of all workers of a host at once. */
function halvingDoubling(bytes: number, { hosts, group, inside, between, rails }: Shape): number {
  return halvingRounds(bytes, group, inside) + halvingRounds(bytes / rails, hosts, between);
}

function hierarchical(bytes: number, { hosts, group, inside, between, rails }: Shape): number {
  const within = 2 * (group - 1) * messageSeconds(inside, bytes / group);
  const across = hosts > 1 ? 2 * (hosts - 1) * messageSeconds(between, bytes / hosts / rails) : 0;
  return within + across;
}

/** One worker per host at a time communicates with another host. */
function onePeer(bytes: number, { hosts, group, inside, between }: Shape): number {
  return Math.max(
    group > 1 ? messageSeconds(inside, bytes) : 0,
    hosts > 1 ? messageSeconds(between, bytes) : 0,
  );
}

/** Up and down; the busier of a worker host's link and a server's decides. */
function parameterServer(
  bytes: number,
  { workers, hosts, group, inside, between, servers, rails }: Shape,
): number {
  const link = hosts > 1 ? between : inside;
  const fromWorkers = hosts > 1 ? group * bytes : bytes;
  const atServer = (workers * bytes) / servers;
  const busiest = Math.max(fromWorkers, atServer) / (hosts > 1 ? rails : 1);
  return 2 * (latencySeconds(link) + streamSeconds(link, busiest));
}

const costs: Readonly<Record<Scheme, (bytes: number, shape: Shape) => number>> = {
  ring,
  tree,
  'halving-doubling': halvingDoubling,
  hierarchical,
  'one-peer': onePeer,
  'parameter-server': parameterServer,
};

const knownScheme = oneOfWords(schemes);
const clusterKind = having({
  workers: aPositive,
  perHost: aNumber,
  inside: linkKind,
  between: linkKind,
  servers: aPositive,
  rails: orAbsent(aPositive),
});

/** Seconds to exchange `bytes` once; 0 for one worker. */
export function exchangeSeconds(scheme: Scheme, bytes: number, cluster: Cluster): number {
  knownScheme(scheme, 'scheme');
  anAmount(bytes, 'bytes');
  clusterKind(cluster, 'cluster');
  return cluster.workers === 1 ? 0 : costs[scheme](bytes, shapeOf(cluster));
}
