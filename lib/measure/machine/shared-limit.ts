/**
 * The limit of processes that work together. Launchers bind processes to cores of their own, so that no single one can tell
 * what the memory gives to all: one process for each set of cores measures, all of them at the same time.
 */
import { createHash } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';

import { allowedCores } from '../../launch/cores.js';
import { grantedCores } from '../../results/container-limits.js';
import { groupBy } from '../../results/grouping.js';
import { measureMemoryLimit, type MemoryLimit } from './memory-limit.js';

/** Processes that can tell one another numbers. */
export interface Peers {
  /** The place of this process among them. */
  readonly rank: number;
  /** What each brings, in the order of ranks; all bring equally many. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
}

export interface SharedLimit extends Omit<MemoryLimit, 'pass'> {
  /** Of all processes together, on all their hosts. */
  readonly availableCores: number;
  /** Whether this process measures for those that share its cores, and how many processes measure. */
  readonly measures: boolean;
  readonly measuring: number;
}

const wordBits = 32;
/** Linux has no more cores. */
const words = 8192 / wordBits;

/** A host and a set of its cores, as numbers that any two processes can compare. */
function placeOf(host: string, cores: readonly number[]): number[] {
  const mask = new Array<number>(words).fill(0);
  for (const core of cores) {
    const word = Math.floor(core / wordBits);
    mask[word] = (mask[word] ?? 0) + 2 ** (core % wordBits);
  }
  return [createHash('sha256').update(host).digest().readUIntBE(0, 6), ...mask];
}

function coresOf([host = 0, ...mask]: readonly number[]): string[] {
  return mask.flatMap((word, at) =>
    Array.from({ length: wordBits }, (_, bit) => bit)
      .filter((bit) => Math.floor(word / 2 ** bit) % 2 === 1)
      .map((bit) => `${host}:${at * wordBits + bit}`),
  );
}

/** Those of this process; all of its host where the system does not tell. */
function ownCores(cores: readonly number[]): readonly number[] {
  return cores.length > 0 ? cores : Array.from({ length: availableParallelism() }, (_, at) => at);
}

/**
 * Of each process's host, the cores' worth of time that its processes have together; every process gets the same. All
 * call it alike.
 *
 * @param cores those of this process
 * @param granted cores' worth of time that its control group grants; null where none bounds it
 */
export async function coresOfHosts(
  peers: Pick<Peers, 'gather'>,
  cores: readonly number[] = allowedCores(),
  granted: number | null = grantedCores(),
): Promise<number[]> {
  const own = [granted ?? Infinity, ...placeOf(hostname(), ownCores(cores))];
  const all = await peers.gather(own);
  const hosts = groupBy(all, ([, host]) => String(host));
  const counts = new Map(
    [...hosts].map(([host, those]) => {
      const distinct = new Set(those.flatMap(([, ...place]) => coresOf(place)));
      return [host, Math.min(distinct.size, ...those.map(([most = Infinity]) => most))];
    }),
  );
  return all.map(([, host]) => counts.get(String(host)) ?? 0);
}

/**
 * What the cores of all processes copy together; every process gets the same. All call it alike. Where the system does
 * not tell a process's cores it counts as one that may use all of its host.
 *
 * @param lastLevelCacheBytes null when the kernel does not tell
 * @param cores those of this process
 * @param hugePages as what is measured beside it lies
 */
export async function measureSharedLimit(
  peers: Peers,
  lastLevelCacheBytes: number | null,
  cores: readonly number[] = allowedCores(),
  hugePages = false,
): Promise<SharedLimit> {
  const places = await peers.gather(placeOf(hostname(), ownCores(cores)));
  const keys = places.map((place) => place.join());
  const measures = keys.indexOf(keys[peers.rank] ?? '') === peers.rank;
  const mine = measures ? await measureMemoryLimit(lastLevelCacheBytes, hugePages) : undefined;
  const all = await peers.gather([mine?.copyBytesPerSecond ?? 0, mine?.threads ?? 0]);
  const sum = (column: number): number =>
    all.reduce((total, values) => total + (values[column] ?? 0), 0);
  return {
    copyBytesPerSecond: sum(0),
    threads: sum(1),
    availableCores: new Set(places.flatMap(coresOf)).size,
    measures,
    measuring: new Set(keys).size,
  };
}
