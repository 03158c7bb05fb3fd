// Copies variables and optimizer states from a root to all ranks.
import type { Tensor, TypedArray, Variable } from '@tensorflow/tfjs-core';

import type { Communicator } from '../communicator/communicator.js';
import type { CallOptions, RootOptions } from '../communicator/calls/types.js';
import { beginTogether, goOn, type Said } from '../communicator/composed/agreement.js';
import { allGatherObject, broadcastObject } from '../communicator/composed/objects.js';
import { GradlinkError, argumentError } from '../errors.js';
import { milliseconds, optionNames, optionsObject, rankOf } from '../checks.js';
import { OptimizerState, type PackedState, type TensorSpec } from './optimizer-state.js';
import { assertRankOnHost } from './ranks.js';
import { assertWhole } from './shards.js';
import { tf } from './tfjs.js';
import type { InnerOptimizer, Trainable } from './types.js';
import { allVariables } from './variables.js';

/** Bytes per piece, so that no rank holds all values twice. */
const pieceBytes = 64 * 2 ** 20;

const sentTypes = ['float32', 'int32', 'bool'] as const;
type SentType = (typeof sentTypes)[number];

/** Options of {@link broadcastVariables} and {@link broadcastOptimizerState}. */
export type BroadcastOptions = RootOptions & CallOptions;

const broadcastNames = optionNames<BroadcastOptions>({ root: true, timeoutMs: true });

/**
 * Collective. Copies the root's values to every rank, including untrained variables. Variables match by position,
 * because names depend on the variables made before.
 *
 * @throws GradlinkError ERR_MISMATCH if shapes, types or trained variables differ, before any change. If one rank's
 *   argument is invalid, the others get it with that rank's error.
 */
export async function broadcastVariables(
  model: Trainable,
  comm: Communicator,
  options?: BroadcastOptions,
): Promise<void> {
  const op = 'broadcastVariables';
  assertRankOnHost(comm, 'comm');
  const [{ variables, calls }] = await beginTogether(comm, op, options, () => {
    const calls = checkedOptions(comm, options, op);
    const variables = allVariables(model);
    variables.forEach((variable) => {
      assertSendable(variable, `variable ${variable.name}`);
    });
    const listed = variables.map((one) => `${textOf(one)}${one.trainable ? '' : ' (not trained)'}`);
    const brings = `${variables.length} variables of rank ${calls.root}: ${listed.join(' ')}`;
    const said: Said = { op, name: '', brings, count: 0 };
    return [said, { variables, calls }] as const;
  });
  await goOn(comm, op, async () => {
    for (const piece of piecesOf(variables)) {
      const values = await broadcastTensors(comm, piece.map(specOf), piece, calls);
      piece.forEach((variable, i) => {
        variable.assign(values[i]!);
      });
      tf.dispose(values);
    }
  });
}

/**
 * Collective. Copies the root's optimizer state to every rank: learning rate and other settings, step count, momenta
 * and so on; for a {@link DistributedOptimizer} also its counts of passes and steps.
 *
 * It copies properties that are numbers, strings, booleans, tensors and variables, and arrays and plain objects of
 * these. If a custom class overrides `getWeights` and `setWeights`, it copies these too. Remaining differences in
 * `getConfig` are ERR_MISMATCH on all ranks.
 *
 * @throws GradlinkError ERR_MISMATCH on every rank, with the name of the difference, if classes or other properties
 *   differ. If one rank's argument is invalid, the others get it with that rank's error.
 */
export async function broadcastOptimizerState(
  optimizer: InnerOptimizer,
  comm: Communicator,
  options?: BroadcastOptions,
): Promise<void> {
  const op = 'broadcastOptimizerState';
  assertRankOnHost(comm, 'comm');
  const [{ state, packed, calls }] = await beginTogether(comm, op, options, async () => {
    const calls = checkedOptions(comm, options, op);
    const state = OptimizerState.of(optimizer);
    assertWhole(optimizer, op);
    const packed = comm.rank === calls.root ? await state.pack() : undefined;
    packed?.tensors.forEach((tensor, i) => {
      assertSendable(tensor, `tensor ${i} of the optimizer`);
    });
    const said: Said = { op, name: '', brings: `${state.kind} of rank ${calls.root}`, count: 0 };
    return [said, { state, packed, calls }] as const;
  });
  await goOn(comm, op, async () => {
    const own: PackedState = packed?.state ?? { fields: [], weights: [], tensors: [] };
    const came = await broadcastObject(comm, own, { ...calls, maxBytes: 2 ** 31 - 1 });
    const values = await broadcastTensors(comm, came.tensors, packed?.tensors, calls);
    if (packed === undefined) await state.unpack(came, values);
    else tf.dispose([...values, ...packed.made]);
  });
  // Equal on all ranks, so that all throw or none.
  await assertSameSettings(comm, op, state, calls);
}

type Calls = Required<Pick<BroadcastOptions, 'root'>> & CallOptions & { readonly root: number };

function checkedOptions(
  comm: Communicator,
  options: BroadcastOptions | undefined,
  op: string,
): Calls {
  const { root = 0, timeoutMs } = optionsObject(options, broadcastNames, op);
  milliseconds(timeoutMs, 'timeoutMs', -1);
  const from = rankOf(root, 'root', comm.size);
  return timeoutMs === undefined ? { root: from } : { root: from, timeoutMs };
}

async function assertSameSettings(
  comm: Communicator,
  op: string,
  state: OptimizerState,
  { root, ...calls }: Calls,
): Promise<void> {
  const all = await allGatherObject(comm, state.settings(), calls);
  const right = all[root]!;
  for (const [rank, own] of all.entries()) {
    const names = [...new Set([...Object.keys(right), ...Object.keys(own)])];
    const name = names.find((one) => own[one] !== right[one]);
    if (name === undefined) continue;
    throw new GradlinkError(
      'ERR_MISMATCH',
      `${op}: expected the same optimizer on every rank; ${name} is ${String(right[name])} on rank ${root} and ` +
        `${String(own[name])} on rank ${rank}, which cannot be sent: give all ranks the same`,
      { op, rank, usable: true },
    );
  }
}

const textOf = ({ dtype, shape }: Tensor): string => `${dtype}[${shape.join(',')}]`;

const specOf = ({ dtype, shape }: Tensor): TensorSpec => ({ dtype: dtype as SentType, shape });

function assertSendable(tensor: Tensor, name: string): void {
  if (tensor.isDisposed) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a tensor', { text: 'one disposed of' });
  }
  if (sentTypes.includes(tensor.dtype as SentType)) return;
  const expected = `one of ${sentTypes.join(', ')}`;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, { text: tensor.dtype });
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

/**
 * New tensors with the root's values, sent together by type.
 *
 * @param own - on the root.
 */
async function broadcastTensors(
  comm: Communicator,
  specs: readonly TensorSpec[],
  own: readonly Tensor[] | undefined,
  calls: Calls,
): Promise<Tensor[]> {
  const sizes = specs.map(({ shape }) => shape.reduce((product, length) => product * length, 1));
  const values: Tensor[] = [];
  for (const dtype of sentTypes) {
    const indices = [...specs.keys()].filter((i) => specs[i]!.dtype === dtype);
    const elements = indices.reduce((sum, i) => sum + sizes[i]!, 0);
    if (elements === 0) continue;
    const flat: Float32Array | Int32Array | Uint8Array =
      dtype === 'bool' ? new Uint8Array(elements) : comm.allocShared(dtype, elements);
    let offset = 0;
    for (const i of indices) {
      if (comm.rank === calls.root) flat.set(await own![i]!.data<'float32'>(), offset);
      offset += sizes[i]!;
    }
    await comm.broadcast(flat as Float32Array, calls);
    offset = 0;
    for (const i of indices) {
      const part: TypedArray = flat.slice(offset, offset + sizes[i]!);
      values[i] = tf.tensor(part, [...specs[i]!.shape], dtype);
      offset += sizes[i]!;
    }
  }
  // Empty tensors are not sent.
  specs.forEach(({ shape, dtype }, i) => (values[i] ??= tf.zeros([...shape], dtype)));
  return values;
}
