// All-reduces of this machine's ranks, as threads and as processes.
import { run } from '../measure/collectives/collectives-run.js';
import type { CaseResult, Measurement, Report } from '../results/result.js';
import { mebibyte } from '../results/units.js';
import { sumArguments, sumParts, type SumBound } from './sums.js';

/** Runs `gradlink ARGUMENTS` as ranks on this host. */
export type RunAsJob = (ranks: number, args: readonly string[]) => Promise<Report>;

/** More ranks tell nothing new: fewer already saturate the memory. */
const mostRanks = 16;
/** One for the cost of a call, one for memory bandwidth. */
const sizes = [16 * 2 ** 10, 16 * mebibyte] as const;
/** Wide, because caches help some ranks and others use remote memory. */
const shares = { good: 0.5, poor: 0.15 };

export function rankCountFor(cores: number): number {
  return Math.min(Math.max(cores, 2), mostRanks);
}

/** The bound set by this machine's memory or cores. */
export function boundOf({ limit, verdict }: CaseResult & Measurement): SumBound | undefined {
  if (limit === null) return undefined;
  const of =
    limit.kind === 'between cores' ? 'these cores pass to one another' : 'this memory allows';
  return { seconds: limit.boundSeconds, of, likelyCause: verdict.likelyCause, ...shares };
}

export async function checkThreads(ranks: number, timeoutMs: number): Promise<CaseResult[]> {
  const given = { collective: 'all_reduce', ranks, sizes, threads: true, timeoutMs } as const;
  return sumParts(await run(given), 'threads', ranks, boundOf);
}

export async function checkProcesses(
  ranks: number,
  timeoutMs: number,
  asJob: RunAsJob,
): Promise<CaseResult[]> {
  const args = [...sumArguments(sizes), '-T', String(timeoutMs / 1000)];
  return sumParts(await asJob(ranks, args), 'processes', ranks, boundOf);
}
