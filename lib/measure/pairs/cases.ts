// What was measured between pairs of ranks, as cases: each pair is judged by the others of its kind.
import { beside, type Judged, type Spread } from '../../results/hosts.js';
import type { CaseIdentity, CaseResult, Verdict } from '../../results/result.js';
import { describe } from '../../results/statistics.js';
import type { RankInfo } from '../common-run.js';
import { messageCase, noneAlike, shareVerdict } from '../hosts/message-case.js';
import type { PairKind } from './pairs-options.js';
import type { Pair, RankSeconds } from './world.js';

/** One kind at one size. */
export interface Point {
  readonly kind: PairKind;
  readonly bytes: number;
  /** Messages of a sample before the answer; of latency 1. */
  readonly window: number;
  readonly warmup: number;
  readonly check: boolean;
}

interface Place {
  readonly ranks: readonly RankInfo[];
  /** Of each rank's host, the cores' worth of time that its ranks have together. */
  readonly cores: readonly number[];
  readonly backend: string;
}

export interface PairSamples {
  readonly pair: Pair;
  /** Of one message: half of there and back, or the window's share; both ways at once: of one each way. */
  readonly seconds: readonly number[];
  readonly wrong: number;
}

/** The samples of a pair from what its two ranks brought. */
export function samplesOf(
  { kind, window }: Point,
  pair: Pair,
  found: readonly RankSeconds[],
): PairSamples {
  const [lower, higher] = pair.map((rank) => found[rank] ?? { seconds: [], wrong: 0 });
  const there = lower?.seconds ?? [];
  const back = higher?.seconds ?? [];
  const whole =
    kind === 'bidirectional' ? there.map((one, at) => Math.max(one, back[at] ?? 0)) : there;
  const share = kind === 'latency' ? 2 : window;
  return {
    pair,
    seconds: whole.map((one) => one / share),
    wrong: (lower?.wrong ?? 0) + (higher?.wrong ?? 0),
  };
}

function hostOf({ ranks }: Place, rank: number): string {
  return ranks[rank]?.host ?? '';
}

/** Whether a pair is within a host: what crosses hosts is no measure of it. */
function isWithin(place: Place, [lower, higher]: Pair): boolean {
  return hostOf(place, lower) === hostOf(place, higher);
}

export function identityOf(
  { kind, bytes, window }: Point,
  place: Place,
  pair?: Pair,
): CaseIdentity {
  const { ranks, backend } = place;
  const several = new Set(ranks.map(({ host }) => host)).size > 1;
  const [from, to] = pair ?? [];
  return {
    name: kind,
    parameters: {
      quantity: kind === 'latency' ? 'latency' : 'bandwidth',
      bytes,
      window,
      ranks: ranks.length,
      backend,
      // Of two ranks there is one pair, and its sizes are one line.
      ...(from === undefined || to === undefined || ranks.length === 2
        ? {}
        : { from: `rank ${from}`, to: `rank ${to}` }),
      ...(from === undefined || to === undefined || !several
        ? {}
        : { hosts: `${hostOf(place, from)} - ${hostOf(place, to)}` }),
    },
  };
}

interface JudgedPair {
  readonly pair: Pair;
  readonly judged: Judged | undefined;
  readonly others: number;
}

/** Each pair beside the others within hosts, or between hosts, as it is itself. */
function judgePairs(place: Place, samples: readonly PairSamples[]): JudgedPair[] {
  const spreads = samples.map(({ pair, seconds }) => {
    const { medianSeconds, minSeconds } = describe(seconds);
    const spread: Spread = { medianSeconds, fastestSeconds: minSeconds };
    return { pair, spread, within: isWithin(place, pair) };
  });
  return spreads.map((one) => {
    const others = spreads.filter((other) => other !== one && other.within === one.within);
    const judged = beside(
      one.spread,
      others.map(({ spread }) => spread),
    );
    return { pair: one.pair, judged, others: others.length };
  });
}

/** The rank of a slow pair all of whose pairs stand out. */
function slowRank(pair: Pair, all: readonly JudgedPair[]): number | undefined {
  return pair.find((rank) => {
    const own = all.filter((one) => one.pair.includes(rank) && one.judged !== undefined);
    return own.length > 1 && own.every(({ judged }) => judged?.standsOut === true);
  });
}

/** Where the ranks of a host are more than its cores, or their threads where both ways are busy; null elsewhere. */
function crowdedCause(
  { kind }: Point,
  { ranks, cores }: Place,
  among: readonly number[],
): string | null {
  const each = kind === 'bidirectional' ? 2 : 1;
  for (const rank of among) {
    const { host } = ranks[rank]!;
    const own = cores[rank]!;
    const there = ranks.filter((one) => one.host === host).length;
    if (each * there <= own) continue;
    const time = `the time of ${String(Number(own.toFixed(1)))} core${own === 1 ? '' : 's'}`;
    const ways = each === 1 ? '' : ', with a thread each way,';
    const advice = each === 1 ? 'use one rank a core' : 'use one rank for two cores';
    return `${there} ranks on ${host}${ways} share ${time}: they wait for one another; ${advice}`;
  }
  return null;
}

function verdictOf(
  { pair, judged, others }: JudgedPair,
  point: Point,
  place: Place,
  all: readonly JudgedPair[],
): Verdict {
  const crowded = crowdedCause(point, place, pair);
  if (judged === undefined) return noneAlike('no other pair to judge it by', crowded);
  const { times, standsOut } = judged;
  const text = `${times.toFixed(1)} times the time of the median of ${others} other pair${others === 1 ? '' : 's'}`;
  if (!standsOut) return { level: 'good', reason: 'others', text, likelyCause: null };
  if (crowded !== null) return shareVerdict(1 / times, text, crowded);
  const rank = slowRank(pair, all);
  const cause = isWithin(place, pair)
    ? 'these two: their cores, or what else runs there'
    : `the way between ${pair.map((one) => hostOf(place, one)).join(' and ')}`;
  const whole =
    rank === undefined
      ? cause
      : `all pairs of rank ${rank} on ${hostOf(place, rank)} are slow: its core, or its host's network`;
  return shareVerdict(1 / times, text, whole);
}

function perSecond(messages: number) {
  return ({ medianSeconds }: { readonly medianSeconds: number }) => ({
    messagesPerSecond: medianSeconds > 0 ? messages / medianSeconds : 0,
  });
}

const counts = ({ window, warmup, kind }: Point) => ({
  iterationsPerSample: kind === 'latency' ? 2 : window,
  warmupIterations: warmup * (kind === 'latency' ? 2 : window),
});

/** A case for each pair. */
export function pairCases(
  point: Point,
  place: Place,
  samples: readonly PairSamples[],
): CaseResult[] {
  const all = judgePairs(place, samples);
  const ways = point.kind === 'bidirectional' ? 2 : 1;
  return samples.map(({ pair, seconds, wrong }, at) =>
    messageCase(identityOf(point, place, pair), {
      samplesSeconds: seconds,
      ...counts(point),
      bytes: ways * point.bytes,
      wrong: point.check ? wrong : null,
      verdict: verdictOf(all[at]!, point, place, all),
      ...(point.kind === 'latency' ? {} : { values: perSecond(ways) }),
    }),
  );
}

/** One case of all pairs that were busy at once: as long as the slowest of them. */
export function rateCase(point: Point, place: Place, samples: readonly PairSamples[]): CaseResult {
  const [first, ...others] = samples;
  const slowest = (first?.seconds ?? []).map((one, at) =>
    Math.max(one, ...others.map(({ seconds }) => seconds[at] ?? 0)),
  );
  const wrong = samples.reduce((sum, one) => sum + one.wrong, 0);
  return messageCase(identityOf(point, place), {
    samplesSeconds: slowest,
    ...counts(point),
    bytes: samples.length * point.bytes,
    wrong: point.check ? wrong : null,
    verdict: noneAlike(
      'a sum over pairs, beside no other',
      crowdedCause(
        point,
        place,
        place.ranks.map(({ rank }) => rank),
      ),
    ),
    values: perSecond(samples.length),
  });
}
