// Reading the arrays of an operation: one a device for each key.
import { argumentError } from '../errors.js';
import { dtypeNumber, dtypes, storageOf } from '../tensor/dtype.js';
import type { NumericArray, StorageArray } from '../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../tensor/memory.js';
import type { KeyInfo } from './keys.js';

/** One array, or one for each device. */
export type DeviceArrays = NumericArray | readonly NumericArray[];

/**
 * The arrays of one key.
 *
 * @param limit - the number of devices.
 * @throws TypeError for anything but arrays of the key's type and length, at most one a device.
 */
export function arraysOf(
  given: unknown,
  info: KeyInfo,
  name: string,
  limit: number,
): NumericArray[] {
  if (!Array.isArray(given)) return [checked(given, info, name)];
  const list = given as readonly unknown[];
  if (list.length === 0 || list.length > limit) {
    const devices = Number.isFinite(limit) ? `, at most ${limit} (one for each device)` : '';
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `an array or a list of arrays${devices}`,
      given,
    );
  }
  return list.map((array) => checked(array, info, name));
}

function checked(array: unknown, info: KeyInfo, name: string): NumericArray {
  dtypeNumber(array, dtypes[info.dtype], name);
  const typed = array as NumericArray;
  if (typed.length !== info.count) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `${info.count} elements (what key ${String(info.key)} was initialised with)`,
      { text: `${typed.length}` },
    );
  }
  assertFixedLength(typed, name);
  return typed;
}

/** The arrays as native code takes them; the same list where nothing needs to change. */
export function storagesOf(arrays: readonly NumericArray[]): readonly StorageArray[] {
  for (const array of arrays) {
    if (array[Symbol.toStringTag] === 'Float16Array') return arrays.map(storageOf);
  }
  return arrays as readonly StorageArray[];
}

/** The inputs and outputs of one key. */
export interface KeyArrays {
  readonly inputs: readonly NumericArray[];
  readonly outputs: readonly NumericArray[];
}

interface Use {
  readonly array: NumericArray;
  readonly of: KeyArrays;
  readonly writes: boolean;
}

/**
 * Nothing that one call writes may share bytes with anything else it uses, except that an output may be an input of
 * its own key exactly.
 *
 * @throws TypeError ERR_BUFFER_OVERLAP
 */
export function assertApart(keys: readonly KeyArrays[]): void {
  const users = new Map<ArrayBufferLike, Use | Use[]>();
  for (const of of keys) {
    for (const array of of.outputs) addUse(users, { array, of, writes: true });
    for (const array of of.inputs) addUse(users, { array, of, writes: false });
  }
}

function addUse(users: Map<ArrayBufferLike, Use | Use[]>, use: Use): void {
  const { buffer } = use.array;
  const others = users.get(buffer);
  if (others === undefined) {
    users.set(buffer, use);
    return;
  }
  const list = Array.isArray(others) ? others : [others];
  for (const other of list) assertPair(use, other);
  list.push(use);
  users.set(buffer, list);
}

function assertPair(a: Use, b: Use): void {
  if (!(a.writes || b.writes) || !overlap(a.array, b.array)) return;
  const inPlace = a.of === b.of && a.writes !== b.writes && sameMemory(a.array, b.array);
  if (!inPlace) throw overlapError('out', a.writes && b.writes ? 'another out' : 'a value');
}

function sameMemory(a: NumericArray, b: NumericArray): boolean {
  return a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;
}

/** The inputs that are not also outputs: what is both counts as written. */
export function readOnly({ inputs, outputs }: KeyArrays): readonly NumericArray[] {
  if (outputs.length === 0 || inputs.length === 0) return inputs;
  return inputs.filter(
    (input) =>
      !outputs.some((output) => output.buffer === input.buffer && sameMemory(input, output)),
  );
}
