// The values of all variables in one array, which is what ranks average.
import type { Variable } from '@tensorflow/tfjs-core';

import type { Communicator } from '../communicator/communicator.js';
import { crossingCosts, gathered, scattered } from './crossing.js';
import { tf } from './tfjs.js';

export class FlatWeights {
  /** In memory that every rank of the host maps. */
  readonly data: Float32Array;
  /** Where each variable starts in {@link data}, and at the end its length. */
  readonly offsets: readonly number[];
  readonly #variables: readonly Variable[];

  readonly #gather: boolean;

  /** @param gather - whether all cross at once. */
  constructor(variables: readonly Variable[], comm: Communicator, gather = crossingCosts()) {
    const offsets = [0];
    for (const { size } of variables) offsets.push(offsets.at(-1)! + size);
    this.offsets = offsets;
    this.data = comm.allocShared('float32', offsets.at(-1)!);
    this.#variables = variables;
    this.#gather = gather;
  }

  /** From the variables. */
  read(): void {
    if (this.#gather) {
      this.data.set(gathered(this.#variables));
      return;
    }
    this.#variables.forEach((variable, i) => {
      this.data.set(variable.dataSync(), this.offsets[i]);
    });
  }

  /** To the variables. */
  write(): void {
    if (this.#gather) {
      const values = scattered(
        this.data,
        this.#variables.map(({ shape }) => shape),
      );
      this.#variables.forEach((variable, i) => variable.assign(values[i]!));
      tf.dispose(values);
      return;
    }
    this.#variables.forEach((variable, i) => {
      // A copy: the cpu backend keeps the array it is given.
      const values = this.data.slice(this.offsets[i], this.offsets[i + 1]);
      tf.tidy(() => variable.assign(tf.tensor(values, variable.shape)));
    });
  }
}
