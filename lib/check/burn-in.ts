// Combines the rounds of an endless check into one report: figures over all rounds, drift, and the first fault with its
// round and time.
import { median } from 'simple-statistics';

import { busyShare } from './cores.js';
import { fair, poor } from './part.js';
import { figureOf } from '../compare/compare.js';
import type { RunEvents } from '../measure/common-run.js';
import { bandwidth, perSecond } from '../results/bandwidth.js';
import { failedCase, waivedCase } from '../results/case.js';
import { identityOf } from '../results/repeats.js';
import {
  hasMeasurement,
  type CaseResult,
  type FirstWrong,
  type Measurement,
  type Report,
  type Verdict,
  type VerdictLevel,
} from '../results/result.js';
import { describe } from '../results/statistics.js';
import { countText, percentText } from '../results/units.js';
import { monotonicSeconds } from '../time.js';

type Measured = CaseResult & Measurement;

/** Rounds whose samples are kept, so that days take no more memory than minutes. */
const mostKept = 64;
/** A part may be slow by chance now and then; from a tenth of the rounds on it is bad. One wrong result is bad. */
const slowShare = 0.1;
/** Rounds per third: the median of fewer depends on a single one. */
const leastOfThird = 3;
/**
 * Drift of each round's fastest sample, since disturbances only lengthen samples. Quiet machines stay within a few
 * percent for hours; clocks throttled from boost to base lose a quarter or more.
 */
const driftLimits = { fair: 1.1, poor: 1.25 } as const;
const driftCause =
  'clocks throttled by heat or power, a growing number of corrected errors in memory or links, or other work that has started';

/** Other work on the cores slows these parts; GPUs have their own clock. */
function needsCores({ name, parameters: { between } }: CaseResult): boolean {
  return name === 'memory' || between === 'threads' || between === 'processes';
}

function isSlow(result: CaseResult): boolean {
  if (!hasMeasurement(result) || !result.check.passed) return false;
  const isTimed = figureOf(result) !== undefined;
  return result.verdict.reason !== 'faults' && (isTimed || result.name === 'host');
}

interface Bad {
  readonly result: CaseResult;
  readonly round: number;
  readonly at: Date;
  count: number;
}

interface Round {
  readonly samples: readonly number[];
  /** Whether the machine was idle, so that the round compares with others. */
  readonly quiet: boolean;
}

class PartOverRounds {
  private rounds = 0;
  /** Evenly spaced: when full, every second round is dropped and the interval doubles. */
  private kept: Round[] = [];
  private stride = 1;
  private last: CaseResult | undefined;
  measured: Measured | undefined;
  private readonly levels = new Map<VerdictLevel, { count: number; last: Measured }>();
  private readonly sums: Record<string, number> = {};
  private wrong = 0;
  private firstWrong: FirstWrong | undefined;
  private fault: Bad | undefined;
  private slow: Bad | undefined;

  constructor(private readonly whole: BurnIn) {}

  add(result: CaseResult, round: number, at: Date, isBusy: boolean): void {
    this.last = result;
    if (result.status === 'error') {
      const kind = isSlow(result) ? 'slow' : 'fault';
      this[kind] ??= { result, round, at, count: 0 };
      this[kind].count += 1;
    }
    const index = this.rounds;
    this.rounds += 1;
    if (!hasMeasurement(result)) return;
    this.measured = result;
    const { check, verdict, samplesSeconds, values = {} } = result;
    const count = (this.levels.get(verdict.level)?.count ?? 0) + 1;
    this.levels.set(verdict.level, { count, last: result });
    this.wrong += check.wrong ?? 0;
    this.firstWrong ??= check.firstWrong;
    for (const [name, value] of Object.entries(values))
      this.sums[name] = (this.sums[name] ?? 0) + (value ?? 0);
    if (index % this.stride !== 0) return;
    this.kept.push({ samples: samplesSeconds, quiet: !isBusy && verdict.level !== 'none' });
    if (this.kept.length <= mostKept) return;
    this.kept = this.kept.filter((_, place) => place % 2 === 0);
    this.stride *= 2;
  }

  /** How many times slower the last third is than the first; undefined if unknown. */
  private drift(): number | undefined {
    const best = this.kept.filter(({ quiet }) => quiet).map(({ samples }) => Math.min(...samples));
    const third = Math.floor(best.length / 3);
    if (third < leastOfThird) return undefined;
    return median(best.slice(-third)) / median(best.slice(0, third));
  }

  private faultText({ result, round, at, count }: Bad): string {
    const reason = result.status === 'ok' ? '' : result.reason;
    const often = count > 1 ? `, in ${String(count)} of them` : '';
    return `${reason}; first in round ${String(round)} of ${String(this.whole.rounds)}, ${at.toISOString()}${often}`;
  }

  private verdict(usual: Verdict, bad: Bad | undefined, drift: number | undefined): Verdict {
    const causeOf = ({ result }: Bad): string | null =>
      hasMeasurement(result) && result.verdict.level === 'poor' ? result.verdict.likelyCause : null;
    if (bad !== undefined) return poor(this.faultText(bad), causeOf(bad));
    const of = countText(this.rounds, 'round');
    if (drift !== undefined && drift >= driftLimits.fair) {
      const limits = [driftLimits.fair - 1, driftLimits.poor - 1];
      const text = `${percentText(drift - 1, limits)} slower in the last third of ${of} than in the first`;
      return (drift >= driftLimits.poor ? poor : fair)(text, driftCause);
    }
    const { slow } = this;
    if (slow !== undefined) return fair(this.faultText(slow), causeOf(slow));
    return { ...usual, text: `${usual.text} (the latest of ${of})` };
  }

  /** A part that is bad in all rounds keeps its figures. */
  result(): CaseResult {
    const [good, fair, none, poor] = (['good', 'fair', 'none', 'poor'] as const).map((level) =>
      this.levels.get(level),
    );
    const usual = (fair?.count ?? 0) > (good?.count ?? 0) ? fair : (good ?? none ?? poor);
    const { rounds, slow } = this;
    const bad =
      this.fault ?? (slow !== undefined && slow.count >= slowShare * rounds ? slow : undefined);
    if (usual === undefined) {
      return bad === undefined
        ? this.last!
        : ({ ...bad.result, reason: this.faultText(bad) } as CaseResult);
    }
    const { last: base } = usual;
    const timed = figureOf(base) !== undefined;
    const drift = timed ? this.drift() : undefined;
    const samplesSeconds = this.kept.flatMap(({ samples }) => samples);
    const statistics = describe(samplesSeconds);
    const { bytes, algorithmBandwidth, busBandwidth, limit, check } = base;
    const factor = busBandwidth.bytesPerSecond / (algorithmBandwidth.bytesPerSecond || 1);
    const verdict = this.verdict(base.verdict, bad, drift);
    const { firstWrong } = this;
    const all = {
      ...base,
      samplesSeconds,
      statistics,
      algorithmBandwidth: bandwidth(bytes, statistics, algorithmBandwidth.formula),
      busBandwidth: bandwidth(bytes * factor, statistics, busBandwidth.formula),
      limit:
        limit === null
          ? null
          : { ...limit, ratio: perSecond(limit.boundSeconds, statistics.medianSeconds) },
      check: {
        ...check,
        wrong: check.wrong === null ? null : this.wrong,
        ...(firstWrong === undefined ? {} : { firstWrong }),
        passed: check.passed && this.wrong === 0,
      },
      verdict,
      values: {
        // Counts of parts without timing add up.
        ...(timed ? base.values : this.sums),
        rounds,
        ...(drift === undefined ? {} : { drift }),
        ...(bad === undefined
          ? {}
          : {
              badRounds: bad.count,
              firstBadRound: bad.round,
              firstBadSeconds: (bad.at.getTime() - this.whole.startedAt.getTime()) / 1000,
            }),
      },
    };
    if (verdict.level !== 'poor') return { ...all, status: 'ok' };
    const code = bad?.result.status === 'error' ? bad.result.code : undefined;
    const failed = { ...all, status: 'error', reason: verdict.text } as const;
    return code === undefined ? failed : { ...failed, code };
  }
}

/** Collects the cases of each round and combines them. */
export class BurnIn {
  private readonly parts = new Map<string, PartOverRounds>();
  rounds = 0;

  constructor(readonly startedAt: Date) {}

  /** @param isWhole whether the round was complete: a part missing from it is then bad */
  add(cases: readonly CaseResult[], at: Date, isWhole = true): void {
    this.rounds += 1;
    const free = cases
      .filter(hasMeasurement)
      .filter(({ values }) => (values?.leastFreeShare ?? 0) >= busyShare);
    const quietHosts = new Set(free.map(({ parameters: { host } }) => host));
    for (const one of isWhole ? [...cases, ...this.missing(cases)] : cases) {
      const identity = identityOf(one);
      const part = this.parts.get(identity) ?? new PartOverRounds(this);
      part.add(one, this.rounds, at, needsCores(one) && !quietHosts.has(one.parameters.host));
      this.parts.set(identity, part);
    }
  }

  /**
   * Parts missing from this round. Parts that threw and parts of lost or excluded hosts are already reported. Cases
   * between hosts depend on which hosts are there.
   */
  private missing(cases: readonly CaseResult[]): CaseResult[] {
    const failed = cases
      .filter((one) => !hasMeasurement(one))
      .filter(({ status, name }) => status === 'error' || name === 'host');
    const reported = new Set(failed.flatMap(({ name, parameters: { host } }) => [name, host]));
    reported.add('hosts').add('gpus of hosts').delete(undefined);
    const now = new Set(cases.map(identityOf));
    return [...this.parts]
      .filter(([identity]) => !now.has(identity))
      .flatMap(([, { measured }]) => measured ?? [])
      .filter(({ name, parameters: { host, from, to, between } }) =>
        [name, host, from, to, between].every((one) => !reported.has(one)),
      )
      .map(({ name, parameters }) =>
        failedCase({ name, parameters }, new Error('it was there before and is missing now')),
      );
  }

  cases(): CaseResult[] {
    return [...this.parts.values()].map((part) => part.result());
  }
}

export interface BurnInSurroundings {
  /** Ends the burn-in; figures so far are kept. */
  readonly stop?: AbortSignal | undefined;
  /** Called after each round with all cases so far. */
  readonly onRound?:
    ((round: number, secondsLeft: number, cases: readonly CaseResult[]) => void) | undefined;
}

/**
 * Repeats rounds until the time is up and finishes the last one. After a signal, the parts of the last round that were
 * measured count; missing ones are not faults.
 *
 * @param look runs one round
 */
export async function burnIn(
  seconds: number,
  look: (events: RunEvents) => Promise<Report>,
  events: RunEvents,
  { stop, onRound }: BurnInSurroundings,
): Promise<Report> {
  const whole = new BurnIn(new Date());
  const end = monotonicSeconds() + seconds;
  let head: Report | undefined;
  for (let round = 1; ; round += 1) {
    // Only the first round reports progress.
    const report = await look(
      head === undefined ? events : { ...events, onStart: () => undefined },
    );
    head ??= report;
    const isStopped = stop?.aborted === true;
    const counts = (one: CaseResult): boolean => hasMeasurement(one) && one.name !== 'expected';
    whole.add(isStopped ? report.cases.filter(counts) : report.cases, new Date(), !isStopped);
    const left = Math.max(0, end - monotonicSeconds());
    const cases = whole.cases();
    onRound?.(round, left, cases);
    // None of the requested parts exist on this machine.
    if (left > 0 && !isStopped && cases.length > 0) continue;
    const identity = { name: 'rounds', parameters: {} };
    const never = waivedCase(identity, 'it was stopped before anything was measured');
    return { ...head, cases: isStopped && cases.length === 0 ? [never] : cases };
  }
}
