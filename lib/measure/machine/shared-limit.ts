/**
 * The common limit of several processes. Launchers bind processes to separate cores, so no single one can measure the
 * memory's total: one process per set of cores measures, all in parallel.
 */
import { createHash } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';

import { allowedCores } from '../../launch/cores.js';
import { grantedCores } from '../../results/container-limits.js';
import { groupBy } from '../../results/grouping.js';
import { measureMemoryLimit, type MemoryLimit } from './memory-limit.js';

/** Processes that can exchange numbers. */
export interface Peers {
  /** This process's rank. */
  readonly rank: number;
  /** The values of each process, in rank order; all give the same number. */
  gather(values: readonly number[]): Promise<readonly (readonly number[])[]>;
}

export interface SharedLimit extends Omit<MemoryLimit, 'pass'> {
  /** Of all processes together, on all hosts. */
  readonly availableCores: number;
  /** Whether this process measures for those that share its cores, and how many processes measure. */
  readonly measures: boolean;
  readonly measuring: number;
}

const wordBits = 32;
/** Linux's maximum number of cores. */
const words = 8192 / wordBits;

/** A host and a set of its cores as comparable numbers. */
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

/** This process's cores; all of the host if unknown. */
function ownCores(cores: readonly number[]): readonly number[] {
  return cores.length > 0 ? cores : Array.from({ length: availableParallelism() }, (_, at) => at);
}

/**
 * The CPU time, in cores, of all processes on each process's host. Collective, with the same result.
 *
 * @param cores those of this process
 * @param granted CPU limit of its control group, in cores; null if unlimited
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
 * The joint copy rate of all processes' cores. Collective, with the same result. A process with unknown cores counts as
 * using its whole host.
 *
 * @param lastLevelCacheBytes null if unknown
 * @param cores those of this process
 * @param hugePages whether the measured arrays are on huge pages
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
