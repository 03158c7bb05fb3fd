// An optimizer's state as named arrays for checkpoints, whole and bit-exact, independent of sharding. Names use
// properties and positions, because variable names differ between processes.
//
//   optimizer/iterations                   the number of steps
//   optimizer/accBeta1                     a variable that every rank has
//   optimizer/accumulatedFirstMoment/3/m   the state of variable 3, with TensorFlow.js's suffix
import type { Variable } from '@tensorflow/tfjs-core';

import type { CallOptions } from '../communicator/calls/types.js';
import type { Communicator } from '../communicator/communicator.js';
import { beginTogether, goOn, type Said } from '../communicator/composed/agreement.js';
import { allGatherObject } from '../communicator/composed/objects.js';
import { GradlinkError } from '../errors.js';
import { checkArrays } from './checkpoints/arguments.js';
import type { NamedArray } from './checkpoints/types.js';
import { OptimizerState, hasOwnWeights, tensorsIn, wrapper } from './optimizer-state.js';
import type { Piece, Shards } from './shards.js';
import { tf } from './tfjs.js';
import type { InnerOptimizer } from './types.js';

const prefix = 'optimizer/';

/** The state of a TensorFlow.js optimizer for one variable. */
interface Entry {
  readonly originalName: string;
  readonly variable: Variable;
}

const isVariable = (value: unknown): value is Variable => value instanceof tf.Variable;

function isEntry(value: unknown): value is Entry {
  const { originalName, variable } = (value ?? {}) as Partial<Entry>;
  return typeof originalName === 'string' && isVariable(variable);
}

/** A list with an entry per variable, possibly still empty. */
const isList = (value: unknown): value is Entry[] => Array.isArray(value) && value.every(isEntry);

/** The nonempty lists by property name, with an entry for each stepped variable. */
export function stateListsOf(optimizer: object): Map<string, readonly Entry[]> {
  const lists = Object.entries(optimizer).filter(([, value]) => isList(value) && value.length > 0);
  return new Map(lists as [string, Entry[]][]);
}

/** Variables that do not belong to one variable. */
function sharedOf(optimizer: object): Map<string, Variable> {
  const shared = Object.entries(optimizer).filter(([, value]) => isVariable(value));
  return new Map(shared as [string, Variable][]);
}

/** @throws GradlinkError ERR_UNSUPPORTED for state in other places, which cannot be sharded */
function assertKnown(optimizer: InnerOptimizer): void {
  const odd = Object.entries(optimizer).find(
    ([, value]) => !isVariable(value) && !isList(value) && tensorsIn(value).some(isVariable),
  );
  const where = hasOwnWeights(optimizer) || wrapper in optimizer ? 'getWeights()' : odd?.[0];
  if (where === undefined) return;
  throw new GradlinkError(
    'ERR_UNSUPPORTED',
    `optimizer: expected state in variables and in lists of { originalName, variable }, as tf.train's have it, got ${where}`,
    { usable: true },
  );
}

/** Collective. The combined state of all ranks' optimizers, on every rank. */
export async function stateArrays(
  optimizer: InnerOptimizer,
  variables: readonly Variable[],
  shards: Shards,
  comm: Communicator,
  calls: CallOptions,
): Promise<NamedArray[]> {
  const op = 'optimizerState';
  const [lists] = await beginTogether(comm, op, calls, () => {
    const { kind } = OptimizerState.of(optimizer);
    assertKnown(optimizer);
    shards.assertFits(optimizer);
    const lists = stateListsOf(optimizer);
    for (const [name, list] of lists) {
      const { own } = shards;
      if (list.length === own.length && list.every((one, i) => fits(one, own[i]!))) {
        continue;
      }
      throw mismatch(`${own.length} entries of what is stepped here in ${name}, got others`);
    }
    const brings = `${kind} after ${optimizer.iterations} steps`;
    const said: Said = { op, name: '', brings, count: 0 };
    return [said, lists] as const;
  });
  return await goOn(comm, op, async () => {
    const arrays: NamedArray[] = [
      { name: `${prefix}iterations`, shape: [], data: Int32Array.of(optimizer.iterations) },
    ];
    for (const [name, variable] of sharedOf(optimizer)) {
      const data = (await variable.data<'float32'>()).slice();
      arrays.push({ name: prefix + name, shape: variable.shape, data });
    }
    // A rank without own pieces has no entries that tell the names.
    const own = [...lists].map(([name, [first]]) => [name, suffixOf(first!)] as const);
    const all = shards.areSeveral ? await allGatherObject(comm, own, calls) : [own];
    for (const [name, suffix] of new Map(all.flat())) {
      const values = await wholeOf(lists.get(name) ?? [], variables, shards);
      variables.forEach(({ shape }, index) => {
        arrays.push({ name: `${prefix}${name}/${index}/${suffix}`, shape, data: values[index]! });
      });
    }
    return arrays;
  });
}

const fits = ({ variable: { shape, dtype } }: Entry, of: Piece): boolean =>
  dtype === 'float32' && tf.util.arraysEqual(shape, [...of.shape]);

const suffixOf = ({ originalName }: Entry): string => originalName.split('/').at(-1)!;

async function wholeOf(
  list: readonly Entry[],
  variables: readonly Variable[],
  shards: Shards,
): Promise<Float32Array[]> {
  const values: Float32Array[] = [];
  for await (const { indices, data } of shards.exchange((at) => list[at]!.variable)) {
    let offset = 0;
    for (const index of indices) {
      const { size } = variables[index]!;
      values[index] = data.slice(offset, offset + size);
      offset += size;
    }
  }
  return values;
}

/**
 * Restores an optimizer's part of {@link stateArrays}.
 *
 * @param own - the pieces it updates
 * @throws GradlinkError ERR_MISMATCH for the arrays of another class or other variables, before any change.
 */
export function setStateArrays(
  optimizer: InnerOptimizer,
  variables: readonly Variable[],
  own: readonly Piece[],
  arrays: readonly NamedArray[],
): void {
  OptimizerState.of(optimizer);
  checkArrays(arrays);
  assertKnown(optimizer);
  const into = optimizer as unknown as Record<string, unknown>;
  const given = new Map(
    arrays
      .filter(({ name }) => name.startsWith(prefix))
      .map((array) => [array.name.slice(prefix.length), array] as const),
  );
  const take = (name: string, dtype: string, shape: readonly number[]): NamedArray => {
    const array = given.get(name);
    given.delete(name);
    const got = array === undefined ? 'none' : textOf(dtypeOf(array), array.shape);
    if (array !== undefined && got === textOf(dtype, shape)) return array;
    throw mismatch(`an array ${prefix}${name} of ${textOf(dtype, shape)}, got ${got}`);
  };
  const steps = take('iterations', 'int32', []);
  const shared = [...sharedOf(optimizer)].map(
    ([name, variable]) => [variable, take(name, variable.dtype, variable.shape)] as const,
  );
  const lists = new Map<string, { suffix: string; values: NamedArray[] }>();
  for (const name of [...given.keys()]) {
    const [, property, suffix] = /^([^/]+)\/0\/([^/]+)$/.exec(name) ?? [];
    if (property === undefined || suffix === undefined) continue;
    if (!Object.hasOwn(into, property) || !isList(into[property])) continue;
    const values = variables.map(({ shape }, i) =>
      take(`${property}/${i}/${suffix}`, 'float32', shape),
    );
    lists.set(property, { suffix, values });
  }
  const [odd] = given.keys();
  if (odd !== undefined) throw mismatch(`no array ${prefix}${odd}, got one`);

  into['iterations_'] = steps.data[0];
  for (const [variable, array] of shared) tf.tidy(() => variable.assign(tensorOf(array)));
  for (const [property, before] of Object.entries(into)) {
    if (!isList(before)) continue;
    tf.dispose(before.map(({ variable }) => variable));
    const came = lists.get(property);
    into[property] =
      came === undefined
        ? []
        : own.map(({ index, begin, size, shape }): Entry => {
            const data = came.values[index]!.data.subarray(begin, begin + size);
            const variable = tf.tidy(() => tf.variable(tensorOf({ name: '', shape, data }), false));
            return { originalName: `${variables[index]!.name}/${came.suffix}`, variable };
          });
  }
}

const dtypeOf = ({ data }: NamedArray): 'float32' | 'int32' =>
  data instanceof Int32Array ? 'int32' : 'float32';

const textOf = (dtype: string, shape: readonly number[]): string => `${dtype}[${shape.join(',')}]`;

/** A copy, because the cpu backend keeps the given array. */
const tensorOf = (array: NamedArray) =>
  tf.tensor(array.data.slice(), [...array.shape], dtypeOf(array));

function mismatch(expected: string): GradlinkError {
  const message = `optimizer: expected ${expected}; give it the state of the same class and model`;
  return new GradlinkError('ERR_MISMATCH', message, { usable: true });
}
