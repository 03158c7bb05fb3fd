// What was measured several times, each beside its like: which is slow and not by chance, and what slow ways have in common.
import type { Statistics } from './result.js';
import { sidedText } from './units.js';

/** So many times the usual time is slow: half as much again is told, twice is a fault. */
export const margins = { fair: 1.5, poor: 2 } as const;

/**
 * Shares of what is sent that are lost and sent again. IEEE 802.3 asks for no more than a wrong bit in 1e12, which is a
 * frame in some eighty million. Whatever a healthy network loses beyond that is dropped by a full queue. At a round trip
 * of 0.1 ms one connection gets to 4.5 Gbit/s where 0.1 % is lost, and to 2 Gbit/s where 0.5 % is (Mathis et al. 1997, of
 * Reno).
 */
export const losses = { fair: 0.001, poor: 0.005 } as const;

/** Beyond so many deviations of the others it is not chance: where ways differ by their nature, more is allowed. */
const mostDeviations = 5;
/** The standard deviation of what is spread normally, by its median absolute deviation. */
const perDeviation = 1.4826;
/** Fewer tell nothing of how they are spread. */
const leastSpread = 4;

/** Of one thing that was done several times. */
export interface Spread {
  readonly medianSeconds: number;
  readonly fastestSeconds: number;
  /** Of the time, that its ranks waited for a core: no fault of the way. */
  readonly waited?: number;
}

/** What it is of samples. */
export function spreadOf({
  medianSeconds,
  minSeconds,
}: Pick<Statistics, 'medianSeconds' | 'minSeconds'>): Spread {
  return { medianSeconds, fastestSeconds: minSeconds };
}

const levels = ['good', 'fair', 'poor'] as const;
export type Level = (typeof levels)[number];

/** One beside its like. */
export interface Judged {
  /** So many times the median of the others, and the fastest of theirs. */
  readonly times: number;
  readonly fastest: number;
  /** Good, too, where nothing but waiting for a core makes it slow. */
  readonly level: Level;
  /** Whether it would be worse by the time that its ranks waited for a core. */
  readonly isBusy: boolean;
}

/** `2.1 times`, and what says that this is chance. */
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

/** Of an even number the lower of the two in the middle, so that one slow way of two does not make its host slow. */
export function lowerMedian(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1];
}

/** The one in the middle; undefined of none. */
export function usualOf(spreads: readonly Spread[]): Required<Spread> | undefined {
  const of = (pick: (spread: Spread) => number): number => lowerMedian(spreads.map(pick)) ?? 0;
  if (spreads.length === 0) return undefined;
  return {
    medianSeconds: of(({ medianSeconds }) => medianSeconds),
    fastestSeconds: of(({ fastestSeconds }) => fastestSeconds),
    waited: of(({ waited = 0 }) => waited),
  };
}

/** Whether so long is chance among these. */
function isUsual(seconds: number, others: readonly number[]): boolean {
  const usual = lowerMedian(others);
  if (usual === undefined || others.length < leastSpread) return false;
  const deviation = perDeviation * lowerMedian(others.map((one) => Math.abs(one - usual)))!;
  return seconds - usual <= mostDeviations * deviation;
}

/**
 * One beside its like: how many times as long it took. What disturbs a measurement makes it longer, never shorter: the
 * fastest must be slow too.
 */
export function beside(one: Spread, others: readonly Spread[]): Judged | undefined {
  const usual = usualOf(others);
  if (usual === undefined || usual.medianSeconds <= 0) return undefined;
  const times = one.medianSeconds / usual.medianSeconds;
  const fastest = one.fastestSeconds / usual.fastestSeconds;
  const seconds = others.map(({ medianSeconds }) => medianSeconds);
  /** Of that share of its time. */
  const level = (share: number): Level =>
    isUsual(share * one.medianSeconds, seconds)
      ? 'good'
      : levelOf(share * Math.min(times, fastest), margins);
  const whole = level(1);
  const own = level(1 - Math.min(1, Math.max(0, one.waited ?? 0)));
  return { times, fastest, level: own, isBusy: own === 'good' && whole !== 'good' };
}

/** A way between two, or of one direction between them. */
export interface Way<Node> extends Spread {
  readonly from: Node;
  readonly to: Node;
  readonly directed: boolean;
}

export const sides = ['all ways', 'ways from it', 'ways to it'] as const;
export type Side = (typeof sides)[number];

/** The ways of one, on one of its sides. */
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
 * Beside those of the others the ways of one, as they are in the middle: on the side that stands out most, and of equal
 * ones on all sides. Undefined where they cannot be judged: of two both have the way between them, and one way by itself
 * tells nothing of either end.
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
