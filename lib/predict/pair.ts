// The network between hosts from a step of one host and a step of two: what a pair shows of a cluster.
import { aPositive, having, oneOfWords } from '../checks.js';
import { linkKind, plainLink, type Link } from './link.js';
import { exchangeSeconds, schemes, type Scheme } from './schemes.js';
import { stepTime, workloadKind, type Workload } from './step.js';

/** One host's step and links, and how long a step of two such hosts takes. */
export interface HostPair {
  /** Its compute time is the step of one host, whose exchanges are part of it. */
  readonly workload: Workload;
  /** Workers of each host. */
  readonly perHost: number;
  /** Between workers of one host. */
  readonly inside: Link;
  /** Of both hosts together. */
  readonly stepSeconds: number;
  /** How the workers exchange their gradients. */
  readonly scheme: Scheme;
  /** Network interfaces that a host uses at the same time; 1 unless given. */
  readonly rails?: number;
}

/** A small message between hosts, where nothing better is known: InfiniBand takes a fifth, TCP twice as long. */
const usualLatencySeconds = 20e-6;
/** Slower and faster than networks are. */
const [slowest, fastest] = [1e6, 1e13];
const halvings = 60;

const pairKind = having({
  workload: workloadKind,
  perHost: aPositive,
  inside: linkKind,
  stepSeconds: aPositive,
  scheme: oneOfWords(schemes),
});

/**
 * The link between hosts that explains the step of two, each byte of which takes the same time. Where two hosts are as
 * quick as one the network is hidden, and nothing but that it is fast enough is known.
 *
 * @throws TypeError for what is not a pair
 */
export function linkOfPair(pair: HostPair): Link {
  pairKind(pair, 'pair');
  const { workload, perHost, inside, stepSeconds, scheme, rails = 1 } = pair;
  const workers = 2 * perHost;
  const predicted = (rate: number): number => {
    const between = plainLink(usualLatencySeconds, rate);
    const cluster = { workers, perHost, inside, between, servers: 2, rails };
    return stepTime(workload, workers, (bytes) => exchangeSeconds(scheme, bytes, cluster))
      .stepSeconds;
  };
  let [low, high] = [slowest, fastest];
  for (let left = halvings; left > 0; left -= 1) {
    const middle = Math.sqrt(low * high);
    if (predicted(middle) > stepSeconds) low = middle;
    else high = middle;
  }
  return plainLink(usualLatencySeconds, high);
}
