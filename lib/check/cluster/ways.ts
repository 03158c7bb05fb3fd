// Finds the host or link that is slow or loses packets, from measurements between pairs of hosts.
import { besideVerdict, noneAlike } from '../../measure/hosts/message-case.js';
import {
  beside,
  besideOthers,
  levelOf,
  losses,
  lowerMedian,
  margins,
  sides,
  spreadOf,
  timesText,
  usualOf,
  waysOf,
  worse,
  type Judged,
  type Side,
  type Way,
} from '../../results/beside.js';
import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Verdict,
} from '../../results/result.js';
import { excused, failedWherePoor } from '../part.js';

/** Figures of the link between two hosts; bandwidth is of one direction. */
export interface HostWay {
  readonly from: string;
  readonly to: string;
  readonly directed: boolean;
  readonly result: CaseResult;
}

/** The links of one kind and one size. */
export type Point = readonly HostWay[];

interface Figure extends Way<string> {
  /** Retransmitted packets; 0 if not counted. */
  readonly lost: number;
}

function figureOf({ from, to, directed, result }: HostWay): Figure[] {
  if (!hasMeasurement(result)) return [];
  const { retransmittedShare: lost, waitedShare } = result.values ?? {};
  const spread = spreadOf(result.statistics);
  return [{ from, to, directed, ...spread, lost: lost ?? 0, waited: waitedShare ?? 0 }];
}

const slowText = (judged: Judged): string => `takes ${timesText(judged)} as long as usual here`;
const lossText = (share: number): string =>
  `${(100 * share).toFixed(1)} % of what is sent is lost, and sent again`;

/** Outlier links, by chance or not; the slowest first. */
export function suspects(point: Point): HostWay[] {
  const seconds = (way: HostWay): number => figureOf(way)[0]?.medianSeconds ?? 0;
  const stands = (way: HostWay): boolean => {
    const [figure] = figureOf(way);
    const usual = usualOf(point.filter((other) => other !== way).flatMap(figureOf));
    if (figure === undefined) return false;
    return (
      figure.medianSeconds >= margins.poor * (usual?.medianSeconds ?? Infinity) ||
      figure.lost >= losses.poor
    );
  };
  return point.filter(stands).toSorted((one, other) => seconds(other) - seconds(one));
}

/** The better of two measurements of a link: disturbances only make one longer. */
export function better(one: HostWay, again: HostWay): HostWay {
  const [first] = figureOf(one);
  const [second] = figureOf(again);
  if (first === undefined || second === undefined) return one;
  const isBetter =
    first.lost >= losses.poor
      ? second.lost < first.lost
      : second.medianSeconds < first.medianSeconds;
  return isBetter ? again : one;
}

/** A host whose links are outliers. */
export interface HostFault {
  readonly host: string;
  /** Of each kind of figure that shows it. */
  readonly sides: readonly Side[];
  readonly reason: string;
}

interface Finding {
  readonly side: Side;
  readonly text: string;
}

function slowness(host: string, point: Point): Finding[] {
  const slow = besideOthers(host, point.flatMap(figureOf));
  if (slow?.level !== 'poor') return [];
  const { side } = slow;
  const { name = '', parameters: { rail = '' } = {} } = point[0]?.result ?? {};
  return [{ side, text: `${side}: ${`${name} ${String(rail)}`.trim()} ${slowText(slow)}` }];
}

function loss(host: string, hosts: readonly string[], point: Point): Finding[] {
  const figures = point.flatMap(figureOf);
  for (const side of hosts.length > 2 ? sides : []) {
    const lostBy = (of: string): number =>
      lowerMedian(waysOf(figures, of, side).map(({ lost }) => lost)) ?? 0;
    if (hosts.every((one) => lostBy(one) >= losses.poor === (one === host))) {
      return [{ side, text: `${side}: ${lossText(lostBy(host))}` }];
    }
  }
  return [];
}

/** A fault of one direction also shows in measurements of both at once. */
function ofOneSide(found: readonly Finding[]): readonly Finding[] {
  const ofOne = found.filter(({ side }) => side !== 'all ways');
  return ofOne.length > 0 ? ofOne : found;
}

/** Hosts all of whose links, or those of one direction, are outliers: by time, by loss, or by both. */
export function hostFaults(hosts: readonly string[], points: readonly Point[]): HostFault[] {
  return hosts.flatMap((host) => {
    const found = [
      ...ofOneSide(points.flatMap((point) => slowness(host, point))),
      ...ofOneSide(points.flatMap((point) => loss(host, hosts, point))),
    ];
    if (found.length === 0) return [];
    const reason = found.map(({ text }) => text).join('; ');
    return [{ host, sides: found.map(({ side }) => side), reason }];
  });
}

/** The same pair for both directions. */
export const pairOf = ({ from, to }: HostWay): string => [from, to].toSorted().join(' ');

/**
 * Judges each link against the others. Links of a faulty host are not blamed as well, and a link is blamed once, by the
 * first kind of figure that shows it.
 */
export function judgedWays(points: readonly Point[], faulty: ReadonlySet<string>): CaseResult[] {
  const blamed = new Set<string>();
  const isFree = ({ from, to }: HostWay): boolean => !faulty.has(from) && !faulty.has(to);
  return points.flatMap((point) => {
    const found = new Set<string>();
    const judged = point.map((way) => {
      const [figure] = figureOf(way);
      const { result } = way;
      if (figure === undefined || !hasMeasurement(result) || !result.check.passed) return result;
      const others = point.filter((other) => other !== way && isFree(other)).flatMap(figureOf);
      const known: CaseResult & Measurement = { ...result, verdict: verdictOf(figure, others) };
      const failed = failedWherePoor(known);
      if (!isFree(way)) return excused(failed, 'one of these hosts is at fault');
      if (failed.status === 'error') found.add(pairOf(way));
      return blamed.has(pairOf(way))
        ? excused(failed, 'this way is slow in another figure')
        : failed;
    });
    for (const pair of found) blamed.add(pair);
    return judged;
  });
}

function verdictOf(figure: Figure, others: readonly Figure[]): Verdict {
  const { from, to, directed, lost } = figure;
  const lossy = levelOf(lost, losses);
  const judged = beside(figure, others);
  if (judged === undefined && lossy === 'good') return noneAlike('no other way to judge it by');
  const slow = judged?.level ?? 'good';
  const level = worse(slow, lossy);
  if (judged?.isBusy === true && level === 'good') {
    const text = `${slowText(judged)}; not judged: its ranks waited for a core most of the time`;
    return { level: 'none', reason: 'host time', text, likelyCause: null };
  }
  const texts = judged !== undefined && slow === level ? [slowText(judged)] : [];
  if (lossy === level && level !== 'good') texts.push(lossText(lost));
  const way = directed ? `from ${from} to ${to}` : `between ${from} and ${to}`;
  return besideVerdict({ level }, texts.join('; '), `the way ${way}: cable, port, switch or route`);
}
