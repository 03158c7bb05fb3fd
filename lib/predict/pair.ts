// Derives the network between hosts from the steps of one and of two hosts.
import { aPositive, having, oneOfWords } from '../checks.js';
import { linkKind, plainLink, type Link } from './link.js';
import { exchangeSeconds, schemes, type Scheme } from './schemes.js';
import { stepTime, workloadKind, type Workload } from './step.js';

/** One host's step and links, and the step of two such hosts. */
export interface HostPair {
  /** Its compute time is one host's step, including communication within it. */
  readonly workload: Workload;
  /** Workers per host. */
  readonly perHost: number;
  /** Between workers of one host. */
  readonly inside: Link;
  /** Step of both hosts together. */
  readonly stepSeconds: number;
  /** How the workers exchange their gradients. */
  readonly scheme: Scheme;
  /** Network interfaces that a host uses in parallel; 1 unless given. */
  readonly rails?: number;
}

/** A small message between hosts, if unknown: InfiniBand takes a fifth, TCP twice as long. */
const usualLatencySeconds = 20e-6;
/** Beyond the range of networks. */
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
 * The link between hosts that explains the step of two, at a constant rate. If two hosts are as fast as one, the
 * network is hidden and only known to be fast enough.
 *
 * @throws TypeError for an invalid pair
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
