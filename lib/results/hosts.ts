// Compares the hosts of a run, and the links between them.
import { beside, lowerMedian, margins, usualOf, type Spread } from './beside.js';

/** The times of one host. */
export interface HostSeconds {
  /** Its name. */
  readonly host: string;
  /** Its ranks. */
  readonly ranks: readonly number[];
  /** A copy in its own memory, by its slowest rank; absent if not measured. */
  readonly own?: Spread;
}

/** A message's round trip between two hosts. */
export interface LinkSeconds extends Spread {
  /** Indices in the list of hosts, the lower first. */
  readonly between: readonly [number, number];
}

/** One host in a report. */
export interface HostFigures {
  /** Its name. */
  host: string;
  /** Its ranks. */
  ranks: readonly number[];
  /** A copy in its own memory, by its slowest rank; null if not measured. */
  copySeconds: number | null;
  /** Median round trip of its messages; null if not measured. */
  messageSeconds: number | null;
}

/** A link between two hosts in a report. */
export interface LinkFigures {
  /** Its two ends, by name. */
  hosts: readonly [string, string];
  /** Round trip. */
  messageSeconds: number;
  /** Of the message, in one direction at a time. */
  bytesPerSecond: number;
}

/** The slowest host relative to the others. */
export interface SlowestHost {
  /** Its name. */
  host: string;
  /** Its ranks. */
  ranks: readonly number[];
  /** Its slowest measurement: copies in its own memory, or messages to and from the others. */
  by: 'copies' | 'messages';
  /** Relative to the median of the other hosts. */
  times: number;
  /** Whether median and fastest are both `margin` times the others'; less may be chance. */
  standsOut: boolean;
}

/** The slowest link. */
export interface SlowestLink extends LinkFigures {
  /** Relative to the median of the other links; null if there are none. */
  times: number | null;
  /** Whether it is slower than chance explains. */
  standsOut: boolean;
  /** The host whose links are all as slow; null: only this link. */
  asAllOf: string | null;
}

/** The hosts of a run compared with each other. */
export interface HostsComparison {
  /** Size of a message. */
  messageBytes: number;
  /** The memory of the messages. */
  memory: 'host' | 'gpu';
  /** The factor beyond which a host is an outlier. */
  margin: number;
  /** In the order of their ranks. */
  hosts: readonly HostFigures[];
  /** Number of measured links: all, or a selection with many hosts. */
  linkCount: number;
  /** Median message time over all links; null if not measured. */
  linkMedianSeconds: number | null;
  /** The slowest links, slowest first. */
  slowestLinks: readonly LinkFigures[];
  /** Null if hosts cannot be compared. */
  slowestHost: SlowestHost | null;
  /** Null if no link was measured. */
  slowestLink: SlowestLink | null;
}

/**
 * Similar hosts are within ten percent on a quiet machine, and within a quarter with a busy neighbour; half as much
 * again is rarely chance.
 */
export const hostMargin = margins.fair;
const mostLinks = 64;

function slowestHostOf(
  hosts: readonly HostSeconds[],
  messages: readonly (Spread | undefined)[],
): SlowestHost | null {
  const judged = (by: SlowestHost['by'], spreads: readonly (Spread | undefined)[]): SlowestHost[] =>
    hosts.flatMap(({ host, ranks }, at) => {
      const own = spreads[at];
      const others = spreads.filter((_, other) => other !== at).filter((one) => one !== undefined);
      const found = own === undefined ? undefined : beside(own, others);
      if (found === undefined) return [];
      return [{ host, ranks, by, times: found.times, standsOut: found.level !== 'good' }];
    });
  const all = [
    ...judged(
      'copies',
      hosts.map(({ own }) => own),
    ),
    // Two hosts share their only link, which says nothing about either.
    ...(hosts.length > 2 ? judged('messages', messages) : []),
  ];
  const [first, ...rest] = all;
  if (first === undefined) return null;
  const isWorse = (one: SlowestHost, other: SlowestHost): boolean =>
    one.standsOut === other.standsOut ? one.times > other.times : one.standsOut;
  return rest.reduce((worst, one) => (isWorse(one, worst) ? one : worst), first);
}

/**
 * Finds the slowest host and link.
 *
 * @param links between any two hosts, each once; missing if not measured
 */
export function compareHosts(
  hosts: readonly HostSeconds[],
  links: readonly LinkSeconds[],
  messageBytes: number,
  memory: HostsComparison['memory'],
): HostsComparison {
  const nameOf = (at: number): string => hosts[at]?.host ?? String(at);
  const figures = ({ between: [one, other], medianSeconds }: LinkSeconds): LinkFigures => ({
    hosts: [nameOf(one), nameOf(other)],
    messageSeconds: medianSeconds,
    bytesPerSecond: medianSeconds > 0 ? (2 * messageBytes) / medianSeconds : 0,
  });
  const messages = hosts.map((_, at) =>
    usualOf(links.filter(({ between }) => between.includes(at))),
  );
  const sorted = links.toSorted((one, other) => other.medianSeconds - one.medianSeconds);
  const [slowest, ...others] = sorted;
  const slowestHost = slowestHostOf(hosts, messages);
  const judged = slowest === undefined ? undefined : beside(slowest, others);
  const likeAll =
    slowest === undefined || slowestHost?.standsOut !== true || slowestHost.by !== 'messages'
      ? undefined
      : slowest.between.find((at) => {
          const usual = messages[at]?.medianSeconds ?? 0;
          return nameOf(at) === slowestHost.host && slowest.medianSeconds < hostMargin * usual;
        });
  return {
    messageBytes,
    memory,
    margin: hostMargin,
    hosts: hosts.map(({ host, ranks, own }, at) => ({
      host,
      ranks,
      copySeconds: own?.medianSeconds ?? null,
      messageSeconds: messages[at]?.medianSeconds ?? null,
    })),
    linkCount: links.length,
    linkMedianSeconds: lowerMedian(links.map(({ medianSeconds }) => medianSeconds)) ?? null,
    slowestLinks: sorted.slice(0, mostLinks).map(figures),
    slowestHost,
    slowestLink:
      slowest === undefined
        ? null
        : {
            ...figures(slowest),
            times: judged?.times ?? null,
            standsOut: judged !== undefined && judged.level !== 'good',
            asAllOf: likeAll === undefined ? null : nameOf(likeAll),
          },
  };
}
