// Variables and states of optimizers as rank 0, or another, has them.
import type { Tensor, TypedArray, Variable } from '@tensorflow/tfjs-core';
import type { NamedTensor } from '@tensorflow/tfjs-core/dist/tensor_types.js';

import type { Communicator } from '../communicator/communicator.js';
import type { CallOptions, RootOptions } from '../communicator/calls/types.js';
import { GradlinkError } from '../errors.js';
import { aFunction, having, optionNames, optionsObject, rankOf } from '../checks.js';
import { assertRankOnHost } from './ranks.js';
import { tf } from './tfjs.js';
import type { InnerOptimizer, Trainable } from './types.js';
import { allVariables } from './variables.js';

/** So many bytes travel at once, so that no rank needs all values twice. */
const pieceBytes = 64 * 2 ** 20;

/** Options of {@link broadcastVariables} and {@link broadcastOptimizerState}. */
export type BroadcastOptions = RootOptions & CallOptions;

const broadcastNames = optionNames<BroadcastOptions>({ root: true, timeoutMs: true });

/**
 * Collective. Gives every rank the root's values, those that are not trained included. Variables belong together by
 * their position: names differ where ranks have made different numbers of variables before.
 *
 * @throws GradlinkError ERR_MISMATCH where ranks have variables of other shapes or types, before any is changed.
 */
export async function broadcastVariables(
  model: Trainable,
  comm: Communicator,
  options?: BroadcastOptions,
): Promise<void> {
  const given = optionsObject(options, broadcastNames, 'broadcastVariables');
  assertRankOnHost(comm, 'comm');
  const variables = allVariables(model);
  await assertAlike(comm, variables, given, 'variables');
  for (const piece of piecesOf(variables)) {
    const values = await broadcastTensors(comm, piece, given);
    piece.forEach((variable, i) => {
      variable.assign(values[i]!);
    });
    tf.dispose(values);
  }
}

/**
 * Collective. Gives every rank's optimizer the root's state: the number of steps, momenta, and so on. Where the
 * optimizer of the root has made no step yet, nothing but that number.
 */
export async function broadcastOptimizerState(
  optimizer: InnerOptimizer,
  comm: Communicator,
  options?: BroadcastOptions,
): Promise<void> {
  const given = optionsObject(options, broadcastNames, 'broadcastOptimizerState');
  const { root = 0, ...calls } = given;
  optimizerKind(optimizer, 'optimizer');
  assertRankOnHost(comm, 'comm');
  const from = rankOf(root, 'root', comm.size);
  const own = comm.rank === from ? await optimizer.getWeights() : [];
  // Only the root knows its state, whose tensors another rank may not have made yet.
  const described = Buffer.from(
    JSON.stringify(own.map(({ name, tensor: { shape, dtype } }) => ({ name, shape, dtype }))),
  );
  const length = await comm.broadcast(Int32Array.of(described.length), { root: from, ...calls });
  const text = new Uint8Array(length[0]!);
  if (comm.rank === from) text.set(described);
  await comm.broadcast(text, { root: from, ...calls });
  const parts = JSON.parse(Buffer.from(text).toString()) as {
    name: string;
    shape: number[];
    dtype: 'float32' | 'int32';
  }[];
  const tensors = parts.map(({ shape, dtype }, i) => own[i]?.tensor ?? tf.zeros(shape, dtype));
  const state: NamedTensor[] = [];
  const values = await broadcastTensors(comm, tensors, { root: from, ...calls });
  values.forEach((tensor, i) => state.push({ name: parts[i]!.name, tensor }));
  if (comm.rank !== from) {
    await optimizer.setWeights(state);
    tf.dispose(tensors);
  } else {
    // The number of steps is made for the asking; the rest are the optimizer's own.
    own[0]?.tensor.dispose();
    tf.dispose(values);
  }
}

const optimizerKind = having({ getWeights: aFunction, setWeights: aFunction });

async function assertAlike(
  comm: Communicator,
  tensors: readonly (Tensor | Variable)[],
  { timeoutMs }: BroadcastOptions,
  what: string,
): Promise<void> {
  const calls = timeoutMs === undefined ? {} : { timeoutMs };
  const text = tensors.map(({ shape, dtype }) => `${dtype}[${shape.join(',')}]`);
  // Whether all have the same is whether the smallest and the largest fingerprint are.
  const own = fingerprint(text.join(';'));
  const ends = await comm.allReduce(Float64Array.of(own, -own), { op: 'max', ...calls });
  if (ends[0] !== -ends[1]!) {
    throw new GradlinkError(
      'ERR_MISMATCH',
      `${what}: expected the same number, shapes and types on every rank, in one order; rank ${comm.rank} has ` +
        `${tensors.length}: ${text.slice(0, 4).join(' ')}${text.length > 4 ? ' …' : ''}`,
      { usable: true },
    );
  }
}

/** 52 bits, which a float64 holds exactly. */
function fingerprint(text: string): number {
  let high = 0x811c9dc5;
  let low = 0x1b873593;
  for (let i = 0; i < text.length; ++i) {
    high = Math.imul(high ^ text.charCodeAt(i), 0x01000193) >>> 0;
    low = Math.imul(low ^ text.charCodeAt(i), 0x85ebca6b) >>> 0;
  }
  return (high & 0xfffff) * 2 ** 32 + low;
}

function* piecesOf(variables: readonly Variable[]): Generator<Variable[]> {
  let piece: Variable[] = [];
  let bytes = 0;
  for (const variable of variables) {
    piece.push(variable);
    bytes += variable.size * 4;
    if (bytes < pieceBytes) continue;
    yield piece;
    piece = [];
    bytes = 0;
  }
  if (piece.length > 0) yield piece;
}

/** New tensors with the root's values: those of one type travel together. */
async function broadcastTensors(
  comm: Communicator,
  tensors: readonly Tensor[],
  { root = 0, timeoutMs }: BroadcastOptions,
): Promise<Tensor[]> {
  const calls = timeoutMs === undefined ? { root } : { root, timeoutMs };
  const values: Tensor[] = [];
  for (const dtype of ['float32', 'int32', 'bool'] as const) {
    const indices = [...tensors.keys()].filter((i) => tensors[i]!.dtype === dtype);
    const elements = indices.reduce((sum, i) => sum + tensors[i]!.size, 0);
    if (elements === 0) continue;
    const flat: Float32Array | Int32Array | Uint8Array =
      dtype === 'bool' ? new Uint8Array(elements) : comm.allocShared(dtype, elements);
    let offset = 0;
    for (const i of indices) {
      if (comm.rank === root) flat.set(await tensors[i]!.data<'float32'>(), offset);
      offset += tensors[i]!.size;
    }
    await comm.broadcast(flat as Float32Array, calls);
    offset = 0;
    for (const i of indices) {
      const { shape, size } = tensors[i]!;
      const part: TypedArray = flat.slice(offset, offset + size);
      values[i] = tf.tensor(part, shape, dtype);
      offset += size;
    }
  }
  // Of no elements: there is nothing to send.
  tensors.forEach(({ shape, dtype }, i) => (values[i] ??= tf.zeros(shape, dtype)));
  return values;
}
