// Which host, or which way between two, is slow or loses packets: from what pairs of hosts measured.
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Verdict,
} from '../../results/result.js';
import { excused, failedWherePoor } from '../part.js';

/** So many times the usual time is slow: of a part it is told, of a host or a way it is a fault. */
const margins = { fair: 1.5, poor: 2 };
/** Of what the network counted as sent, so much again. */
const losses = { fair: 0.001, poor: 0.005 };
/** Beyond so many deviations of the others it is not chance: where ways differ by their nature, more is allowed. */
const mostDeviations = 5;
/** The standard deviation of what is spread normally, by its median absolute deviation. */
const perDeviation = 1.4826;
/** Fewer tell nothing of how they are spread. */
const leastSpread = 4;

/** What two hosts measured of the way between them; bandwidth is of one direction. */
export interface Way {
  readonly from: string;
  readonly to: string;
  readonly directed: boolean;
  readonly result: CaseResult;
}

/** The ways of one kind and one size. */
export type Point = readonly Way[];

type Level = 'good' | 'fair' | 'poor';

interface Figure {
  readonly medianSeconds: number;
  readonly minSeconds: number;
  /** Sent again; 0 where nobody counted. */
  readonly lost: number;
  /** Of the time, that its ranks waited for a core: no fault of the way. */
  readonly waited: number;
}

interface Rated {
  readonly level: Level;
  readonly text: string;
}

function figureOf({ result }: Way): Figure[] {
  if (!hasMeasurement(result)) return [];
  const { medianSeconds, minSeconds } = result.statistics;
  const { retransmittedShare: lost, waitedShare } = result.values ?? {};
  const waited = Math.min(1, Math.max(0, waitedShare ?? 0));
  return [{ medianSeconds, minSeconds, lost: lost ?? 0, waited }];
}

/** Of an even number the lower of the two in the middle, so that one slow way of two does not make its host slow. */
function lowerMedian(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1] ?? 0;
}

function middleOf(figures: readonly Figure[]): Figure {
  const of = (pick: (figure: Figure) => number): number => lowerMedian(figures.map(pick));
  return {
    medianSeconds: of(({ medianSeconds }) => medianSeconds),
    minSeconds: of(({ minSeconds }) => minSeconds),
    lost: of(({ lost }) => lost),
    waited: of(({ waited }) => waited),
  };
}

/** As it would be had nobody waited for a core, at least. */
function undisturbed({ medianSeconds, minSeconds, lost, waited }: Figure): Figure {
  const rest = 1 - waited;
  return { medianSeconds: medianSeconds * rest, minSeconds: minSeconds * rest, lost, waited: 0 };
}

/** Whether so long is chance among these. */
function isUsual(seconds: number, others: readonly number[]): boolean {
  if (others.length < leastSpread) return false;
  const usual = lowerMedian(others);
  const deviation = perDeviation * lowerMedian(others.map((one) => Math.abs(one - usual)));
  return seconds - usual <= mostDeviations * deviation;
}

function levelOf(value: number, { fair, poor }: { readonly fair: number; readonly poor: number }) {
  return value >= poor ? 'poor' : value >= fair ? 'fair' : 'good';
}

const worse = (one: Rated, other: Rated): Rated => {
  const order: readonly Level[] = ['good', 'fair', 'poor'];
  return order.indexOf(other.level) > order.indexOf(one.level) ? other : one;
};

/**
 * One beside its like. What disturbs a measurement makes it longer, never shorter: the fastest must be slow too. What it
 * loses counts by itself.
 */
function rated(one: Figure, others: readonly Figure[], what = ''): Rated {
  const usual = middleOf(others);
  const times = others.length === 0 ? 1 : one.medianSeconds / usual.medianSeconds;
  const fastest = others.length === 0 ? 1 : one.minSeconds / usual.minSeconds;
  const chance = isUsual(
    one.medianSeconds,
    others.map(({ medianSeconds }) => medianSeconds),
  );
  const slow: Rated = {
    level: chance ? 'good' : levelOf(Math.min(times, fastest), margins),
    text: `${what}takes ${times.toFixed(1)} times as long as usual here`,
  };
  const excess = one.lost - usual.lost * (others.length === 0 ? 0 : 1);
  const lossy: Rated = {
    level: levelOf(excess, losses),
    text: `${(100 * one.lost).toFixed(1)} % of what is sent is lost, and sent again`,
  };
  if (slow.level === lossy.level && slow.level !== 'good') {
    return { level: slow.level, text: `${slow.text}; ${lossy.text}` };
  }
  return worse(slow, lossy);
}

const sides = ['all ways', 'ways from it', 'ways to it'] as const;
type Side = (typeof sides)[number];

function isOf(way: Way, host: string, side: Side): boolean {
  if (side === 'all ways') return way.from === host || way.to === host;
  return way.directed && (side === 'ways from it' ? way.from : way.to) === host;
}

/** The ways that stand out, by chance or not; the slowest first. */
export function suspects(point: Point): Way[] {
  const seconds = (way: Way): number => figureOf(way)[0]?.medianSeconds ?? 0;
  const stands = (way: Way): boolean => {
    const [figure] = figureOf(way);
    const usual = middleOf(point.filter((other) => other !== way).flatMap(figureOf));
    if (figure === undefined) return false;
    return (
      figure.medianSeconds >= margins.poor * usual.medianSeconds ||
      figure.lost - usual.lost >= losses.poor
    );
  };
  return point.filter(stands).toSorted((one, other) => seconds(other) - seconds(one));
}

/** A way as the better of two measurements shows it: what disturbs one makes it longer. */
export function better(one: Way, again: Way): Way {
  const [first] = figureOf(one);
  const [second] = figureOf(again);
  if (first === undefined || second === undefined) return one;
  const isBetter =
    first.lost >= losses.poor
      ? second.lost < first.lost
      : second.medianSeconds < first.medianSeconds;
  return isBetter ? again : one;
}

/** What is wrong with a host, by one kind of figure. */
interface Finding {
  readonly side: Side;
  readonly text: string;
}

/** Of all its ways before those of one direction. */
function findingOf(host: string, hosts: readonly string[], point: Point): Finding | undefined {
  for (const side of sides) {
    const figures = (of: string): Figure[] =>
      point.filter((way) => isOf(way, of, side)).flatMap(figureOf);
    const own = figures(host);
    const others = hosts.filter((one) => one !== host).map(figures);
    if (own.length === 0 || others.some((its) => its.length === 0)) continue;
    const what = point[0]?.result.name ?? '';
    const { level, text } = rated(middleOf(own.map(undisturbed)), others.map(middleOf), `${what} `);
    if (level === 'poor') return { side, text: `${side}: ${text}` };
  }
  return undefined;
}

/** A host whose ways stand out. */
export interface HostFault {
  readonly host: string;
  /** Of each kind of figure that shows it. */
  readonly sides: readonly Side[];
  readonly reason: string;
}

/** Hosts all of whose ways, or those of one direction, stand out. */
export function hostFaults(hosts: readonly string[], points: readonly Point[]): HostFault[] {
  // Of two, both have the one way between them: it tells nothing of either.
  if (hosts.length < 3) return [];
  return hosts.flatMap((host) => {
    const found = points.flatMap((point) => findingOf(host, hosts, point) ?? []);
    // Both ways at once are slow where one is.
    const ofOne = found.filter(({ side }) => side !== 'all ways');
    const told = ofOne.length > 0 ? ofOne : found;
    if (told.length === 0) return [];
    const reason = told.map(({ text }) => text).join('; ');
    return [{ host, sides: told.map(({ side }) => side), reason }];
  });
}

/** The same way, whichever the direction. */
export const pairOf = ({ from, to }: Way): string => [from, to].toSorted().join(' ');

/**
 * The ways, each judged by the others. One of a host that is at fault is not blamed beside it, and a way is blamed once:
 * by the first kind of figure that shows it.
 */
export function judgedWays(points: readonly Point[], faulty: ReadonlySet<string>): CaseResult[] {
  const blamed = new Set<string>();
  return points.flatMap((point) => {
    const isFree = ({ from, to }: Way): boolean => !faulty.has(from) && !faulty.has(to);
    const found = new Set<string>();
    const judged = point.map((way) => {
      const [figure] = figureOf(way);
      const { result } = way;
      if (figure === undefined || !hasMeasurement(result) || !result.check.passed) return result;
      const others = point.filter((other) => other !== way && isFree(other)).flatMap(figureOf);
      const known: CaseResult & Measurement = {
        ...result,
        verdict: verdictOf(figure, others, way),
      };
      if (!isFree(way)) return excused(failedWherePoor(known), 'one of these hosts is at fault');
      const failed = failedWherePoor(known);
      if (failed.status === 'error') found.add(pairOf(way));
      return blamed.has(pairOf(way))
        ? excused(failed, 'this way is slow in another figure')
        : failed;
    });
    for (const pair of found) blamed.add(pair);
    return judged;
  });
}

function verdictOf(figure: Figure, others: readonly Figure[], way: Way): Verdict {
  if (others.length === 0 && figure.lost < losses.fair) {
    return {
      level: 'none',
      reason: 'none alike',
      text: 'no other way to judge it by',
      likelyCause: null,
    };
  }
  const { level, text } = rated(undisturbed(figure), others);
  const disturbed = rated(figure, others);
  if (level === 'good' && disturbed.level === 'poor') {
    const busy = `${disturbed.text}; not judged: its ranks waited for a core most of the time`;
    return { level: 'none', reason: 'host time', text: busy, likelyCause: null };
  }
  const likelyCause =
    level === 'good'
      ? null
      : `the way ${way.directed ? 'from' : 'between'} ${way.from} ${way.directed ? 'to' : 'and'} ${way.to}: cable, port, switch or route`;
  return { level, reason: 'others', text, likelyCause };
}
