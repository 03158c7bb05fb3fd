// Pairs the cases of two sets of runs and judges each pair.
import { argumentError } from '../errors.js';
import { aString, having, listOf, optionNames, optionsObject } from '../checks.js';
import { reportKind } from '../results/kinds.js';
import { repeatsOf } from '../results/repeats.js';
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Report,
} from '../results/result.js';
import { mebibyte, percentText } from '../results/units.js';
import { quantileOfRuns, ratioOfMedians, type Runs } from './bootstrap.js';
import { environmentChanges } from './environment.js';
import {
  comparisonVersion,
  type Change,
  type ComparedCase,
  type Comparison,
  type Ratio,
  type RunsInfo,
  type Side,
} from './result.js';
import { meanRatio } from './mean-ratio.js';

/** Repeated runs of the same cases: several show how much runs differ by themselves. */
export interface NamedRuns {
  /** The file or baseline, for messages. */
  readonly name: string;
  /** Repeats of the same run. */
  readonly reports: readonly Report[];
}

/** Of all cases of a comparison together. */
export const defaultConfidence = 0.95;

/** Thresholds of a comparison. */
export interface CompareOptions {
  /** Relative difference of medians that counts as equal; 0.05 unless given. */
  readonly tolerance?: number;
  /** Probability that no unchanged case is called better or worse, over all cases; 0.95 unless given. */
  readonly confidence?: number;
  /** Compares even if the environments differ. */
  readonly ignoreEnvironment?: boolean;
}

/** The figure of a part of a check. Small sizes have no bandwidth, and parts without timing have no figure. */
export function figureOf(one: CaseResult & Measurement): 'bandwidth' | 'latency' | undefined {
  const { name, bytes, parameters } = one;
  if (bytes >= mebibyte && parameters.quantity !== 'latency') return 'bandwidth';
  return bytes > 0 || name === 'cores' ? 'latency' : undefined;
}

/** The comparable cases: of a check only parts with a figure. */
export function figuresOf({ run: { tool }, cases }: Report): CaseResult[] {
  const isLook = (one: CaseResult): boolean => hasMeasurement(one) && figureOf(one) === undefined;
  return tool === 'check' ? cases.filter((one) => !isLook(one)) : [...cases];
}

/** The samples of runs with correct results. */
function samplesOf(results: readonly CaseResult[]): Runs {
  return results
    .filter((result) => result.status === 'ok')
    .filter(hasMeasurement)
    .map(({ samplesSeconds }) => samplesSeconds)
    .filter((samples) => samples.length > 0 && samples.every((sample) => sample > 0));
}

function sideOf(runs: Runs): Side | null {
  if (runs.length === 0) return null;
  const samples = runs.reduce((sum, run) => sum + run.length, 0);
  return { runs: runs.length, samples, medianSeconds: quantileOfRuns(runs, 0.5) };
}

function difference(ratio: number, tolerance: number): string {
  if (Math.abs(ratio - 1) < 5e-4) return 'the same time';
  return ratio > 1
    ? `${percentText(ratio - 1, [tolerance])} slower`
    : `${percentText(1 - ratio, [tolerance / (1 + tolerance)])} faster`;
}

function intervalText({ lower, upper }: Ratio, tolerance: number): string {
  return `between ${difference(lower, tolerance)} and ${difference(upper, tolerance)}`;
}

interface Judgement {
  readonly change: Change;
  readonly text: string;
  readonly advice?: string;
}

/** An unclear case, with advice on how to tell more. */
function unclear(words: string, link: string, advice: string): Judgement {
  return { change: 'unclear', text: `${words}${link}${advice}`, advice };
}

/** 1 if slower, -1 if faster with the whole interval beyond the tolerance, else 0. */
function direction({ lower, upper }: Ratio, tolerance: number): -1 | 0 | 1 {
  if (lower > 1 + tolerance) return 1;
  return upper < 1 / (1 + tolerance) ? -1 : 0;
}

/**
 * Whether more than the median moved. A slower program is slower in its undisturbed samples too; otherwise only
 * background load changed. With a single run on both sides the variation between runs is unknown, so nine in ten
 * samples must lie beyond nine in ten of the other run's.
 */
function apart(base: Runs, next: Runs, towards: -1 | 1): boolean {
  const [slower, quicker] = towards === 1 ? [next, base] : [base, next];
  const single = base.length === 1 && next.length === 1;
  return quantileOfRuns(slower, 0.1) > quantileOfRuns(quicker, single ? 0.9 : 0.5);
}

function judgeRatio(ratio: Ratio, base: Runs, next: Runs, tolerance: number): Judgement {
  const towards = direction(ratio, tolerance);
  const words = `${difference(ratio.median, tolerance)}, ${intervalText(ratio, tolerance)}`;
  if (towards === 0) {
    const within = ratio.upper <= 1 + tolerance && ratio.lower >= 1 / (1 + tolerance);
    return within
      ? { change: 'same', text: words }
      : unclear(words, ': ', 'more samples or quieter runs would show');
  }
  if (!apart(base, next, towards)) {
    const advice =
      base.length > 1 || next.length > 1
        ? 'one of the runs was disturbed'
        : 'several runs of each would show';
    return unclear(words, ', but ', `their samples overlap: ${advice}`);
  }
  return { change: towards === 1 ? 'worse' : 'better', text: words };
}

function reasonOf(results: readonly CaseResult[] | undefined): string {
  const other = results?.find((result) => result.status !== 'ok');
  if (other === undefined) return 'it was not run';
  return `${other.status}: ${other.reason}`;
}

interface Pair {
  readonly base: readonly CaseResult[] | undefined;
  readonly next: readonly CaseResult[] | undefined;
}

function judgePair(
  { base, next }: Pair,
  confidence: number,
  options: { readonly tolerance: number; readonly changed: boolean },
): ComparedCase {
  const { name, parameters } = (next ?? base)![0]!;
  const [old, now] = [samplesOf(base ?? []), samplesOf(next ?? [])];
  const compared = { name, parameters, ratio: null, base: sideOf(old), next: sideOf(now) };
  const failed = (results: Pair['base']): boolean =>
    results?.some(({ status }) => status === 'error') ?? false;
  if (failed(next)) {
    if (!failed(base)) return { ...compared, change: 'failed', text: reasonOf(next) };
    return { ...compared, change: 'same', text: `failed before and fails now: ${reasonOf(next)}` };
  }
  if (now.length === 0) {
    if (old.length > 0) return { ...compared, change: 'missing', text: reasonOf(next) };
    return { ...compared, change: 'same', text: `no figures before or now: ${reasonOf(next)}` };
  }
  if (old.length === 0) {
    if (failed(base)) {
      return { ...compared, change: 'mended', text: `before: ${reasonOf(base)}` };
    }
    return { ...compared, change: 'added', text: `before: ${reasonOf(base)}` };
  }
  const ratio = ratioOfMedians(old, now, confidence);
  const judged = judgeRatio(ratio, old, now, options.tolerance);
  const { change, text } = judged;
  if (options.changed && (change === 'worse' || change === 'better')) {
    return { ...compared, ratio, change: 'changed', text: `${text}, in another environment` };
  }
  return { ...compared, ratio, ...judged };
}

function infoOf({ name, reports }: NamedRuns): RunsInfo {
  const each = (read: (report: Report) => string): string =>
    [...new Set(reports.map(read))].join(', ');
  return {
    name,
    tool: each(({ run }) => run.tool),
    ...(reports.some(({ run }) => run.program !== undefined)
      ? { program: each(({ run }) => run.program ?? `gradlink ${run.packageVersion}`) }
      : {}),
    runs: reports.length,
    packageVersion: each(({ run }) => run.packageVersion),
    startedAt: reports[0]!.run.startedAt,
  };
}

const compareNames = optionNames<CompareOptions>({
  tolerance: true,
  confidence: true,
  ignoreEnvironment: true,
});
const namedRuns = having({ name: aString, reports: listOf(reportKind) });

/**
 * Compares runs case by case, paired by name and parameters. A case repeated within a report (`collectives -N`) counts
 * as several runs.
 *
 * @throws TypeError if a side has no report, RangeError if an option is out of range
 */
export function compareRuns(
  base: NamedRuns,
  next: NamedRuns,
  options?: CompareOptions,
): Comparison {
  const given = optionsObject(options, compareNames, 'compareRuns');
  const { tolerance = 0.05, confidence = defaultConfidence, ignoreEnvironment = false } = given;
  namedRuns(base, 'base');
  namedRuns(next, 'next');
  for (const side of [base, next]) {
    if (side.reports.length === 0) {
      throw argumentError('ERR_INVALID_ARG_VALUE', side.name, 'at least one report', {
        text: 'none',
      });
    }
  }
  if (!(typeof tolerance === 'number' && tolerance >= 0 && tolerance < Infinity)) {
    throw argumentError('ERR_OUT_OF_RANGE', 'tolerance', 'a number of at least 0', tolerance);
  }
  if (!(typeof confidence === 'number' && confidence > 0 && confidence < 1)) {
    throw argumentError('ERR_OUT_OF_RANGE', 'confidence', 'a number between 0 and 1', confidence);
  }
  const environment = environmentChanges(base.reports, next.reports);
  const repeats = ({ reports }: NamedRuns) => repeatsOf(reports.flatMap(figuresOf));
  const [old, now] = [repeats(base), repeats(next)];
  const identities = [...new Set([...now.keys(), ...old.keys()])];
  const pairs = identities.map((identity) => ({
    base: old.get(identity),
    next: now.get(identity),
  }));
  // Bonferroni: with a hundred cases five of the 95 % intervals would miss by chance alone.
  const tested = pairs.filter((pair) => pair.base !== undefined && pair.next !== undefined).length;
  const each = 1 - (1 - confidence) / Math.max(tested, 1);
  const changed = !ignoreEnvironment && environment.some(({ decisive }) => decisive);
  const cases = pairs.map((pair) => judgePair(pair, each, { tolerance, changed }));
  return {
    comparisonVersion,
    base: infoOf(base),
    next: infoOf(next),
    tolerance,
    environment,
    ratio: meanRatio(cases),
    cases,
  };
}
