// A synthetic model: the JavaScript thread sleeps until each gradient is due, as if waiting for a GPU, and then adds
// it.
import { median } from 'simple-statistics';

import type { Communicator } from '../../communicator/communicator.js';
import { assignBeforeOverflow } from '../../train/buckets/assign.js';
import { elementsOf } from '../../train/buckets/plan.js';
import { GradientReducer } from '../../train/buckets/reducer.js';
import type { BucketPlan, BucketTimes, GradientSpec } from '../../train/buckets/types.js';
import { monotonicSeconds } from '../../time.js';
import type { DdpOption, DdpTrainer, DdpWorkload, StepTimes } from './step.js';
import { releaseShares, resnet50Gradients } from './timetable.js';

/** compare_ddp's figures: a forward pass takes half of a backward pass. */
const forwardShare = 0.5;
/** Values repeat after this prime number of elements: sums are exact, and shifted gradients are detected. */
const period = 251;

const passesAlone = { dropped: 3, kept: 7 } as const;

export interface SyntheticOptions {
  readonly backwardSeconds: number;
  /**
   * Whether gradients come in separate arrays, as from TensorFlow.js, and are copied into their buckets by the waiting
   * thread. False: computed in their buckets, as by a GPU's copy engine.
   */
  readonly copies: boolean;
}

const sleeping = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread without using its core. */
function sleepUntil(seconds: number): void {
  for (;;) {
    const left = seconds - monotonicSeconds();
    if (left <= 0) return;
    Atomics.wait(sleeping, 0, 0, left * 1e3);
  }
}

/** The value at `index` of a gradient on this rank. */
function valueOf(rank: number, gradient: number, index: number): number {
  return (rank + 1) * ((index + gradient) % period);
}

class SyntheticTrainer implements DdpTrainer {
  readonly #reducer: GradientReducer;
  readonly #values: readonly Float32Array[];
  readonly #order: readonly number[];
  readonly #shares: readonly number[];

  constructor(
    private readonly communicator: Communicator,
    private readonly option: DdpOption,
    private readonly compute: SyntheticOptions,
    gradients: readonly GradientSpec[],
    values: readonly Float32Array[],
  ) {
    const { mode, bucketCapBytes, firstBucketBytes, capacityElements } = option;
    this.#values = values;
    this.#shares = releaseShares(gradients);
    this.#order = [...gradients.keys()].reverse();
    const buckets =
      capacityElements === undefined
        ? undefined
        : assignBeforeOverflow(gradients.map(elementsOf), capacityElements);
    this.#reducer = new GradientReducer(communicator, gradients, {
      mode,
      bucketCapBytes,
      firstBucketBytes,
      buckets,
    });
  }

  get plan(): readonly BucketPlan[] {
    return this.#reducer.plan;
  }

  /** Fills or overwrites the buckets, so that results of an earlier step are not mistaken for this one's. */
  prepare(): void {
    this.#reducer.begin();
    this.#values.forEach((values, index) => {
      const place = this.#reducer.gradient(index);
      if (this.compute.copies) place.fill(NaN);
      else place.set(values);
    });
  }

  async step(): Promise<StepTimes> {
    const { backwardSeconds, copies } = this.compute;
    const start = monotonicSeconds();
    sleepUntil(start + backwardSeconds * forwardShare);
    const backward = monotonicSeconds();
    for (const index of this.#order) {
      sleepUntil(backward + backwardSeconds * this.#shares[index]!);
      this.#reducer.add(index, copies ? this.#values[index]! : this.#reducer.gradient(index));
    }
    const computed = monotonicSeconds();
    const buckets = await this.#reducer.finish();
    const end = monotonicSeconds();
    const { timeline } = this.option;
    if (timeline !== undefined) {
      timeline.add('compute', 'forward', start, backward);
      timeline.add('compute', 'backward', backward, computed);
      timeline.add('compute', 'wait', computed, end);
      for (const { bucket, startSeconds, endSeconds } of buckets) {
        const { bytes } = this.plan[bucket]!;
        timeline.add('communication', `bucket ${bucket}`, startSeconds, endSeconds, { bytes });
      }
    }
    return { forwardSeconds: backward - start, backwardSeconds: end - backward };
  }

  /** All buckets at once, without copies. */
  async alone(): Promise<{ backwardSeconds: number; communicationSeconds: number }> {
    await this.communicator.barrier();
    this.#reducer.begin({ uses: new Uint8Array(this.#values.length) });
    return {
      backwardSeconds: this.compute.backwardSeconds,
      communicationSeconds: spanOf(await this.#reducer.finish()),
    };
  }

  countWrong(): number {
    const { size } = this.communicator;
    // The average of (rank + 1) times a common value.
    const mean = (size + 1) / 2;
    let wrong = 0;
    this.#values.forEach((values, gradient) => {
      const reduced = this.#reducer.gradient(gradient);
      for (let i = 0; i < values.length; i += 1) {
        if (reduced[i] !== mean * ((i + gradient) % period)) wrong += 1;
      }
    });
    return wrong;
  }
}

/** Seconds to reduce ResNet-50's gradients without other work: the same on every rank. */
export async function communicationAlone(communicator: Communicator): Promise<number> {
  const reducer = new GradientReducer(communicator, resnet50Gradients(), { rebuild: false });
  const uses = new Uint8Array(reducer.gradients.length);
  const seconds: number[] = [];
  // The first passes touch new memory.
  for (let pass = 0; pass < passesAlone.dropped + passesAlone.kept; pass += 1) {
    await communicator.barrier();
    reducer.begin({ uses });
    const took = spanOf(await reducer.finish());
    if (pass >= passesAlone.dropped) seconds.push(took);
  }
  const own = median(seconds);
  const [mean = own] = await communicator.allReduce(Float64Array.of(own), { op: 'avg' });
  return mean;
}

/** From the start of the first collective to the end of the last. */
export function spanOf(times: readonly BucketTimes[]): number {
  const start = Math.min(...times.map(({ startSeconds }) => startSeconds));
  return Math.max(...times.map(({ endSeconds }) => endSeconds)) - start;
}

/** ResNet-50's 161 gradients on a schedule. */
export function syntheticWorkload(compute: SyntheticOptions): DdpWorkload {
  const gradients = resnet50Gradients();
  // All options share the arrays; only the buckets differ.
  let values: readonly Float32Array[] | undefined;
  const milliseconds = (compute.backwardSeconds * 1e3).toFixed(1);
  return {
    model: 'resnet50',
    description: `SYNTHETIC: the 161 gradients of resnet50 released over ${milliseconds} ms ${
      compute.copies ? 'and copied into buckets' : 'in their buckets'
    }, nothing is computed`,
    synthetic: true,
    gradientBytes: gradients.reduce((sum, one) => sum + elementsOf(one) * 4, 0),
    gradients: gradients.length,
    open(communicator, option) {
      values ??= gradients.map((gradient, index) =>
        Float32Array.from({ length: elementsOf(gradient) }, (_, i) =>
          valueOf(communicator.rank, index, i),
        ),
      );
      return new SyntheticTrainer(communicator, option, compute, gradients, values);
    },
  };
}
