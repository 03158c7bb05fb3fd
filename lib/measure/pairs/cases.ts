// Measurements between pairs of ranks as cases: each pair is judged against the others of its kind.
import {
  beside,
  besideOthers,
  margins,
  spreadOf,
  timesText,
  type Judged,
  type Way,
} from '../../results/beside.js';
import type { CaseIdentity, CaseResult, Verdict, VerdictLevel } from '../../results/result.js';
import { describe } from '../../results/statistics.js';
import { countText } from '../../results/units.js';
import type { RankInfo } from '../common-run.js';
import { besideVerdict, messageCase, noneAlike } from '../hosts/message-case.js';
import type { PairKind } from './pairs-options.js';
import { lossBetween, type Loss, type Segments } from './segments.js';
import type { Pair, RankSeconds } from './world.js';

/** One kind at one size. */
export interface Point {
  readonly kind: PairKind;
  readonly bytes: number;
  /** Messages per sample before the answer; 1 for latency. */
  readonly window: number;
  readonly check: boolean;
  /** Whether each direction of a pair has its own figure. */
  readonly eachWay: boolean;
  /** Maximum number of partners per rank. */
  readonly rounds?: number | undefined;
}

interface Place {
  readonly ranks: readonly RankInfo[];
  /** The CPU time, in cores, of all ranks on each rank's host. */
  readonly cores: readonly number[];
  readonly backend: string;
}

export interface PairSamples {
  readonly pair: Pair;
  /** Per message: half of a round trip, or the window's share; with both directions at once: per message each way. */
  readonly seconds: readonly number[];
  /** Untimed exchanges first. */
  readonly warmup: number;
  readonly wrong: number;
  /** Waiting for a core, in seconds per second, of each rank. */
  readonly waited?: readonly [number, number];
  /** Of the two ranks' hosts. */
  readonly segments?: readonly [Segments | undefined, Segments | undefined];
}

/** A pair's samples from its two ranks' results. */
export function samplesOf(
  { kind, window }: Point,
  pair: Pair,
  found: readonly RankSeconds[],
  warmup: number,
): PairSamples {
  const none: RankSeconds = { seconds: [], wrong: 0 };
  const [first, second] = [found[pair[0]] ?? none, found[pair[1]] ?? none];
  const [there, back] = [first.seconds, second.seconds];
  const whole =
    kind === 'bidirectional' ? there.map((one, at) => Math.max(one, back[at] ?? 0)) : there;
  const share = kind === 'latency' ? 2 : window;
  return {
    pair,
    seconds: whole.map((one) => one / share),
    warmup,
    wrong: first.wrong + second.wrong,
    waited: [first.waitedShare ?? 0, second.waitedShare ?? 0],
    segments: [first.segments, second.segments],
  };
}

function hostOf({ ranks }: Place, rank: number): string {
  return ranks[rank]?.host ?? '';
}

/** Whether a pair is within a host; it is not compared with pairs between hosts. */
function isWithin(place: Place, [one, other]: Pair): boolean {
  return hostOf(place, one) === hostOf(place, other);
}

/** Whether two are the two directions of one pair. */
function areOpposite([from, to]: Pair, other: Pair): boolean {
  return from === other[1] && to === other[0];
}

export function identityOf(
  { kind, bytes, window, eachWay }: Point,
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
      // Two ranks form one pair, with its sizes in one line per direction.
      ...(from === undefined || to === undefined || (ranks.length === 2 && !eachWay)
        ? {}
        : { from: `rank ${from}`, to: `rank ${to}` }),
      ...(from === undefined || to === undefined || !several
        ? {}
        : { hosts: `${hostOf(place, from)} - ${hostOf(place, to)}` }),
    },
  };
}

interface JudgedPair extends Way<number> {
  readonly pair: Pair;
  readonly sample: PairSamples;
  readonly judged: Judged | undefined;
  /** Those within hosts, or those between hosts, like this one. */
  readonly alike: readonly Way<number>[];
  readonly others: number;
}

/** Judges each against its like, or against its own other direction if there is no other. */
function judgePairs(
  place: Place,
  { eachWay }: Point,
  samples: readonly PairSamples[],
): JudgedPair[] {
  const ways = samples.map((sample) => {
    const { pair, waited = [0, 0] } = sample;
    const [from, to] = pair;
    const way: Way<number> = {
      from,
      to,
      directed: eachWay,
      waited: waited[0] + waited[1],
      ...spreadOf(describe(sample.seconds)),
    };
    return { way, sample, pair, within: isWithin(place, pair) };
  });
  return ways.map(({ way, sample, pair, within }) => {
    const alike = ways.filter((other) => other.within === within);
    const rest = alike.filter((other) => other.pair !== pair);
    const ofOthers = rest.filter((other) => !areOpposite(other.pair, pair));
    const others = ofOthers.length > 0 ? ofOthers : rest;
    const judged = beside(
      way,
      others.map((other) => other.way),
    );
    return {
      ...way,
      pair,
      sample,
      judged,
      alike: alike.map((one) => one.way),
      others: others.length,
    };
  });
}

/** The common feature of slow pairs or directions. */
function slowCause(
  { pair, judged, alike }: JudgedPair,
  place: Place,
  all: readonly JudgedPair[],
): string {
  const sideOf = <Node>(node: Node, ways: readonly Way<Node>[]) => {
    const found = besideOthers(node, ways);
    return found === undefined || found.level === 'good' ? undefined : found.side;
  };
  const rank = pair.find((one) => sideOf(one, alike) === 'all ways');
  if (rank !== undefined) {
    return `all pairs of rank ${rank} on ${hostOf(place, rank)} are slow: its core, or its host's network`;
  }
  if (isWithin(place, pair)) return 'these two: their cores, or what else runs there';
  const [from, to] = [hostOf(place, pair[0]), hostOf(place, pair[1])];
  const back = all.find((one) => areOpposite(one.pair, pair))?.judged;
  // Busy cores may explain the other direction's time, but then not this one's.
  if (back === undefined || judged!.times < margins.fair * back.times || back.level !== 'good') {
    return `the way between ${from} and ${to}`;
  }
  const ofHosts = alike.map((way) => ({
    ...way,
    from: hostOf(place, way.from),
    to: hostOf(place, way.to),
  }));
  const [out, into] = [
    sideOf(from, ofHosts) === 'ways from it',
    sideOf(to, ofHosts) === 'ways to it',
  ];
  if (out && !into)
    return `all ways out of ${from} are slow, not those into it: what it sends with`;
  if (into && !out)
    return `all ways into ${to} are slow, not those out of it: what it receives with`;
  return `the way from ${from} to ${to} alone, not the other direction`;
}

/** If a host's ranks exceed its cores, or their threads do with both directions busy; otherwise null. */
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
  one: JudgedPair,
  point: Point,
  place: Place,
  all: readonly JudgedPair[],
): Verdict {
  const { pair, judged, others, sample } = one;
  const crowded = crowdedCause(point, place, pair);
  const like = point.eachWay ? 'way' : 'pair';
  if (judged === undefined) return noneAlike(`no other ${like} to judge it by`, crowded);
  const { isBusy } = judged;
  const text = `${timesText(judged)} the time of the median of ${countText(others, `other ${like}`)}`;
  if (isBusy && crowded === null) {
    const { waited = [0, 0] } = sample;
    const busy = pair.filter((_, at) => waited[at]! >= Math.max(...waited) / 2);
    const hosts = [...new Set(busy.map((rank) => hostOf(place, rank)))].join(' and ');
    return {
      level: 'none',
      reason: 'host time',
      text: `${text}, most of it until a core was free`,
      likelyCause: `the cores of ${hosts} are busy with other work, which hides the network: measure without it`,
    };
  }
  return besideVerdict(judged, text, crowded ?? slowCause(one, place, all));
}

/** Hosts count segments for all their ranks: a pair's loss is known only if neither host has another pair. */
function lossOf(place: Place, { pair, segments = [undefined, undefined] }: PairSamples) {
  const alone = (rank: number): boolean =>
    place.ranks.filter(({ host }) => host === hostOf(place, rank)).length === 1;
  if (!pair.every(alone)) return undefined;
  return lossBetween([
    { host: hostOf(place, pair[0]), segments: segments[0] },
    { host: hostOf(place, pair[1]), segments: segments[1] },
  ]);
}

const severity: Readonly<Record<VerdictLevel, number>> = { none: 0, good: 0, fair: 1, poor: 2 };

/** A slow pair may be slow due to losses: reports both, and the worse decides. */
function withLoss(verdict: Verdict, loss: Loss | undefined): Verdict {
  if (loss === undefined || severity[loss.level] === 0) return verdict;
  const { likelyCause } = verdict;
  return {
    ...(severity[loss.level] > severity[verdict.level]
      ? { level: loss.level, reason: 'faults' }
      : verdict),
    text: `${verdict.text}; ${loss.text}`,
    likelyCause: likelyCause === null ? loss.cause : `${likelyCause}; ${loss.cause}`,
  };
}

function perSecond(messages: number) {
  return ({ medianSeconds }: { readonly medianSeconds: number }) => ({
    messagesPerSecond: medianSeconds > 0 ? messages / medianSeconds : 0,
  });
}

const counts = ({ window, kind }: Point, warmup: number) => ({
  iterationsPerSample: kind === 'latency' ? 2 : window,
  warmupIterations: warmup * (kind === 'latency' ? 2 : window),
});

export function pairCases(
  point: Point,
  place: Place,
  samples: readonly PairSamples[],
): CaseResult[] {
  const all = judgePairs(place, point, samples);
  const ways = point.kind === 'bidirectional' ? 2 : 1;
  return samples.map((one, at) => {
    const loss = lossOf(place, one);
    const rate = point.kind === 'latency' ? undefined : perSecond(ways);
    return messageCase(identityOf(point, place, one.pair), {
      samplesSeconds: one.seconds,
      ...counts(point, one.warmup),
      bytes: ways * point.bytes,
      wrong: point.check ? one.wrong : null,
      verdict: withLoss(verdictOf(all[at]!, point, place, all), loss),
      values: (statistics) => ({
        ...rate?.(statistics),
        ...(loss === undefined ? {} : { retransmittedShare: loss.share }),
        ...(one.waited === undefined ? {} : { waitedShare: one.waited[0] + one.waited[1] }),
      }),
    });
  });
}

/** One case for all pairs that were busy at once: as slow as the slowest. */
export function rateCase(point: Point, place: Place, samples: readonly PairSamples[]): CaseResult {
  const [first, ...others] = samples;
  const slowest = (first?.seconds ?? []).map((one, at) =>
    Math.max(one, ...others.map(({ seconds }) => seconds[at] ?? 0)),
  );
  const wrong = samples.reduce((sum, one) => sum + one.wrong, 0);
  return messageCase(identityOf(point, place), {
    samplesSeconds: slowest,
    ...counts(point, first?.warmup ?? 0),
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
