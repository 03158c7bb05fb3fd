// Moves the gradients of one pass into a store, one at a time, or many at once if each read is a transfer.
import type { Tensor } from '@tensorflow/tfjs-core';

import { defaultBucketCapBytes } from './buckets/plan.js';
import { monotonicSeconds } from '../time.js';
import { gathered, liveValues, settle } from './crossing.js';
import type { GradientSink } from './gradient-pass.js';

interface StoreSinkParts {
  /** The arrays to push, per variable. */
  readonly sent: readonly Float32Array[];
  /** Factor of gradients. */
  readonly scale: number;
  /** Whether to read many at once. */
  readonly gather: boolean;
  /** Starts the exchange of one variable, whose values are in `sent`. */
  readonly exchange: (index: number) => void;
}

export class StoreSink implements GradientSink {
  copySeconds = 0;
  readonly #parts: StoreSinkParts;
  /** Gradients to read together, and their bytes. */
  #waiting: { readonly index: number; readonly gradient: Tensor }[] = [];
  #bytes = 0;

  constructor(parts: StoreSinkParts) {
    this.#parts = parts;
  }

  begin(used: Uint8Array): void {
    const { sent, exchange } = this.#parts;
    used.forEach((uses, index) => {
      if (uses > 0) return;
      // A round completes only when every worker has pushed, so push zeros.
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
    // Pushes cannot be undone; KVStoreTrainer reports them.
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
