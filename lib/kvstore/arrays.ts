// Validates the arrays of an operation: one per device for each key.
import { argumentError } from '../errors.js';
import type { NativeBuffer } from '../native/communicator.js';
import { dtypeNumber, storageOf } from '../tensor/any-array.js';
import type { AnyArray } from '../tensor/any-array.js';
import { DeviceBuffer, describeBuffer } from '../tensor/device-buffer.js';
import { dtypeNames } from '../tensor/dtype.js';
import { MemoryUses } from '../tensor/memory-uses.js';
import type { MemoryUse } from '../tensor/memory-uses.js';
import { assertFixedLength, overlapError } from '../tensor/memory.js';
import type { StoreDevices } from './devices.js';
import type { KeyInfo } from './keys.js';

/** One array, or one for each device: TypedArrays, and for GPUs DeviceBuffers too. */
export type DeviceArrays = AnyArray | readonly AnyArray[];

/** The arrays that a store accepts. */
export interface ArrayRules {
  readonly devices: StoreDevices;
  /** Maximum number of arrays per key. */
  readonly limit: number;
}

/**
 * The arrays of one key.
 *
 * @throws TypeError unless they have the key's type and length and are on the store's devices, at most one each.
 */
export function arraysOf(
  given: unknown,
  info: KeyInfo,
  name: string,
  rules: ArrayRules,
): AnyArray[] {
  if (!Array.isArray(given)) return [checked(given, info, name, rules)];
  const list = given as readonly unknown[];
  const { limit } = rules;
  if (list.length === 0 || list.length > limit) {
    const devices = Number.isFinite(limit) ? `, at most ${limit} (one for each device)` : '';
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `an array or a list of arrays${devices}`,
      given,
    );
  }
  // Array.from also visits the holes of a sparse array.
  return Array.from(list, (array) => checked(array, info, name, rules));
}

function checked(array: unknown, info: KeyInfo, name: string, { devices }: ArrayRules): AnyArray {
  assertPlace(array, name, devices);
  dtypeNumber(array, dtypeNames[info.dtype], name);
  const typed = array as AnyArray;
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

/**
 * Checks for an array in host memory, which every store accepts, or a DeviceBuffer on one of the store's GPUs.
 *
 * @throws TypeError that names the array's device and the store's.
 */
export function assertPlace(array: unknown, name: string, { names, gpus }: StoreDevices): void {
  const buffer: DeviceBuffer | undefined = array instanceof DeviceBuffer ? array : undefined;
  if (buffer === undefined || gpus?.includes(buffer.device) === true) return;
  const where = [...new Set(names)].join(', ');
  const expected =
    gpus === null
      ? `an array of the host (the store's devices are ${where})`
      : `an array of the host, or a DeviceBuffer on a device of the store (${where})`;
  throw argumentError('ERR_INVALID_ARG_TYPE', name, expected, { text: describeBuffer(buffer) });
}

/** The native arrays; the same list if nothing changes. */
export function storagesOf(arrays: readonly AnyArray[]): readonly NativeBuffer[] {
  for (const array of arrays) {
    if (array instanceof DeviceBuffer || array[Symbol.toStringTag] === 'Float16Array') {
      return arrays.map(storageOf);
    }
  }
  return arrays as readonly NativeBuffer[];
}

export interface KeyArrays {
  readonly inputs: readonly AnyArray[];
  readonly outputs: readonly AnyArray[];
}

interface Use extends MemoryUse {
  readonly of: KeyArrays;
}

/**
 * A call's output must not overlap its other arrays, but may be exactly an input of its own key.
 *
 * @throws TypeError ERR_BUFFER_OVERLAP
 */
export function assertApart(keys: readonly KeyArrays[]): void {
  const uses = new MemoryUses<Use>();
  const add = (array: AnyArray, of: KeyArrays, writes: boolean): void => {
    const { buffer, byteOffset: start } = array;
    const use = { buffer, start, end: start + array.byteLength, writes, of };
    uses.conflicting(use, (other) => assertInPlace(use, other));
    uses.add(use);
  };
  for (const of of keys) {
    for (const array of of.outputs) add(array, of, true);
    for (const array of of.inputs) add(array, of, false);
  }
}

function assertInPlace(a: Use, b: Use): void {
  const same = a.start === b.start && a.end === b.end;
  if (a.of === b.of && a.writes !== b.writes && same) return;
  throw overlapError('out', a.writes && b.writes ? 'another out' : 'a value');
}

function sameMemory(a: AnyArray, b: AnyArray): boolean {
  return a.byteOffset === b.byteOffset && a.byteLength === b.byteLength;
}

/** The inputs that are not also outputs. */
export function readOnly({ inputs, outputs }: KeyArrays): readonly AnyArray[] {
  if (outputs.length === 0 || inputs.length === 0) return inputs;
  return inputs.filter(
    (input) =>
      !outputs.some((output) => output.buffer === input.buffer && sameMemory(input, output)),
  );
}
