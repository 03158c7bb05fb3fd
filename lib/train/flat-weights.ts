// The values of all variables in one array, which the ranks average.
import type { Tensor, Variable } from '@tensorflow/tfjs-core';

import type { Communicator } from '../communicator/communicator.js';
import { crossingCosts, gathered, liveValues, scattered } from './crossing.js';
import { tf } from './tfjs.js';

export class FlatWeights {
  /** In memory that every rank of the host maps. */
  readonly data: Float32Array;
  /** Where each variable starts in {@link data}, and the total length. */
  readonly offsets: readonly number[];
  readonly #variables: readonly Variable[];

  readonly #gather: boolean;

  /** @param gather - whether all are transferred at once */
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
    readValues(this.#variables, this.data, this.#gather);
  }

  /** To the variables. */
  write(): void {
    writeValues(this.#variables, this.data, this.#gather);
  }
}

/**
 * Reads the values of tensors, concatenated.
 *
 * @param gather - whether all are transferred at once
 */
export function readValues(tensors: readonly Tensor[], into: Float32Array, gather: boolean): void {
  if (tensors.length === 0) return;
  if (gather) {
    into.set(gathered(tensors));
    return;
  }
  let offset = 0;
  for (const tensor of tensors) {
    into.set(liveValues(tensor), offset);
    offset += tensor.size;
  }
}

/**
 * Writes concatenated values to variables.
 *
 * @param gather - whether all are transferred at once
 * @param wanted - the variables to write, by index; all when absent.
 */
export function writeValues(
  variables: readonly Variable[],
  values: Float32Array,
  gather: boolean,
  wanted: (at: number) => boolean = () => true,
): void {
  if (variables.length === 0) return;
  if (gather) {
    const tensors = scattered(
      values,
      variables.map(({ shape }) => shape),
    );
    variables.forEach((variable, at) => {
      if (wanted(at)) variable.assign(tensors[at]!);
    });
    tf.dispose(tensors);
    return;
  }
  // Other backends keep the given array, some of them until they compute with it.
  const copied = tf.getBackend() !== 'wasm';
  let offset = 0;
  variables.forEach((variable, at) => {
    const end = offset + variable.size;
    if (wanted(at)) {
      const own = copied ? values.slice(offset, end) : values.subarray(offset, end);
      tf.tidy(() => variable.assign(tf.tensor(own, variable.shape)));
    }
    offset = end;
  });
}
