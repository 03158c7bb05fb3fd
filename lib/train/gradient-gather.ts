// Moves the gradients of one pass into a reducer, one at a time or a bucket at once.
import type { Tensor, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { GradientReducer } from './buckets/reducer.js';
import { monotonicSeconds } from '../time.js';
import { crossingCosts, gathered, liveValues, ownValues, scattered, settle } from './crossing.js';
import { tf } from './tfjs.js';

/** Moves gradients from the backend to the reducer. */
export interface GradientGather {
  /** Seconds of reading, without waiting for computation. */
  readonly copySeconds: number;
  /** For each gradient 1 if it will be added, else 0. */
  begin(uses: Uint8Array): void;
  /** The tensor must live until {@link end} has returned. */
  add(index: number, gradient: Tensor): void;
  /** All gradients were added. */
  end(): void;
}

/**
 * @param reduces - false: the pass only accumulates
 * @param gather - reads a bucket at once; by default if that is cheaper
 */
export function gatherOf(
  reducer: GradientReducer,
  reduces: boolean,
  gather = crossingCosts(),
): GradientGather {
  const direct = reducer.mode === 'overlap' || !reduces;
  return gather ? new BucketGather(reducer, direct) : new EachGather(reducer, direct);
}

/** For backends whose memory JavaScript can read. */
class EachGather implements GradientGather {
  copySeconds = 0;
  readonly #reducer: GradientReducer;
  readonly #read: (gradient: Tensor) => Float32Array;

  constructor(reducer: GradientReducer, direct: boolean) {
    this.#reducer = reducer;
    // An array held until the end of the pass must be a copy.
    this.#read = direct ? liveValues : ownValues;
  }

  begin(): void {
    // Nothing to prepare.
  }

  add(index: number, gradient: Tensor): void {
    settle(gradient);
    const start = monotonicSeconds();
    this.#reducer.add(index, this.#read(gradient));
    this.copySeconds += monotonicSeconds() - start;
  }

  end(): void {
    // Each gradient was read in add().
  }
}

/** One read per bucket: during the backward pass once it is full, or after it. */
class BucketGather implements GradientGather {
  copySeconds = 0;
  readonly #reducer: GradientReducer;
  readonly #direct: boolean;
  readonly #bucketOf: number[] = [];
  /** Per bucket, the number of missing gradients. */
  #missing: number[] = [];
  readonly #came = new Map<number, Tensor>();

  constructor(reducer: GradientReducer, direct: boolean) {
    this.#reducer = reducer;
    this.#direct = direct;
  }

  begin(uses: Uint8Array): void {
    this.#missing = this.#reducer.buckets.map(({ gradients }, bucket) => {
      for (const index of gradients) this.#bucketOf[index] = bucket;
      return gradients.filter((index) => uses[index]! > 0).length;
    });
  }

  add(index: number, gradient: Tensor): void {
    const bucket = this.#bucketOf[index]!;
    this.#came.set(index, gradient);
    this.#missing[bucket]!--;
    if (this.#direct && this.#missing[bucket] === 0) this.#cross(bucket);
  }

  end(): void {
    if (!this.#direct) this.#missing.forEach((_, bucket) => this.#cross(bucket));
  }

  #cross(bucket: number): void {
    const indices = this.#reducer.buckets[bucket]!.gradients.filter((i) => this.#came.has(i));
    const tensors = indices.map((index) => this.#came.get(index)!);
    if (tensors.length === 0) return;
    settle(tensors.at(-1)!);
    const start = monotonicSeconds();
    const values = gathered(tensors);
    let offset = 0;
    indices.forEach((index, i) => {
      const { size } = tensors[i]!;
      this.#reducer.add(index, values.subarray(offset, offset + size));
      offset += size;
      this.#came.delete(index);
    });
    this.copySeconds += monotonicSeconds() - start;
  }
}

interface TensorOptions {
  /** Whether they must outlive the next pass. */
  readonly keep: boolean;
  /** As for {@link gatherOf}. */
  readonly gather?: boolean | undefined;
}

/** Reduced gradients as tensors, in the order of the variables; with `gather` by one write per bucket. */
export function reducedTensors(
  reducer: GradientReducer,
  variables: readonly Variable[],
  { keep, gather = crossingCosts() }: TensorOptions,
): NamedTensor[] {
  if (!gather) {
    return variables.map(({ name, shape }, index) => {
      const view = reducer.gradient(index);
      // The cpu backend keeps the given array, which the next pass overwrites.
      return { name, tensor: tf.tensor(keep ? view.slice() : view, shape) };
    });
  }
  const tensors: Tensor[] = [];
  for (const { gradients, elements, data } of reducer.buckets) {
    const shapes = gradients.map((index) => variables[index]!.shape);
    scattered(data.subarray(0, elements), shapes).forEach((tensor, i) => {
      tensors[gradients[i]!] = tensor;
    });
  }
  return variables.map(({ name }, index) => ({ name, tensor: tensors[index]! }));
}
