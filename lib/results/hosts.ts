// The hosts of a run beside one another: which is slow, and which way between two of them.
import { beside, lowerMedian, margins, usualOf, type Spread } from './beside.js';

/** What one host was seen to take. */
export interface HostSeconds {
  /** Its name. */
  readonly host: string;
  /** Those that are on it. */
  readonly ranks: readonly number[];
  /** A copy in its own memory, by the slowest of its ranks; absent where that was not measured. */
  readonly own?: Spread;
}

/** What a message takes between two hosts, there and back. */
export interface LinkSeconds extends Spread {
  /** Places in the list of hosts, the lower first. */
  readonly between: readonly [number, number];
}

/** Of one host in a report. */
export interface HostFigures {
  /** Its name. */
  host: string;
  /** Those that are on it. */
  ranks: readonly number[];
  /** A copy in its own memory, by the slowest of its ranks; null where that was not measured. */
  copySeconds: number | null;
  /** The median of its messages, there and back; null where none was measured. */
  messageSeconds: number | null;
}

/** Of one way between two hosts in a report. */
export interface LinkFigures {
  /** Its two ends, by name. */
  hosts: readonly [string, string];
  /** There and back. */
  messageSeconds: number;
  /** Of the message, in one direction at a time. */
  bytesPerSecond: number;
}

/** The host that took longest beside the others. */
export interface SlowestHost {
  /** Its name. */
  host: string;
  /** Those that are on it. */
  ranks: readonly number[];
  /** What took it longest: copies in its own memory, or messages to and from the others. */
  by: 'copies' | 'messages';
  /** So many times the median of the other hosts. */
  times: number;
  /** Whether it is `margin` times the others in the median and in the fastest; what is less may be chance. */
  standsOut: boolean;
}

/** The way that took longest. */
export interface SlowestLink extends LinkFigures {
  /** So many times the median of the other ways; null where there is no other. */
  times: number | null;
  /** Whether it is slower than chance explains. */
  standsOut: boolean;
  /** The host all of whose ways are as slow; null: it is this way alone. */
  asAllOf: string | null;
}

/** The hosts of a run beside one another. */
export interface HostsComparison {
  /** Of one message. */
  messageBytes: number;
  /** What the messages went from and to. */
  memory: 'host' | 'gpu';
  /** So many times the median of the others stands out. */
  margin: number;
  /** In the order of their ranks. */
  hosts: readonly HostFigures[];
  /** Ways that were measured: all, or of many hosts a part. */
  linkCount: number;
  /** Of a message, over all links; null where none was measured. */
  linkMedianSeconds: number | null;
  /** The slowest of them, the slowest first. */
  slowestLinks: readonly LinkFigures[];
  /** Null where hosts cannot be compared. */
  slowestHost: SlowestHost | null;
  /** Null where no link was measured. */
  slowestLink: SlowestLink | null;
}

/**
 * Hosts of one kind are within some ten percent of each other on a quiet machine, and a busy neighbour makes a quarter of
 * it; half as much again is seldom chance.
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
    // Of two hosts both have the one way between them: it tells nothing of either.
    ...(hosts.length > 2 ? judged('messages', messages) : []),
  ];
  const [first, ...rest] = all;
  if (first === undefined) return null;
  const isWorse = (one: SlowestHost, other: SlowestHost): boolean =>
    one.standsOut === other.standsOut ? one.times > other.times : one.standsOut;
  return rest.reduce((worst, one) => (isWorse(one, worst) ? one : worst), first);
}

/**
 * Which host and which way is slow.
 *
 * @param links between any two of them, each once; those that were not measured are left out
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
