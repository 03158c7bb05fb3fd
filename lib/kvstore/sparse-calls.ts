// Pushes and pulls of single rows.
import type { NativeKVStore } from '../native/kvstore.js';
import type { AnyArray } from '../tensor/any-array.js';
import { dtypeNames } from '../tensor/dtype.js';
import { argumentError } from '../errors.js';
import { flag, optionNames, optionsObject } from '../checks.js';
import { arraysOf, assertApart, storagesOf } from './arrays.js';
import type { ArrayRules, DeviceArrays } from './arrays.js';
import { ofCalls, pairsOf, priorityOf } from './calls.js';
import type { KeyCall, Keys, StoreCallOptions } from './calls.js';
import type { Key, KeyInfo } from './keys.js';
import type { StoreOperations } from './operations.js';
import { copyable, emptyLike, isRowSparse, refill, rowSparsesOf } from './row-sparse.js';
import type { RowSparse } from './row-sparse.js';
import { rowsOf, sortedOnce } from './rows.js';

/** The values of a push for `K`: whole arrays, or {@link RowSparse} arrays, one or one per device. */
export type PushValues<K extends Keys> = K extends readonly Key[]
  ? readonly (DeviceArrays | RowSparse | readonly RowSparse[])[]
  : DeviceArrays | RowSparse | readonly RowSparse[];

/** The outputs of a pull for `K`. */
export type PullTargets<K extends Keys> = PushValues<K>;

/** Options of pull. */
export interface PullOptions extends StoreCallOptions {
  /**
   * Whether to skip {@link RowSparse} outputs with a warning, as MXNet does, because rowSparsePull fills them. False
   * fills them with all rows. Default true.
   */
  ignoreSparse?: boolean | undefined;
}

const pullNames = optionNames<PullOptions>({ ...ofCalls, ignoreSparse: true });

type Pair = readonly [key: unknown, given: unknown];

/** Calls with rows for some keys, and rowSparsePull. */
export class SparseCalls {
  readonly #native: NativeKVStore;
  readonly #operations: StoreOperations;
  readonly #rules: ArrayRules;
  readonly #warned = new Set<unknown>();

  constructor(native: NativeKVStore, operations: StoreOperations, rules: ArrayRules) {
    this.#native = native;
    this.#operations = operations;
    this.#rules = rules;
  }

  async push(keys: unknown, values: unknown, options: StoreCallOptions | undefined): Promise<void> {
    const { ofRows, whole } = split(keys, values, 'values');
    this.#operations.pending.assertOpen('push');
    const priority = priorityOf(options, 'push');
    const pushes = new Map<KeyInfo, RowSparse[]>();
    for (const [key, given] of ofRows) {
      const info = this.#operations.keys.find(key);
      const arrays = [...(pushes.get(info) ?? []), ...this.#read(given, 'value', info)];
      pushes.set(info, arrays);
    }
    const both = whole.find(([key]) => ofRows.some(([other]) => other === key));
    if (both !== undefined) {
      const expected = 'either whole arrays or RowSparse for a key';
      throw argumentError('ERR_INVALID_ARG_VALUE', 'values', expected, both[0]);
    }
    const started = [...pushes].map(([info, arrays]) => this.#pushRows(info, arrays, priority));
    if (whole.length > 0) {
      const [wholeKeys, wholeValues] = unzipped(whole);
      started.push(this.#operations.call('push', wholeKeys, wholeValues, undefined, options));
    }
    await Promise.all(started);
  }

  #pushRows(info: KeyInfo, arrays: readonly RowSparse[], priority: number): Promise<void> {
    const inputs: AnyArray[] = arrays.map(({ data }) => data);
    return this.#operations.run('push', { info, inputs, outputs: [] }, () =>
      this.#native.pushRows(
        info.id,
        storagesOf(inputs),
        arrays.map(({ indices }) => indices),
        priority,
        this.#operations.pending.none,
      ),
    );
  }

  async pull(keys: unknown, outs: unknown, options: PullOptions | undefined): Promise<void> {
    const given = optionsObject(options, pullNames, 'pull');
    const { priority } = given;
    const ignores = flag(given.ignoreSparse, 'ignoreSparse', true);
    if (!bringsRows(keys, outs)) {
      return this.#operations.call('pull', keys, undefined, outs, { priority });
    }
    const { ofRows, whole } = split(keys, outs, 'outs');
    const started: Promise<void>[] = [];
    for (const [key, targets] of ofRows) {
      const info = this.#operations.keys.find(key);
      if (ignores) {
        this.#warn(key);
        continue;
      }
      const all = Array.from({ length: info.count / info.rowLength }, (_, row) => row);
      started.push(this.rowSparsePull(key, targets, all, { priority }));
    }
    if (whole.length > 0) {
      const [wholeKeys, wholeOuts] = unzipped(whole);
      started.push(this.#operations.call('pull', wholeKeys, undefined, wholeOuts, { priority }));
    }
    await Promise.all(started);
  }

  #warn(key: unknown): void {
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    process.emitWarning(
      `pull skips the RowSparse output of key ${String(key)}: use rowSparsePull, or ignoreSparse: false for all rows`,
      { code: 'GRADLINK_SPARSE' },
    );
  }

  async rowSparsePull(
    keys: unknown,
    outs: unknown,
    rowIds: unknown,
    options: StoreCallOptions | undefined,
  ): Promise<void> {
    this.#operations.pending.assertOpen('rowSparsePull');
    const priority = priorityOf(options, 'rowSparsePull');
    const calls = pairsOf(keys, outs, 'outs').map(([one, given], index) => {
      const info = this.#operations.keys.find(one);
      const ids: unknown = Array.isArray(keys) ? (rowIds as readonly unknown[])[index] : rowIds;
      if (isRowSparse(given)) return this.#rowsInto(given, info, ids);
      const outputs = arraysOf(given, info, 'out', this.#rules);
      const rows = rowsOf(ids, info, outputs.length);
      return { info, inputs: [], outputs, rows, compact: false, finish: nothing };
    });
    assertApart(calls);
    await Promise.all(calls.map((call) => this.#pullRows(call, priority)));
  }

  async #pullRows(call: RowPull, priority: number): Promise<void> {
    const { info, outputs, rows, compact } = call;
    await this.#operations.run('rowSparsePull', call, () =>
      this.#native.rowSparsePull(
        info.id,
        storagesOf(outputs),
        rows,
        priority,
        compact,
        this.#operations.pending.none,
      ),
    );
    call.finish();
  }

  /** Pulls into new arrays, which replace the old ones when complete. */
  #rowsInto(given: RowSparse | readonly RowSparse[], info: KeyInfo, ids: unknown): RowPull {
    const targets = this.#read(given, 'out', info);
    const rows = rowsOf(ids, info, targets.length).map(sortedOnce);
    const compact = this.#rules.devices.gpus === null;
    const outputs = targets.map(({ data }, index) =>
      emptyLike(data, compact ? rows[index]!.length * info.rowLength : info.count),
    );
    const finish = (): void => {
      targets.forEach((target, index) => {
        const [wanted, filled] = [rows[index]!, outputs[index]!];
        refill(target, wanted, compact ? filled : rowsFrom(filled, wanted, info.rowLength));
      });
    };
    return { info, inputs: [], outputs, rows, compact, finish };
  }

  #read(given: unknown, name: string, info: KeyInfo): RowSparse[] {
    const { key, count, rowLength } = info;
    const dtype = dtypeNames[info.dtype];
    return rowSparsesOf(given, name, { key, count, rowLength, dtype }, this.#rules.limit);
  }
}

interface RowPull extends KeyCall {
  readonly rows: readonly Float64Array[];
  readonly compact: boolean;
  readonly finish: () => void;
}

function nothing(): void {
  // The given arrays are filled in place.
}

function rowsFrom<A extends RowSparse['data']>(whole: A, rows: Float64Array, length: number): A {
  const some = emptyLike(whole, rows.length * length);
  rows.forEach((row, at) => {
    copyable(some).set(copyable(whole).subarray(row * length, (row + 1) * length), at * length);
  });
  return some;
}

export function bringsRows(keys: unknown, given: unknown): boolean {
  if (!Array.isArray(keys)) return isRowSparse(given);
  return Array.isArray(given) && given.some(isRowSparse);
}

/** Separates the keys with rows from the others. */
function split(keys: unknown, given: unknown, name: string): { ofRows: Pair[]; whole: Pair[] } {
  const pairs = pairsOf(keys, given, name);
  return {
    ofRows: pairs.filter(([, one]) => isRowSparse(one)),
    whole: pairs.filter(([, one]) => !isRowSparse(one)),
  };
}

function unzipped(pairs: readonly Pair[]): [unknown[], unknown[]] {
  return [pairs.map(([key]) => key), pairs.map(([, given]) => given)];
}
