// The time of a training step whose buckets are exchanged during the backward pass.

import { aFunction, anAmount, aPositive, having, type Kind, listOf } from '../checks.js';

/** One worker's step, and its communication. */
export interface Workload {
  /** Bytes of each gradient, in the order of the forward pass. */
  readonly gradientBytes: readonly number[];
  /** One worker's forward pass. */
  readonly forwardSeconds: number;
  /** One worker's backward pass, without communication. */
  readonly backwardSeconds: number;
  /** Standard deviation of the compute time among workers. */
  readonly sigmaSeconds: number;
  /** Maximum bucket size; a larger gradient is its own bucket. */
  readonly bucketBytes: number;
  /** False: communication starts after the backward pass. */
  readonly overlap: boolean;
}

/** The parts of a predicted step. */
export interface StepTime {
  /** Both passes. */
  readonly computeSeconds: number;
  /** All communication. */
  readonly communicationSeconds: number;
  /** Communication without overlap. */
  readonly exposedSeconds: number;
  /** Waiting for the slowest worker. */
  readonly stragglerSeconds: number;
  /** The whole step: computation, exposed communication and waiting. */
  readonly stepSeconds: number;
}

/** Gradients that are exchanged together. */
export interface Bucket {
  /** Size of the bucket. */
  readonly bytes: number;
  /** Share of the backward pass until it is complete, in proportion to bytes. */
  readonly ready: number;
}

const gradientsKind = having({ gradientBytes: listOf(anAmount), bucketBytes: aPositive });
const timesKind = having({
  forwardSeconds: anAmount,
  backwardSeconds: anAmount,
  sigmaSeconds: anAmount,
});

export const workloadKind: Kind = (value, name) => {
  gradientsKind(value, name);
  timesKind(value, name);
};

/** From the last gradient to the first, as in the backward pass; closed before overflow. */
export function bucketsOf(workload: Pick<Workload, 'gradientBytes' | 'bucketBytes'>): Bucket[] {
  gradientsKind(workload, 'workload');
  const { gradientBytes, bucketBytes } = workload;
  const total = gradientBytes.reduce((sum, bytes) => sum + bytes, 0);
  const buckets: Bucket[] = [];
  let done = 0;
  let open = 0;
  const close = (): void => {
    if (open > 0) buckets.push({ bytes: open, ready: done / total });
    open = 0;
  };
  for (const bytes of [...gradientBytes].reverse()) {
    if (open + bytes > bucketBytes) close();
    open += bytes;
    done += bytes;
  }
  close();
  return buckets;
}

/** Expected excess of the slowest worker over the mean, in standard deviations. */
function slowestOf(workers: number): number {
  return workers > 1 ? Math.sqrt(2 * Math.log(workers)) : 0;
}

/**
 * One step: buckets are exchanged in order, each once it is complete and the previous one is done.
 *
 * @param exchange seconds to exchange this many bytes
 */
export function stepTime(
  workload: Workload,
  workers: number,
  exchange: (bytes: number) => number,
): StepTime {
  timesKind(workload, 'workload');
  aPositive(workers, 'workers');
  aFunction(exchange, 'exchange');
  const { forwardSeconds, backwardSeconds, sigmaSeconds, overlap } = workload;
  const computeSeconds = forwardSeconds + backwardSeconds;
  let communicationSeconds = 0;
  let end = 0;
  for (const { bytes, ready } of bucketsOf(workload)) {
    const seconds = exchange(bytes);
    const readyAt = forwardSeconds + backwardSeconds * (overlap ? ready : 1);
    end = Math.max(readyAt, end) + seconds;
    communicationSeconds += seconds;
  }
  const exposedSeconds = workers === 1 ? 0 : Math.max(end - computeSeconds, 0);
  const stragglerSeconds = sigmaSeconds * slowestOf(workers);
  return {
    computeSeconds,
    communicationSeconds: workers === 1 ? 0 : communicationSeconds,
    exposedSeconds,
    stragglerSeconds,
    stepSeconds: computeSeconds + exposedSeconds + stragglerSeconds,
  };
}
