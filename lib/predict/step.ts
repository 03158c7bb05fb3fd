// How long a training step takes whose gradients are exchanged bucket by bucket while the backward pass still runs.

import { aFunction, anAmount, aPositive, having, type Kind, listOf } from '../checks.js';

/** The step of one worker, and how its gradients are exchanged. */
export interface Workload {
  /** Bytes of each gradient, in the order of the forward pass. */
  readonly gradientBytes: readonly number[];
  /** Of one worker's forward pass. */
  readonly forwardSeconds: number;
  /** Of one worker's backward pass, without communication. */
  readonly backwardSeconds: number;
  /** Standard deviation of the compute time of a step among workers. */
  readonly sigmaSeconds: number;
  /** Largest bucket; a larger gradient is a bucket of its own. */
  readonly bucketBytes: number;
  /** False: nothing is exchanged before the backward pass has ended. */
  readonly overlap: boolean;
}

/** The parts of a predicted step. */
export interface StepTime {
  /** Of both passes. */
  readonly computeSeconds: number;
  /** Of all exchanges together. */
  readonly communicationSeconds: number;
  /** Part of it that the backward pass does not hide. */
  readonly exposedSeconds: number;
  /** Waiting for the slowest worker. */
  readonly stragglerSeconds: number;
  /** Of the whole step, with what of communication is not hidden. */
  readonly stepSeconds: number;
}

/** Gradients that are exchanged together. */
export interface Bucket {
  /** That are reduced at once. */
  readonly bytes: number;
  /** Share of the backward pass after which all of it is there; bytes stand for work. */
  readonly ready: number;
}

const gradientsKind = having({ gradientBytes: listOf(anAmount), bucketBytes: aPositive });
const timesKind = having({
  forwardSeconds: anAmount,
  backwardSeconds: anAmount,
  sigmaSeconds: anAmount,
});

/** A workload, complete. */
export const workloadKind: Kind = (value, name) => {
  gradientsKind(value, name);
  timesKind(value, name);
};

/** From the last gradient to the first, as the backward pass gives them; closed before they would overflow. */
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

/** Expected excess of the slowest of many workers over their mean, in standard deviations. */
function slowestOf(workers: number): number {
  return workers > 1 ? Math.sqrt(2 * Math.log(workers)) : 0;
}

/**
 * One step: buckets are exchanged in order, each when it is ready and the one before is done.
 *
 * @param exchange seconds of exchanging so many bytes
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
