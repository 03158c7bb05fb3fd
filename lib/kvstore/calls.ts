// Turns the arguments of push, pull and similar calls, for one key or several, into a list of keys with arrays.
import { argumentError, describe } from '../errors.js';
import type { AnyArray } from '../tensor/any-array.js';
import { DeviceBuffer } from '../tensor/device-buffer.js';
import { optionNames, optionsObject } from '../checks.js';
import { arraysOf, assertApart } from './arrays.js';
import type { ArrayRules, DeviceArrays, KeyArrays } from './arrays.js';
import type { Key, KeyInfo, KeyTable } from './keys.js';

/** One key, or a list of keys. */
export type Keys = Key | readonly Key[];

/** The arrays of a call for `K`: one or one per device for a single key, a list of those for several. */
export type ArraysFor<K extends Keys> = K extends readonly Key[]
  ? readonly DeviceArrays[]
  : DeviceArrays;

/** One key's part of a call. */
export interface KeyCall extends KeyArrays {
  readonly info: KeyInfo;
  readonly inputs: AnyArray[];
  readonly outputs: AnyArray[];
}

export function pairsOf(
  keys: unknown,
  given: unknown,
  name: string,
): readonly (readonly [unknown, unknown])[] {
  if (!Array.isArray(keys)) return [[keys, given]];
  if (!Array.isArray(given) || given.length !== keys.length) {
    const items = keys.length === 1 ? 'item' : 'items';
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      name,
      `a list of ${keys.length} ${items}, one for each key`,
      given,
    );
  }
  return Array.from(keys, (key: unknown, index) => [key, given[index] as unknown] as const);
}

/** The arrays that each operation needs. */
const brings = {
  push: { values: true, outs: false },
  pull: { values: false, outs: true },
  pushPull: { values: true, outs: true },
} as const;

/** The distinct keys of a call; arrays of a repeated key are combined. */
export function readCall(
  table: KeyTable,
  keys: unknown,
  op: keyof typeof brings,
  values: unknown,
  outs: unknown,
  rules: ArrayRules,
): readonly KeyCall[] {
  const wanted = brings[op];
  const from: Brought = {
    values: wanted.values ? { given: values } : undefined,
    outs: wanted.outs ? { given: outs } : undefined,
  };
  const calls = Array.isArray(keys)
    ? readList(table, keys, from, rules, op === 'pull')
    : [readOne(table, keys, from, rules)];
  assertApart(calls);
  return calls;
}

interface Brought {
  readonly values: { readonly given: unknown } | undefined;
  readonly outs: { readonly given: unknown } | undefined;
}

function readOne(
  table: KeyTable,
  key: unknown,
  { values, outs }: Brought,
  rules: ArrayRules,
): KeyCall {
  const info = table.find(key);
  return {
    info,
    inputs: values === undefined ? [] : arraysOf(values.given, info, 'value', rules),
    outputs: outs === undefined ? [] : arraysOf(outs.given, info, 'out', rules),
  };
}

function readList(
  table: KeyTable,
  keys: readonly unknown[],
  { values, outs }: Brought,
  rules: ArrayRules,
  lastWins: boolean,
): KeyCall[] {
  const inputs = values && pairsOf(keys, values.given, 'values');
  const outputs = outs && pairsOf(keys, outs.given, 'outs');
  const calls = new Map<number, KeyCall>();
  const written: Written[] = [];
  Array.from(keys).forEach((key, index) => {
    const own: Brought = {
      values: inputs && { given: inputs[index]?.[1] },
      outs: outputs && { given: outputs[index]?.[1] },
    };
    const one = readOne(table, key, own, rules);
    for (const out of one.outputs) written.push({ id: one.info.id, out });
    const earlier = calls.get(one.info.id);
    if (earlier === undefined) {
      calls.set(one.info.id, one);
    } else {
      earlier.inputs.push(...one.inputs);
      earlier.outputs.push(...one.outputs);
    }
  });
  const all = [...calls.values()];
  return lastWins ? withoutOverwritten(all, written) : all;
}

interface Written {
  readonly id: number;
  readonly out: AnyArray;
}

/**
 * As in MXNet several keys may be pulled into one array, which keeps the last one's value: skips the earlier copies.
 *
 * @param written - in the order of the call.
 */
function withoutOverwritten(calls: KeyCall[], written: readonly Written[]): KeyCall[] {
  // The last key for each memory range.
  const last = new Map<object, Map<string, number>>();
  const kept = written.toReversed().filter(({ id, out: { buffer, byteOffset, byteLength } }) => {
    const places = last.get(buffer) ?? new Map<string, number>();
    last.set(buffer, places);
    const place = `${byteOffset} ${byteLength}`;
    if ((places.get(place) ?? id) !== id) return false;
    places.set(place, id);
    return true;
  });
  if (kept.length === written.length) return calls;
  const outputs = new Map<number, AnyArray[]>();
  for (const { id, out } of kept.toReversed()) {
    const own = outputs.get(id);
    if (own === undefined) outputs.set(id, [out]);
    else own.push(out);
  }
  return calls.flatMap((call) => {
    const own = outputs.get(call.info.id);
    return own === undefined ? [] : [{ ...call, outputs: own }];
  });
}

/** Options of every operation. */
export interface StoreCallOptions {
  /** Higher runs sooner; an int32, 0 when absent. Training uses the highest for the first layers. */
  priority?: number | undefined;
}

/** Of every call. */
export const ofCalls = { priority: true } as const;
const callNames = optionNames<StoreCallOptions>(ofCalls);

/** @throws TypeError or RangeError unless it is an int32, and for unknown options */
export function priorityOf(options: StoreCallOptions | undefined, op: string): number {
  const { priority } = optionsObject(options, callNames, op);
  if (priority === undefined) return 0;
  if (typeof priority !== 'number') {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'priority', 'an integer of 32 bits', priority);
  }
  if ((priority | 0) !== priority) {
    throw argumentError('ERR_OUT_OF_RANGE', 'priority', 'an integer of 32 bits', {
      text: describe(priority),
    });
  }
  return priority;
}

/** Whether an argument is options rather than arrays. */
export function isOptions(given: unknown): given is StoreCallOptions {
  return (
    typeof given === 'object' &&
    given !== null &&
    !Array.isArray(given) &&
    !(given instanceof DeviceBuffer) &&
    !ArrayBuffer.isView(given)
  );
}
