// Validates data and options of a collective and makes the native call: dtype, count, input, output, root.
import {
  nativeCollectives,
  type NativeBlocks,
  type NativeCollective,
  type NativeOpName,
} from '../../collectives.js';
import { argumentError, ruleError } from '../../errors.js';
import { encodeCall } from '../../native/communicator.js';
import type { NativeBuffer } from '../../native/communicator.js';
import { dtypeNames, elementBytes } from '../../tensor/dtype.js';
import { overlap, overlapError } from '../../tensor/memory.js';
import { milliseconds, wellFormed, optionsObject, rankOf } from '../../checks.js';
import type { Call } from './call.js';
import { callNumber } from './call.js';
import type { Group } from './types.js';
import { collectiveNames, type NamesOfBoth } from './option-names.js';
import { oneRank } from './rank-arrays.js';
import type { Arrays, RawOptions, Shape } from './rank-arrays.js';
import { reduceOpNumber } from './reduce-op.js';
import { scalesOf } from './scale.js';

type DataOp = Exclude<NativeOpName, 'barrier'>;

const isAll = (blocks: NativeBlocks): boolean => blocks === 'each' || blocks === 'eachAtRoot';
const isAtRoot = (blocks: NativeBlocks): boolean =>
  blocks === 'oneAtRoot' || blocks === 'eachAtRoot';

/** The form of one collective. */
interface Form extends Shape {
  readonly code: number;
  readonly names: NamesOfBoth;
}

function formOf(row: NativeCollective): Form {
  return {
    code: callNumber[row.name as NativeOpName],
    names: collectiveNames[row.name as NativeOpName],
    inAll: isAll(row.in),
    outAll: isAll(row.out),
    inAtRoot: isAtRoot(row.in),
    outAtRoot: isAtRoot(row.out),
    reduces: row.hasOp,
    rooted: row.hasRoot,
    inPlace: !isAll(row.in) && !isAll(row.out),
  };
}

// Derived from the table, so that none is missing.
const forms = Object.fromEntries(
  nativeCollectives.map((row) => [row.name, formOf(row)]),
) as Readonly<Record<NativeOpName, Form>>;
const none: RawOptions = Object.freeze({});

function checked(
  given: RawOptions | undefined,
  { names }: Form,
  op: NativeOpName,
  blocking: boolean,
): RawOptions {
  return optionsObject(given, blocking ? names.blocking : names.awaited, op);
}

const nameOf = ({ name }: RawOptions) =>
  name === undefined ? undefined : wellFormed(name, 'name');

/**
 * Prepares any collective but barrier.
 *
 * @param blocking - for the blocking variant
 */
export function prepare(
  group: Group,
  op: DataOp,
  data: unknown,
  given: RawOptions | undefined,
  blocking: boolean,
): Call {
  const form = forms[op];
  const options = given === undefined ? none : checked(given, form, op, blocking);
  const root = form.rooted ? rankOf(options.root, 'root', group.size, 0) : 0;
  const reduceOp = form.reduces ? reduceOpNumber(options.op) : 0;
  const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
  const arrays = group.takesLists
    ? ofGroup(group, op, form, root, data, options)
    : oneRank(group, 0, op, form, root, data, options.out, options);
  return {
    op,
    name: nameOf(options),
    code: encodeCall(form.code, arrays.dtype, reduceOp),
    input: arrays.input,
    output: arrays.output,
    count: arrays.count,
    root,
    timeoutMs,
    more: form.reduces ? scalesOf(group, arrays.dtype, reduceOp, options) : undefined,
    bytes: arrays.count * (elementBytes[arrays.dtype] ?? 8) * (form.inAll ? group.size : 1),
    result: arrays.result,
    finish: undefined,
  };
}

export function prepareBarrier(given: RawOptions | undefined, blocking: boolean): Call {
  const options = checked(given, forms.barrier, 'barrier', blocking);
  const timeoutMs = milliseconds(options.timeoutMs, 'timeoutMs', -1);
  return {
    op: 'barrier',
    name: nameOf(options),
    code: forms.barrier.code,
    input: null,
    output: null,
    count: 0,
    root: 0,
    timeoutMs,
    more: undefined,
    bytes: 0,
    result: undefined,
    finish: undefined,
  };
}

/** A group's call: a list of arrays, one for each rank. */
function ofGroup(
  group: Group,
  op: DataOp,
  form: Shape,
  root: number,
  given: unknown,
  options: RawOptions,
): Arrays {
  if (group.size > 1) return everyRank(group, op, form, root, given, options);
  // Small calls of one rank take nanoseconds, so skip the comparison between ranks.
  const data = op === 'scatter' ? given : oneEach(group, given, 'data')[0];
  const listed = op === 'scatter' || (options.out !== undefined && !form.outAtRoot);
  const out = listed ? oneEach(group, options.out, 'out')[0] : options.out;
  const arrays = oneRank(group, 0, op, form, root, data, out, options);
  return form.outAtRoot ? arrays : { ...arrays, result: [arrays.result] };
}

function everyRank(
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
    op === 'scatter' ? onlyAt(rootAt, held.length, given) : oneEach(group, given, 'data');
  const outs = everyOut(group, op, form, rootAt, options);
  let first: { dtype: number; count: number } | undefined;
  const input: (NativeBuffer | null)[] = [];
  const output: (NativeBuffer | null)[] = [];
  const results: unknown[] = [];
  held.forEach((rank, i) => {
    const one = oneRank(group, i, op, form, root, datas[i], outs[i], options);
    first ??= one;
    if (one.dtype !== first.dtype || one.count !== first.count) {
      const parts = form.inAll ? group.size : 1;
      const [own, other] = [first, one].map(
        ({ count, dtype }) => `${count * parts} elements of ${dtypeNames[dtype]}`,
      );
      throw ruleError(
        'ERR_INVALID_ARG_VALUE',
        `data must have one type and length on all ranks: rank ${held[0]} has ${own}, rank ${rank} ${other}`,
      );
    }
    input.push(one.input);
    output.push(one.output);
    results.push(one.result);
  });
  assertRanksApart(input, output);
  const { dtype, count } = first as unknown as Arrays;
  return { dtype, count, input, output, result: form.outAtRoot ? results[rootAt] : results };
}

function everyOut(
  group: Group,
  op: DataOp,
  form: Shape,
  rootAt: number,
  options: RawOptions,
): readonly unknown[] {
  const { length } = group.heldRanks;
  if (op === 'scatter') return oneEach(group, options.out, 'out');
  if (options.out === undefined || op === 'broadcast') return new Array<undefined>(length);
  return form.outAtRoot ? onlyAt(rootAt, length, options.out) : oneEach(group, options.out, 'out');
}

function onlyAt(index: number, length: number, value: unknown): readonly unknown[] {
  return Array.from({ length }, (_, i) => (i === index ? value : undefined));
}

export function oneEach(group: Group, value: unknown, name: string): readonly unknown[] {
  const { length } = group.heldRanks;
  if (!Array.isArray(value) || value.length !== length) {
    const one = group.gpus.length > 0 ? 'DeviceBuffer' : 'TypedArray';
    const expected =
      length === 1 ? `an array of one ${one}` : `an array of ${length} ${one}s, one for each rank`;
    const code = Array.isArray(value) ? 'ERR_INVALID_ARG_VALUE' : 'ERR_INVALID_ARG_TYPE';
    throw argumentError(code, name, expected, value);
  }
  return value as readonly unknown[];
}

/** A rank's output must not overlap another rank's input or output. */
export function assertRanksApart(
  input: readonly (NativeBuffer | null)[],
  output: readonly (NativeBuffer | null)[],
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

/**
 * The common type of the arrays of several ranks.
 *
 * @throws TypeError if one differs.
 */
export function oneType(
  ranks: readonly number[],
  arrays: readonly { readonly dtype: number }[],
): number {
  const first = arrays[0]?.dtype ?? 0;
  const other = arrays.findIndex(({ dtype }) => dtype !== first);
  if (other < 0) return first;
  const text = `${dtypeNames[arrays[other]!.dtype]} for rank ${ranks[other]}`;
  const expected = `arrays of one type for all ranks (${dtypeNames[first]}, as the first)`;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'data', expected, { text });
}
