// Sums of this machine's ranks, as threads and as processes: right to the bit, and as fast as its memory and cores allow.
import { run } from '../measure/collectives/collectives-run.js';
import { hasMeasurement, type CaseResult, type Report, type Verdict } from '../results/result.js';
import { mebibyte, percentText, timeText } from '../results/units.js';
import { failedWherePoor } from './part.js';

/** Runs `gradlink ARGUMENTS` as so many processes of this host. */
export type RunAsJob = (ranks: number, args: readonly string[]) => Promise<Report>;

/** More tell no more: the memory is busy with fewer. */
const mostRanks = 16;
/** What a call costs, and what memory gives. */
const sizes = [16 * 2 ** 10, 16 * mebibyte];
/** Between processes and others there are some that pass through a cache, and some whose memory is another's: a wide berth. */
const goodRatio = 0.5;
const poorRatio = 0.15;

export function rankCountFor(cores: number): number {
  return Math.min(Math.max(cores, 2), mostRanks);
}

/** By the fastest call: what disturbs a call makes it longer, and others are at work on most machines. */
export function judgeSum(result: CaseResult): CaseResult {
  if (!hasMeasurement(result) || result.status !== 'ok') return result;
  const { limit, bytes, statistics, verdict } = result;
  const judged = (level: Verdict['level'], text: string): CaseResult => ({
    ...result,
    verdict: {
      level,
      text,
      likelyCause: level === 'good' || level === 'none' ? null : verdict.likelyCause,
    },
  });
  if (limit === null || bytes < mebibyte) {
    return judged(
      'none',
      `${timeText(statistics.medianSeconds)} a call; at this size its fixed cost decides`,
    );
  }
  const ratio = limit.boundSeconds / statistics.minSeconds;
  const of =
    limit.kind === 'between cores' ? 'these cores pass to one another' : 'this memory allows';
  const text = `${percentText(ratio)} of what ${of}, at best`;
  if (ratio >= goodRatio) return judged('good', text);
  return judged(ratio >= poorRatio ? 'fair' : 'poor', text);
}

function partsOf({ cases }: Report, between: string): CaseResult[] {
  return cases.map((one) => {
    const { ranks, bytes, placement } = one.parameters;
    const parameters = {
      between,
      ranks: ranks ?? null,
      bytes: bytes ?? null,
      placement: placement ?? null,
    };
    return failedWherePoor(judgeSum({ ...one, parameters }));
  });
}

export async function checkThreads(ranks: number, timeoutMs: number): Promise<CaseResult[]> {
  const given = { collective: 'all_reduce', ranks, sizes, threads: true, timeoutMs } as const;
  return partsOf(await run(given), 'threads');
}

export async function checkProcesses(
  ranks: number,
  timeoutMs: number,
  asJob: RunAsJob,
): Promise<CaseResult[]> {
  const [smallest = 0, largest = 0] = sizes;
  const range = ['-b', String(smallest), '-e', String(largest), '-f', String(largest / smallest)];
  const args = ['collectives', 'all_reduce', ...range, '-T', String(timeoutMs / 1000)];
  return partsOf(await asJob(ranks, args), 'processes');
}
