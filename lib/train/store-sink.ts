// The gradients of one pass on their way into a store: each by itself, or many at once where reading costs a transfer.
import type { Tensor } from '@tensorflow/tfjs-core';

import { defaultBucketCapBytes } from './buckets/plan.js';
import { monotonicSeconds } from '../time.js';
import { gathered, liveValues, settle } from './crossing.js';
import type { GradientSink } from './gradient-pass.js';

interface StoreSinkParts {
  /** Of each variable what is pushed. */
  readonly sent: readonly Float32Array[];
  /** What gradients are multiplied by. */
  readonly scale: number;
  /** Whether many are read at once. */
  readonly gather: boolean;
  /** Begins the exchange of one variable, whose values lie in `sent`. */
  readonly exchange: (index: number) => void;
}

export class StoreSink implements GradientSink {
  copySeconds = 0;
  readonly #parts: StoreSinkParts;
  /** Gradients that are to be read together, and their bytes. */
  #waiting: { readonly index: number; readonly gradient: Tensor }[] = [];
  #bytes = 0;

  constructor(parts: StoreSinkParts) {
    this.#parts = parts;
  }

  begin(used: Uint8Array): void {
    const { sent, exchange } = this.#parts;
    used.forEach((uses, index) => {
      if (uses > 0) return;
      // A round closes when every worker has pushed.
      sent[index]!.fill(0);
      exchange(index);
    });
  }

  add(index: number, gradient: Tensor): void {
    this.#waiting.push({ index, gradient });
    this.#bytes += 4 * gradient.size;
    if (!this.#parts.gather || this.#bytes >= defaultBucketCapBytes) this.#cross();
  }

  end(): void {
    this.#cross();
  }

  fail(): void {
    // What was pushed stays pushed: KVStoreTrainer says so.
    this.#waiting = [];
  }

  #cross(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    const tensors = waiting.map(({ gradient }) => gradient);
    settle(tensors.at(-1)!);
    const start = monotonicSeconds();
    const values = tensors.length === 1 ? liveValues(tensors[0]!) : gathered(tensors);
    let offset = 0;
    for (const { index, gradient } of waiting) {
      this.#push(index, values.subarray(offset, offset + gradient.size));
      offset += gradient.size;
    }
    this.#waiting = [];
    this.#bytes = 0;
    this.copySeconds += monotonicSeconds() - start;
  }

  #push(index: number, values: Float32Array): void {
    const { sent, scale, exchange } = this.#parts;
    const own = sent[index]!;
    for (let i = 0; i < own.length; ++i) own[i] = values[i]! * scale;
    exchange(index);
  }
}
