// From a caller's data and options to what native code takes: dtype, count, input, output, root, checked.
import { argumentError } from '../errors.js';
import { encodeCall, nativeOps } from '../native/communicator.js';
import type { NativeBuffers, NativeOpName } from '../native/communicator.js';
import {
  allocate,
  allocateLike,
  dtypeNumber,
  elementBytes,
  parseDType,
  storageOf,
} from '../tensor/dtype.js';
import type { NumericArray, StorageArray } from '../tensor/dtype.js';
import { assertFixedLength, overlap, overlapError } from '../tensor/memory.js';
import type { Group } from './group.js';
import { reduceOpNumber } from './reduce-op.js';
import { integer, milliseconds, optionsObject, rankOf } from './validate.js';

/** One call, ready to run. */
export interface CollectiveCall {
  readonly op: NativeOpName;
  /** See encodeCall. */
  readonly code: number;
  readonly input: NativeBuffers;
  readonly output: NativeBuffers;
  readonly count: number;
  readonly root: number;
  /** -1 takes the communicator's default. */
  readonly timeoutMs: number;
  /** Bytes that one rank brings. */
  readonly bytes: number;
  /** What the caller gets. */
  readonly result: unknown;
}

/** Options of all collectives together, unchecked. */
export interface RawOptions {
  readonly op?: unknown;
  readonly root?: unknown;
  readonly out?: unknown;
  readonly dtype?: string | undefined;
  readonly count?: unknown;
  readonly timeoutMs?: number | undefined;
}

interface Shape {
  /** Blocks of `count` elements on each side: one, or one for each rank. */
  readonly inAll: boolean;
  readonly outAll: boolean;
  /** Only the root has this side. */
  readonly inAtRoot: boolean;
  readonly outAtRoot: boolean;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** Without `out`, the result replaces the data; otherwise it is newly made. */
  readonly inPlace: boolean;
}

const shape = (fields: Partial<Shape>): Shape => ({
  inAll: false,
  outAll: false,
  inAtRoot: false,
  outAtRoot: false,
  reduces: false,
  rooted: false,
  inPlace: false,
  ...fields,
});

type DataOp = Exclude<NativeOpName, 'barrier'>;

const shapes: Readonly<Record<DataOp, Shape>> = {
  allReduce: shape({ reduces: true, inPlace: true }),
  reduce: shape({ reduces: true, rooted: true, outAtRoot: true, inPlace: true }),
  broadcast: shape({ rooted: true, inAtRoot: true, inPlace: true }),
  allGather: shape({ outAll: true }),
  reduceScatter: shape({ reduces: true, inAll: true }),
  allToAll: shape({ inAll: true, outAll: true }),
  gather: shape({ rooted: true, outAll: true, outAtRoot: true }),
  scatter: shape({ rooted: true, inAll: true, inAtRoot: true }),
};

/** Prepares any collective but barrier. */
export function prepare(
  group: Group,
  op: DataOp,
  data: unknown,
  given: RawOptions | undefined,
): CollectiveCall {
  const options = optionsObject(given);
  const form = shapes[op];
  const root = form.rooted ? rankOf(options.root, 'root', group.size, 0) : 0;
  const reduceOp = form.reduces ? reduceOpNumber(options.op) : 0;
  const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
  const arrays =
    group.heldRanks.length === 1
      ? soleRank(group, op, form, root, data, options)
      : manyRanks(group, op, form, root, data, options);
  return {
    op,
    code: encodeCall(nativeOps[op], arrays.dtype, reduceOp),
    input: arrays.input,
    output: arrays.output,
    count: arrays.count,
    root,
    timeoutMs,
    bytes: arrays.count * (elementBytes[arrays.dtype] ?? 8) * (form.inAll ? group.size : 1),
    result: arrays.result,
  };
}

/** A barrier carries nothing. */
export function prepareBarrier(given: RawOptions | undefined): CollectiveCall {
  const timeoutMs = milliseconds(optionsObject(given).timeoutMs, 'timeoutMs', -1);
  return {
    op: 'barrier',
    code: nativeOps.barrier,
    input: null,
    output: null,
    count: 0,
    root: 0,
    timeoutMs,
    bytes: 0,
    result: undefined,
  };
}

interface Arrays {
  readonly dtype: number;
  readonly count: number;
  readonly input: NativeBuffers;
  readonly output: NativeBuffers;
  readonly result: unknown;
}

/** For the only held rank a list of one is welcome where a list of several would be; it comes back as a list. */
function soleRank(
  group: Group,
  op: DataOp,
  form: Shape,
  root: number,
  given: unknown,
  options: RawOptions,
): Arrays {
  const { size, rank } = group;
  if (!Array.isArray(op === 'scatter' ? options.out : given)) {
    return oneRank(size, rank, op, form, root, given, options.out, options);
  }
  const data = op === 'scatter' ? given : oneEach(given, 'data', 1)[0];
  const listed = options.out !== undefined && !form.outAtRoot;
  const out = listed ? oneEach(options.out, 'out', 1)[0] : options.out;
  const arrays = oneRank(size, rank, op, form, root, data, out, options);
  return form.outAtRoot ? arrays : { ...arrays, result: [arrays.result] };
}

function oneRank(
  size: number,
  rank: number,
  op: DataOp,
  form: Shape,
  root: number,
  given: unknown,
  givenOut: unknown,
  options: RawOptions,
): Arrays {
  const isRoot = rank === root;
  const reads = !form.inAtRoot || isRoot;
  const writes = !form.outAtRoot || isRoot;
  const { dtype, data, out, count } = measure(
    size,
    op,
    form,
    given,
    givenOut,
    options,
    reads,
    writes,
  );
  let target = out;
  if (writes && target === undefined) {
    target = form.inPlace ? data : freshArray(data, dtype, form.outAll ? count * size : count);
  }
  if (data !== undefined) assertFixedLength(data, 'data');
  if (target !== undefined && (target !== data || !form.inPlace)) {
    assertFixedLength(target, 'out');
    if (reads && data !== undefined) assertApart(form, rank, data, target, count);
  }
  return {
    dtype,
    count,
    input: reads && data !== undefined ? storageOf(data) : null,
    output: writes && target !== undefined ? storageOf(target) : null,
    result: writes ? target : undefined,
  };
}

/** dtype, count and arrays of one rank, their lengths checked against each other. */
function measure(
  size: number,
  op: DataOp,
  form: Shape,
  given: unknown,
  givenOut: unknown,
  options: RawOptions,
  reads: boolean,
  writes: boolean,
): { dtype: number; data: NumericArray | undefined; out: NumericArray | undefined; count: number } {
  const wantedOut = writes && op !== 'broadcast' ? (givenOut ?? undefined) : undefined;
  if ((given === undefined || given === null) && op === 'scatter' && !reads) {
    return measureScattered(wantedOut, options);
  }
  const dtype = dtypeNumber(given, options.dtype, 'data');
  const data = given as NumericArray;
  let count = data.length;
  if (form.inAll) {
    count = data.length / size;
    if (!Number.isInteger(count)) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'data',
        `a length divisible by the ${size} ranks`,
        {
          text: `length ${data.length}`,
        },
      );
    }
  }
  const out = wantedOut === undefined ? undefined : asOut(wantedOut, dtype, options);
  if (out !== undefined) assertLength(out, 'out', form.outAll ? count * size : count);
  return { dtype, data, out, count };
}

function measureScattered(givenOut: unknown, options: RawOptions) {
  if (givenOut !== undefined) {
    const dtype = dtypeNumber(givenOut, options.dtype, 'out');
    const out = givenOut as NumericArray;
    return { dtype, data: undefined, out, count: out.length };
  }
  if (options.count === undefined || options.dtype === undefined) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'scatter on a rank that is not the root',
      'either out, or count and dtype',
      { text: 'neither' },
    );
  }
  const dtype = parseDType(options.dtype);
  const count = integer(options.count, 'count', 0, Number.MAX_SAFE_INTEGER);
  return { dtype, data: undefined, out: allocate(dtype, count) as NumericArray, count };
}

function asOut(value: unknown, dtype: number, options: RawOptions): NumericArray {
  const own = dtypeNumber(value, options.dtype, 'out');
  if (own !== dtype) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'out', 'an array of the type of data', value);
  }
  return value as NumericArray;
}

function assertLength(array: NumericArray, name: string, length: number): void {
  if (array.length !== length) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, `an array of ${length} elements`, {
      text: `${array.length}`,
    });
  }
}

function freshArray(model: NumericArray | undefined, dtype: number, count: number): NumericArray {
  return model === undefined ? allocate(dtype, count) : allocateLike(model, dtype, count);
}

/** Data and out may only be the same memory, or one the rank's own block of the other. */
function assertApart(
  form: Shape,
  rank: number,
  data: NumericArray,
  out: NumericArray,
  count: number,
): void {
  if (!overlap(data, out)) return;
  const block = rank * count * data.BYTES_PER_ELEMENT;
  const together =
    form.inAll && form.outAll
      ? false
      : form.outAll
        ? data.byteOffset === out.byteOffset + block
        : form.inAll
          ? out.byteOffset === data.byteOffset + block
          : out.byteOffset === data.byteOffset;
  if (!together) throw overlapError('out', 'data');
}

function manyRanks(
  group: Group,
  op: DataOp,
  form: Shape,
  root: number,
  given: unknown,
  options: RawOptions,
): Arrays {
  const held = group.heldRanks;
  const rootAt = held.indexOf(root);
  const datas =
    op === 'scatter' ? onlyAt(rootAt, held.length, given) : oneEach(given, 'data', held.length);
  const outs = manyOuts(op, form, rootAt, held.length, options);
  let first: { dtype: number; count: number } | undefined;
  const input: (StorageArray | null)[] = [];
  const output: (StorageArray | null)[] = [];
  const results: unknown[] = [];
  held.forEach((rank, i) => {
    const one = oneRank(group.size, rank, op, form, root, datas[i], outs[i], options);
    first ??= one;
    if (one.dtype !== first.dtype || one.count !== first.count) {
      throw argumentError(
        'ERR_INVALID_ARG_VALUE',
        'data',
        'arrays of one type and length for all ranks',
        {
          text: `others for rank ${rank} than for rank ${held[0]}`,
        },
      );
    }
    input.push(one.input as StorageArray | null);
    output.push(one.output as StorageArray | null);
    results.push(one.result);
  });
  assertRanksApart(input, output);
  const { dtype, count } = first as unknown as Arrays;
  return { dtype, count, input, output, result: form.outAtRoot ? results[rootAt] : results };
}

function manyOuts(
  op: DataOp,
  form: Shape,
  rootAt: number,
  length: number,
  options: RawOptions,
): readonly unknown[] {
  if (op === 'scatter') return oneEach(options.out, 'out', length);
  if (options.out === undefined || op === 'broadcast') return new Array<undefined>(length);
  return form.outAtRoot ? onlyAt(rootAt, length, options.out) : oneEach(options.out, 'out', length);
}

function onlyAt(index: number, length: number, value: unknown): readonly unknown[] {
  return Array.from({ length }, (_, i) => (i === index ? value : undefined));
}

function oneEach(value: unknown, name: string, length: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length !== length) {
    const what =
      length === 1
        ? 'an array of one TypedArray'
        : `an array of ${length} TypedArrays, one for each held rank`;
    throw argumentError('ERR_INVALID_ARG_VALUE', name, what, value);
  }
  return value as readonly unknown[];
}

/** What one rank writes may not be what another reads or writes. */
function assertRanksApart(
  input: readonly (StorageArray | null)[],
  output: readonly (StorageArray | null)[],
): void {
  output.forEach((out, i) => {
    if (out === null) return;
    for (let j = 0; j < output.length; ++j) {
      if (j === i) continue;
      const other = output[j];
      const read = input[j];
      if (other && overlap(out, other)) throw overlapError(`out of rank ${i}`, `out of rank ${j}`);
      if (read && overlap(out, read)) throw overlapError(`out of rank ${i}`, `data of rank ${j}`);
    }
  });
}
