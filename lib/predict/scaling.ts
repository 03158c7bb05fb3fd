// Predicts the effect of more workers from measurements of a few.
import { argumentError } from '../errors.js';
import { aNumber, aPositive, having, listOf, oneOfWords, orAbsent, someOf } from '../checks.js';
import { linkKind, messageSeconds, type Link, type Regime } from './link.js';
import { checkReach, isBeyondCores, mostWorkers, reachText } from './reach.js';
import {
  exchangeSeconds,
  hostsOf,
  isAllReduce,
  schemes,
  type Cluster,
  type Scheme,
} from './schemes.js';
import { stepTime, workloadKind, type StepTime, type Workload } from './step.js';

/** Version of the JSON layout. */
export const predictionVersion = 1;

/** TianShu's threshold for efficient scaling. */
export const targetEfficiency = 0.8;

/** The input of a prediction. */
export interface PredictOptions {
  /** One worker's computation and gradients in a step. */
  readonly workload: Workload;
  /** Samples per worker and step; 1 unless given, so that throughput counts the steps of all workers. */
  readonly batchSize?: number;
  /** Numbers of workers to predict. */
  readonly workers: readonly number[];
  /** Between workers of one host. */
  readonly inside: Link;
  /** Absent: all workers have the same links. */
  readonly between?: Link;
  /** Workers per host; all on one unless given. */
  readonly perHost?: number;
  /** Servers of the parameter-server scheme; one per host unless given, or with one host as many as workers. */
  readonly servers?: number;
  /** Network interfaces that a host uses in parallel, each as `between`; 1 unless given. */
  readonly rails?: number;
  /** Schemes to predict; default all. */
  readonly schemes?: readonly Scheme[];
  /** The number of workers in the measurement, from which the band widens. */
  readonly measuredWorkers?: number;
}

/** A forecast with a band from the links' errors and the distance from the measurement. */
export interface Banded {
  /** The forecast. */
  readonly value: number;
  /** The lower end of the band. */
  readonly low: number;
  /** The upper end of the band. */
  readonly high: number;
}

/** A step with a number of workers and a scheme. */
export interface PredictedStep extends StepTime {
  /** Number of workers. */
  readonly workers: number;
  /** How they exchange gradients. */
  readonly scheme: Scheme;
  /** Seconds of a step. */
  readonly stepBand: Banded;
  /** Samples per second of all workers. */
  readonly throughput: Banded;
  /** Throughput relative to one worker. */
  readonly speedup: Banded;
  /** speedup / workers. */
  readonly efficiency: Banded;
  /** Whether this is the fastest scheme with a full mean for this number of workers. */
  readonly best: boolean;
  /**
   * A smaller predicted number of workers whose step takes longer. More workers exchange smaller messages, which were
   * disproportionately fast in the sweep, due to caches or scatter. Null if there is none.
   */
  readonly quickerThan: number | null;
}

/** Where a scheme falls below {@link targetEfficiency}. */
export interface Crossing {
  /** How gradients are exchanged. */
  readonly scheme: Scheme;
  /** Fewest workers, up to the limit, below the target efficiency; null if there are none. */
  readonly workers: number | null;
}

/** The predicted effect of more workers. */
export interface Prediction {
  /** Raised when a field changes its meaning or is removed. */
  readonly predictionVersion: typeof predictionVersion;
  /** Marks that nothing here was measured. */
  readonly predicted: true;
  /** Bytes that a worker exchanges per step. */
  readonly gradientBytes: number;
  /** Workers per host; null if unknown. */
  readonly perHost: number | null;
  /** The links of the forecast. */
  readonly links: {
    /** Between workers of one host, by size. */
    readonly inside: readonly Regime[];
    /** Between hosts, by size; null if all workers have the same links. */
    readonly between: readonly Regime[] | null;
  };
  /** As sentences. */
  readonly assumptions: readonly string[];
  /** A forecast for each number of workers and scheme. */
  readonly steps: readonly PredictedStep[];
  /** Required share of a perfect speedup, from 0 to 1. */
  readonly targetEfficiency: number;
  /** The maximum number of workers searched. */
  readonly searchedWorkers: number;
  /** Where each scheme falls below the target. */
  readonly crossings: readonly Crossing[];
}

/** No link is known more accurately. */
const leastError = 0.1;
const mostError = 0.9;
/** Workers in one memory, or hosts of a cluster. */
const mostSearched = 1000;

/**
 * Relative error of communication times: that of held-out sizes, and half as much again for each doubling of the
 * workers.
 */
function exchangeError(links: readonly Link[], workers: number, measured: number): number {
  const unseen = Math.max(
    leastError,
    ...links.map(({ unseenError }) => unseenError ?? 2 * leastError),
  );
  const doublings = Math.max(Math.log2(workers / measured), 0);
  return Math.min(unseen * (1 + doublings / 2), mostError);
}

function clusterOf(options: PredictOptions, workers: number): Cluster {
  const { inside, between = inside, perHost = Infinity } = options;
  const hosts = hostsOf(workers, perHost);
  const servers = options.servers ?? (hosts > 1 ? hosts : workers);
  const { rails = 1 } = options;
  return { workers, perHost, inside, between, servers, rails };
}

function banded(value: number, one: number, other: number): Banded {
  return { value, low: Math.min(one, other), high: Math.max(one, other) };
}

function predictOne(
  options: PredictOptions,
  workers: number,
  scheme: Scheme,
): Omit<PredictedStep, 'best' | 'quickerThan'> {
  const { workload, batchSize = 1, inside, between = inside, measuredWorkers = 2 } = options;
  const cluster = clusterOf(options, workers);
  const error = exchangeError([inside, between], workers, measuredWorkers);
  const at = (factor: number): StepTime =>
    stepTime(workload, workers, (bytes) => factor * exchangeSeconds(scheme, bytes, cluster));
  const [middle, low, high] = [at(1), at(1 - error), at(1 + error)];
  const alone = workload.forwardSeconds + workload.backwardSeconds;
  const each = (read: (seconds: number) => number): Banded =>
    banded(read(middle.stepSeconds), read(low.stepSeconds), read(high.stepSeconds));
  return {
    workers,
    scheme,
    ...middle,
    stepBand: each((seconds) => seconds),
    throughput: each((seconds) => (workers * batchSize) / seconds),
    speedup: each((seconds) => (workers * alone) / seconds),
    efficiency: each((seconds) => alone / seconds),
  };
}

/** Smaller gains count as equal. */
const leastGain = 0.01;

/**
 * Fewer workers that take longer with the same scheme. Only powers of two if it halves, because others need more
 * rounds.
 */
function quickerThan(
  { scheme, workers, stepSeconds }: Omit<PredictedStep, 'best' | 'quickerThan'>,
  all: readonly Omit<PredictedStep, 'quickerThan'>[],
): number | null {
  const slower = all.find(
    (one) =>
      one.scheme === scheme &&
      one.workers < workers &&
      (scheme !== 'halving-doubling' || Number.isInteger(Math.log2(one.workers))) &&
      stepSeconds < one.stepSeconds * (1 - leastGain),
  );
  return slower?.workers ?? null;
}

/** With several hosts all must be full. */
function possible(workers: number, perHost: number): boolean {
  return workers <= perHost || workers % perHost === 0;
}

function searchedOf(options: PredictOptions): number {
  const { between, perHost } = options;
  const hosts = between === undefined || perHost === undefined ? 1 : perHost;
  return Math.min(mostSearched * hosts, mostWorkers(options));
}

function crossingOf(options: PredictOptions, scheme: Scheme): Crossing {
  const { workload, perHost = Infinity } = options;
  const alone = workload.forwardSeconds + workload.backwardSeconds;
  for (let workers = 2; workers <= searchedOf(options); workers += 1) {
    if (!possible(workers, perHost)) continue;
    const cluster = clusterOf(options, workers);
    const { stepSeconds } = stepTime(workload, workers, (bytes) =>
      exchangeSeconds(scheme, bytes, cluster),
    );
    if (alone / stepSeconds < targetEfficiency) return { scheme, workers };
  }
  return { scheme, workers: null };
}

function assumptionsOf(options: PredictOptions): string[] {
  const { workload, inside, between, perHost, rails = 1 } = options;
  const link = (one: Link, name: string): string =>
    [
      `${name}: a small message takes ${(messageSeconds(one, 8) * 1e6).toPrecision(3)} us`,
      ...(one.origin === undefined ? [] : [`measured with ${one.origin.text}`]),
    ].join(', ');
  return [
    perHost === undefined
      ? 'all workers have links like those that were measured'
      : `${String(perHost)} workers a host, which share its ${rails === 1 ? 'link' : `${String(rails)} links`} to the others`,
    link(inside, 'inside a host'),
    ...(between === undefined ? [] : [link(between, 'between hosts')]),
    workload.overlap
      ? 'exchanges run beside the backward pass and do not slow it'
      : 'nothing is exchanged before the backward pass ends',
    'compute time is that of one worker, however many there are',
    ...(isBeyondCores(options) ? ['every worker of a host has a core of its own'] : []),
    ...[reachText(options) ?? []].flat(),
  ];
}

const optionsKind = having({
  workload: workloadKind,
  workers: listOf(aNumber),
  inside: linkKind,
  between: orAbsent(linkKind),
  batchSize: orAbsent(aPositive),
  perHost: orAbsent(aPositive),
  servers: orAbsent(aPositive),
  rails: orAbsent(aPositive),
  schemes: orAbsent(someOf(oneOfWords(schemes))),
  measuredWorkers: orAbsent(aPositive),
});

function check(options: PredictOptions): void {
  optionsKind(options, 'options');
  const { workload, perHost = Infinity, workers } = options;
  const refuse = (name: string, expected: string, got: unknown): never => {
    throw argumentError('ERR_OUT_OF_RANGE', name, expected, got);
  };
  if (!(workload.forwardSeconds + workload.backwardSeconds > 0)) {
    refuse('workload', 'a compute time above 0', workload.forwardSeconds);
  }
  if (!workload.gradientBytes.some((bytes) => bytes > 0)) {
    refuse('gradientBytes', 'sizes above 0', workload.gradientBytes);
  }
  checkReach(options);
  for (const count of workers) {
    if (!Number.isSafeInteger(count) || count < 1) refuse('workers', 'whole numbers from 1', count);
    if (!possible(count, perHost)) {
      refuse('workers', `at most ${String(perHost)}, or a multiple of it (perHost)`, count);
    }
  }
}

/** Servers are additional processes or hosts, which other schemes lack: they compete only if requested. */
function isComparable(scheme: Scheme, { servers }: PredictOptions): boolean {
  return isAllReduce(scheme) && (scheme !== 'parameter-server' || servers !== undefined);
}

/**
 * Step time, throughput, speedup and efficiency for each number of workers and scheme.
 *
 * @throws RangeError if a number of workers does not fill its hosts, or there is nothing to compute or to exchange
 */
export function predict(options: PredictOptions): Prediction {
  check(options);
  const chosen = options.schemes ?? schemes;
  const steps = options.workers.flatMap((workers) => {
    const row = chosen.map((scheme) => predictOne(options, workers, scheme));
    const alike = row.filter(({ scheme }) => isComparable(scheme, options));
    const quickest = Math.min(...alike.map(({ stepSeconds }) => stepSeconds));
    return row.map((one) => ({
      ...one,
      best: isComparable(one.scheme, options) && one.stepSeconds === quickest,
    }));
  });
  return {
    predictionVersion,
    predicted: true,
    gradientBytes: options.workload.gradientBytes.reduce((sum, bytes) => sum + bytes, 0),
    perHost: options.perHost ?? null,
    links: { inside: options.inside.regimes, between: options.between?.regimes ?? null },
    assumptions: assumptionsOf(options),
    steps: steps.map((one) => ({ ...one, quickerThan: quickerThan(one, steps) })),
    targetEfficiency,
    searchedWorkers: searchedOf(options),
    crossings: chosen.map((scheme) => crossingOf(options, scheme)),
  };
}
