// Compares repeated measurements of similar things: which is slow beyond chance, and the common end of slow links.
import type { Statistics } from './result.js';
import { sidedText } from './units.js';

/** Factors of the usual time: half as much again is reported, twice is a fault. */
export const margins = { fair: 1.5, poor: 2 } as const;

/**
 * Shares of lost and retransmitted data. IEEE 802.3 allows one wrong bit in 1e12, a frame in some eighty million, so a
 * healthy network loses more only through full queues. At a round trip of 0.1 ms a connection reaches 4.5 Gbit/s with
 * 0.1 % loss and 2 Gbit/s with 0.5 % (Mathis et al. 1997, for Reno).
 */
export const losses = { fair: 0.001, poor: 0.005 } as const;

/** Deviations beyond which a difference is not chance; things that differ by nature have a larger deviation. */
const mostDeviations = 5;
/** Standard deviation of a normal distribution per median absolute deviation. */
const perDeviation = 1.4826;
/** With fewer values the spread is unknown. */
const leastSpread = 4;

/** The times of one thing. */
export interface Spread {
  readonly medianSeconds: number;
  readonly fastestSeconds: number;
  /** Share of the time that its ranks waited for a core, which is not the link's fault. */
  readonly waited?: number;
}

export function spreadOf({
  medianSeconds,
  minSeconds,
}: Pick<Statistics, 'medianSeconds' | 'minSeconds'>): Spread {
  return { medianSeconds, fastestSeconds: minSeconds };
}

const levels = ['good', 'fair', 'poor'] as const;
export type Level = (typeof levels)[number];

/** One thing compared with the others. */
export interface Judged {
  /** Relative to the median of the others, and to their fastest. */
  readonly times: number;
  readonly fastest: number;
  /** Also good if only waiting for a core makes it slow. */
  readonly level: Level;
  /** Whether the level would be worse without the allowance for waiting. */
  readonly isBusy: boolean;
}

/** `2.1 times`, and the reason if it is chance. */
export function timesText({ times, fastest, level, isBusy }: Judged): string {
  const factor = (value: number): string =>
    sidedText(value, value < 0.1 ? 2 : 1, [margins.fair, margins.poor]);
  const text = `${factor(times)} times`;
  if (level !== 'good' || isBusy || times < margins.fair) return text;
  return fastest < margins.fair
    ? `${text} (at best ${factor(fastest)} times)`
    : `${text} (the others scatter as much)`;
}

export function levelOf(value: number, { fair, poor }: Record<'fair' | 'poor', number>): Level {
  return value >= poor ? 'poor' : value >= fair ? 'fair' : 'good';
}

export function worse(one: Level, other: Level): Level {
  return levels[Math.max(levels.indexOf(one), levels.indexOf(other))]!;
}

/** For an even number the lower of the middle two, so that one slow link of two does not make its host slow. */
export function lowerMedian(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1];
}

/** The median one; undefined if there are none. */
export function usualOf(spreads: readonly Spread[]): Required<Spread> | undefined {
  const of = (pick: (spread: Spread) => number): number => lowerMedian(spreads.map(pick)) ?? 0;
  if (spreads.length === 0) return undefined;
  return {
    medianSeconds: of(({ medianSeconds }) => medianSeconds),
    fastestSeconds: of(({ fastestSeconds }) => fastestSeconds),
    waited: of(({ waited = 0 }) => waited),
  };
}

/** Whether this time is within the spread of the others. */
function isUsual(seconds: number, others: readonly number[]): boolean {
  const usual = lowerMedian(others);
  if (usual === undefined || others.length < leastSpread) return false;
  const deviation = perDeviation * lowerMedian(others.map((one) => Math.abs(one - usual)))!;
  return seconds - usual <= mostDeviations * deviation;
}

/** Compares one with the others. Disturbances only lengthen measurements, so its fastest sample must be slow too. */
export function beside(one: Spread, others: readonly Spread[]): Judged | undefined {
  const usual = usualOf(others);
  if (usual === undefined || usual.medianSeconds <= 0) return undefined;
  const times = one.medianSeconds / usual.medianSeconds;
  const fastest = one.fastestSeconds / usual.fastestSeconds;
  const seconds = others.map(({ medianSeconds }) => medianSeconds);
  /** The level without this share of the time. */
  const level = (share: number): Level =>
    isUsual(share * one.medianSeconds, seconds)
      ? 'good'
      : levelOf(share * Math.min(times, fastest), margins);
  const whole = level(1);
  const own = level(1 - Math.min(1, Math.max(0, one.waited ?? 0)));
  return { times, fastest, level: own, isBusy: own === 'good' && whole !== 'good' };
}

/** A link between two nodes, or one direction of it. */
export interface Way<Node> extends Spread {
  readonly from: Node;
  readonly to: Node;
  readonly directed: boolean;
}

export const sides = ['all ways', 'ways from it', 'ways to it'] as const;
export type Side = (typeof sides)[number];

/** The links of a node, on one of its sides. */
export function waysOf<Node, Each extends Omit<Way<Node>, keyof Spread>>(
  ways: readonly Each[],
  node: Node,
  side: Side = 'all ways',
): Each[] {
  return ways.filter(({ from, to, directed }) => {
    if (side === 'all ways') return from === node || to === node;
    return directed && (side === 'ways from it' ? from : to) === node;
  });
}

/**
 * Compares a node's median link with those of the others, on the side that differs most (if equal, on all sides).
 * Undefined with too few: two nodes share one link, and a single link says nothing about its ends.
 */
export function besideOthers<Node>(
  node: Node,
  ways: readonly Way<Node>[],
): (Judged & { readonly side: Side }) | undefined {
  const nodes = [...new Set(ways.flatMap(({ from, to }) => [from, to]))];
  if (nodes.length < 3) return undefined;
  const found = sides.flatMap((side) => {
    const own = waysOf(ways, node, side);
    const others = nodes.filter((other) => other !== node);
    const theirs = others.flatMap((other) => usualOf(waysOf(ways, other, side)) ?? []);
    const judged = own.length < 2 ? undefined : beside(usualOf(own)!, theirs);
    return judged === undefined ? [] : [{ side, ...judged }];
  });
  const [first] = found.toSorted((a, b) => levels.indexOf(b.level) - levels.indexOf(a.level));
  return first;
}
