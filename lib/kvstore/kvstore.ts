// The key-value store as users see it. What is merged where is the backend's business (backends.ts).
import { argumentError } from '../errors.js';
import { nativeStoreOps } from '../native/kvstore.js';
import type { NativeKVStore, NativeStoreArrays } from '../native/kvstore.js';
import type { Optimizer } from '../optimizers/optimizer.js';
import type { AnyArray } from '../tensor/any-array.js';
import { DeviceBuffer } from '../tensor/device-buffer.js';
import { arraysOf, assertApart, storagesOf } from './arrays.js';
import type { ArrayRules, DeviceArrays } from './arrays.js';
import { openBackend } from './backends.js';
import type { StoreBackend } from './backends.js';
import { pairsOf, priorityOf, readCall } from './calls.js';
import type { ArraysFor, KeyCall, Keys, StoreCallOptions } from './calls.js';
import { parseDevices } from './devices.js';
import type { DeviceList } from './devices.js';
import { readInit } from './init.js';
import type { InitOptions, InitValues } from './init.js';
import { KeyTable } from './keys.js';
import type { Key } from './keys.js';
import { PendingOperations } from './pending.js';
import { RepeatedCalls } from './repeated.js';
import type { RepeatedCall } from './repeated.js';
import { rowsOf } from './rows.js';
import type { RowIds } from './rows.js';
import { parseStoreType } from './types.js';
import { UpdaterCalls } from './updater.js';
import type { Updater } from './updater.js';

/** Options of {@link KVStore.create}. */
export interface KVStoreOptions {
  /**
   * The devices whose arrays are pushed and pulled: `4`, `['cpu:0', 'cpu:1']` or `['gpu:0', 'gpu:1']`. A push brings at
   * most one array a device: TypedArrays for CPU devices, DeviceBuffers for GPUs. A GPU may be named several times.
   * When absent, the arrays are the host's and their number is not limited.
   */
  devices?: DeviceList | undefined;
}

/** Options of {@link KVStore.setGradientCompression}. */
export interface GradientCompression {
  /** `'2bit'`: each element becomes -threshold, 0 or +threshold. `'1bit'`: -1 or +1. */
  type: '2bit' | '1bit';
  /** Of the same unit as the gradients; above 0 for 2bit. 0.5 when absent. */
  threshold?: number | undefined;
}

/**
 * A key-value store with MXNet's meaning: the devices of this process push arrays, which are summed, and pull the
 * result.
 *
 * Operations on one key run in the order of their calls; operations on different keys run side by side, higher
 * priority first. A push without an optimizer **assigns** the sum of that push; with one, the optimizer updates the
 * stored value. Every method that returns a promise rejects rather than throws. Until the promise settles, arrays that
 * were given may not be written, and those being filled may not be read; afterwards they are the caller's again: the
 * store never keeps them.
 *
 * @example
 * ```ts
 * await using kv = await KVStore.create('device', { devices: 2 });
 * await kv.init('w', new Float32Array(3));
 * await kv.push('w', [Float32Array.of(1, 2, 3), Float32Array.of(10, 20, 30)]);
 * const out = new Float32Array(3);
 * await kv.pull('w', out); // 11, 22, 33
 * ```
 */
export class KVStore implements AsyncDisposable {
  /** The type as asked for, in lower case. */
  readonly type: string;
  /** This worker; 0 where there is one. */
  readonly rank: number;
  readonly numWorkers: number;
  readonly devices: readonly string[];
  readonly #native: NativeKVStore;
  readonly #rules: ArrayRules;
  readonly #keys = new KeyTable();
  readonly #pending = new PendingOperations();
  /** Of stores on GPUs. */
  readonly #repeated: RepeatedCalls | undefined;
  #updater: UpdaterCalls | undefined;
  #closing: Promise<void> | undefined;

  private constructor(type: string, backend: StoreBackend, rules: ArrayRules) {
    this.type = type;
    this.rank = backend.rank;
    this.numWorkers = backend.numWorkers;
    this.devices = rules.devices.names;
    this.#native = backend.native;
    this.#rules = rules;
    this.#repeated = rules.devices.gpus === null ? undefined : new RepeatedCalls();
  }

  /**
   * Opens a store.
   *
   * @param type - `'local'` (sums on the host), `'device'`, the default (sums where the devices are, with gradient
   *   compression; on GPUs with NCCL where it is there and no GPU is named twice), or `'nccl'` (GPUs; NCCL must be
   *   there). On CPU devices local and device both lie in host memory and are equally fast. MXNet's other spellings
   *   are accepted.
   * @throws GradlinkError ERR_UNSUPPORTED or ERR_BACKEND_UNAVAILABLE for a type or device this build does not have.
   */
  static async create(type = 'device', options: KVStoreOptions = {}): Promise<KVStore> {
    const parsed = parseStoreType(type);
    const devices = parseDevices(options.devices);
    const backend = await openBackend(parsed, devices);
    const limit = options.devices === undefined ? Infinity : devices.names.length;
    return new KVStore(parsed.name, backend, { devices, limit });
  }

  /**
   * Makes keys, each once, with a first value (copied) that fixes type and length. The kind of the first key, int or
   * string, is that of all keys of the store.
   */
  async init<K extends Keys>(
    keys: K,
    values: InitValues<K>,
    options: InitOptions = {},
  ): Promise<void> {
    this.#pending.assertOpen('init');
    const entries = readInit(this.#keys, keys, values, options, this.#rules.devices);
    const calls = entries.map(({ key, value, dtype, rowLength }): KeyCall => {
      const id = this.#native.define(String(key), dtype, value.length, rowLength);
      const info = { key, id, dtype, count: value.length, rowLength };
      this.#keys.add(info);
      return { info, inputs: [value], outputs: [] };
    });
    await this.#submit('init', calls, 0);
  }

  /** Sums what the devices bring; the sum is assigned, or given to the optimizer or updater. */
  push<K extends Keys>(keys: K, values: ArraysFor<K>, options?: StoreCallOptions): Promise<void> {
    return this.#call('push', keys, values, undefined, options);
  }

  /** Copies the stored value to every output. */
  pull<K extends Keys>(keys: K, outs: ArraysFor<K>, options?: StoreCallOptions): Promise<void> {
    return this.#call('pull', keys, undefined, outs, options);
  }

  /**
   * A push and a pull in one pass over memory. Without `outs`, the result replaces the values.
   */
  pushPull<K extends Keys>(
    keys: K,
    values: ArraysFor<K>,
    outs?: ArraysFor<K> | StoreCallOptions,
    options?: StoreCallOptions,
  ): Promise<void> {
    const given = isOptions(outs) ? { outs: undefined, options: outs } : { outs, options };
    return this.#call('pushPull', keys, values, given.outs ?? values, given.options);
  }

  /** {@link init} and {@link pull} in one: gives every output the first value. */
  async broadcast<K extends Keys>(
    keys: K,
    values: InitValues<K>,
    outs: ArraysFor<K>,
    options: InitOptions & StoreCallOptions = {},
  ): Promise<void> {
    const initialised = this.init(keys, values, options);
    // Queued behind the init; if that is refused, there is nothing to pull.
    const pulled = this.pull(keys, outs, options);
    const [init, pull] = await Promise.allSettled([initialised, pulled]);
    if (init.status === 'rejected') throw init.reason;
    if (pull.status === 'rejected') throw pull.reason;
  }

  /**
   * Copies some rows of the stored value; the other rows of the output become 0.
   *
   * @param outs - as long as the value.
   * @param rowIds - rows, in any order, repeats allowed: one list for all outputs, or a list for each. A row has the
   *   product of all but the first number of the shape given to init (1 element without a shape).
   */
  async rowSparsePull(
    key: Key | readonly Key[],
    outs: DeviceArrays | readonly DeviceArrays[],
    rowIds: RowIds | readonly RowIds[],
    options?: StoreCallOptions,
  ): Promise<void> {
    this.#pending.assertOpen('rowSparsePull');
    const priority = priorityOf(options);
    const calls = pairsOf(key, outs, 'outs').map(([one, given], index) => {
      const info = this.#keys.find(one);
      const outputs = arraysOf(given, info, 'out', this.#rules);
      const ids: unknown = Array.isArray(key) ? (rowIds as readonly unknown[])[index] : rowIds;
      return { info, inputs: [], outputs, rows: rowsOf(ids, info, outputs.length) };
    });
    assertApart(calls);
    await Promise.all(
      calls.map((call) =>
        this.#pending.run('rowSparsePull', [call], () =>
          this.#native.rowSparsePull(
            call.info.id,
            storagesOf(call.outputs),
            call.rows,
            priority,
            this.#pending.none,
          ),
        ),
      ),
    );
  }

  /**
   * From the next push on, pushes update the stored values through this optimizer, natively; null: pushes assign
   * again. The optimizer is taken as it is at the call: later changes to the object do not reach the store (see
   * {@link setLearningRate}). States start anew. Takes effect at the call.
   */
  async setOptimizer(optimizer: Optimizer | null): Promise<void> {
    this.#pending.assertOpen('setOptimizer');
    this.#native.setOptimizer(optimizer === null ? null : optimizer.spec);
    this.#updater = undefined;
    await Promise.resolve();
  }

  /**
   * Changes the optimizer's rate from the next push on, keeping its states.
   *
   * @throws TypeError without an optimizer, or where a schedule decides the rate.
   */
  async setLearningRate(learningRate: number): Promise<void> {
    this.#pending.assertOpen('setLearningRate');
    if (typeof learningRate !== 'number' || !Number.isFinite(learningRate)) {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'learningRate', 'a finite number', learningRate);
    }
    await this.#pending.run('setLearningRate', [], () =>
      this.#native.setLearningRate(learningRate),
    );
  }

  /** As {@link setOptimizer}, with a JavaScript function; an error it throws rejects the push. */
  async setUpdater(updater: Updater | null): Promise<void> {
    this.#pending.assertOpen('setUpdater');
    if (updater !== null && typeof updater !== 'function') {
      throw argumentError('ERR_INVALID_ARG_TYPE', 'updater', 'a function or null', updater);
    }
    const calls = updater === null ? undefined : new UpdaterCalls(this.#keys);
    this.#native.setUpdater(updater === null ? null : (calls?.wrap(updater) ?? null));
    this.#updater = calls;
    await Promise.resolve();
  }

  /**
   * Compresses what each device pushes, with error feedback for each key and device; float32 keys only, others are
   * summed as they are. Before the first init, once, for good.
   *
   * @throws GradlinkError ERR_UNSUPPORTED on a `local` store.
   */
  async setGradientCompression({ type, threshold = 0.5 }: GradientCompression): Promise<void> {
    this.#pending.assertOpen('setGradientCompression');
    this.#native.setCompression(type, threshold);
    await Promise.resolve();
  }

  /**
   * Writes the optimizer's states to a file, in one step, as they are after every operation issued before.
   *
   * @param options - dumpOptimizer: write the optimizer itself too, so that loading needs no setOptimizer.
   */
  async saveOptimizerStates(
    file: string,
    options: { dumpOptimizer?: boolean | undefined } = {},
  ): Promise<void> {
    this.#pending.assertOpen('saveOptimizerStates');
    const dump = options.dumpOptimizer ?? false;
    await this.#pending.run('saveOptimizerStates', [], () => this.#native.saveStates(file, dump));
  }

  /**
   * Reads states back, bit for bit. The keys must have been initialised; a file that does not fit changes nothing.
   *
   * @throws TypeError for a file that is none, is damaged, or belongs to another optimizer or other keys.
   */
  async loadOptimizerStates(file: string): Promise<void> {
    this.#pending.assertOpen('loadOptimizerStates');
    await this.#pending.run('loadOptimizerStates', [], () => this.#native.loadStates(file));
  }

  /** Resolves when every operation issued before is done, on all workers. */
  async barrier(): Promise<void> {
    this.#pending.assertOpen('barrier');
    await this.#pending.run('barrier', [], () => this.#native.barrier());
  }

  /** Whether the store can do something; `'optimizer'` (run optimizers itself) is what there is to ask. */
  isCapable(capability: 'optimizer'): boolean {
    const known: unknown = capability;
    if (known !== 'optimizer') {
      throw argumentError('ERR_INVALID_ARG_VALUE', 'capability', "'optimizer'", known);
    }
    return true;
  }

  /** Waits for pending operations, then frees the values. Idempotent; later operations fail with ERR_CLOSED. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#pending.close();
    await this.#native.barrier();
    this.#native.close();
  }

  #call(
    op: 'push' | 'pull' | 'pushPull',
    keys: unknown,
    values: unknown,
    outs: unknown,
    options: StoreCallOptions | undefined,
  ): Promise<void> {
    try {
      this.#pending.assertOpen(op);
      const priority = priorityOf(options);
      const known = this.#repeated?.find(op, keys, values, outs);
      if (known !== undefined) return this.#repeat(op, known, priority);
      const calls = readCall(this.#keys, keys, op, values, outs, this.#rules);
      const repeated = this.#repeated?.remember(op, keys, values, outs, calls, () =>
        this.#native.prepare(
          nativeStoreOps[op],
          calls.map(({ info }) => info.id),
          calls.map(({ inputs }) => storagesOf(inputs)),
          calls.map(({ outputs }) => storagesOf(outputs)),
          priority,
        ),
      );
      if (repeated !== undefined) return this.#repeat(op, repeated, priority);
      return this.#submit(op, calls, priority);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever it is, it came as thrown
      return Promise.reject(error);
    }
  }

  #repeat(
    op: 'push' | 'pull' | 'pushPull',
    { native, leases, ids }: RepeatedCall,
    priority: number,
  ): Promise<void> {
    return this.#pending.runGroup(leases, () =>
      this.#rethrowing(op, ids, this.#native.submitPrepared(native, priority)),
    );
  }

  /** What an updater throws is what its push rejects with. */
  #rethrowing(
    op: string,
    ids: readonly number[],
    started: Promise<void> | undefined,
  ): Promise<void> | undefined {
    const updater = op === 'push' || op === 'pushPull' ? this.#updater : undefined;
    if (started === undefined || updater === undefined) return started;
    return updater.rethrow(ids, started);
  }

  #submit(
    op: 'init' | 'push' | 'pull' | 'pushPull',
    calls: readonly KeyCall[],
    priority: number,
  ): Promise<void> {
    const [first] = calls;
    if (first === undefined) return Promise.resolve();
    return this.#pending.run(op, calls, () => {
      const one = calls.length === 1;
      const started = this.#native.submit(
        nativeStoreOps[op],
        one ? first.info.id : calls.map(({ info }) => info.id),
        one ? listed(first.inputs) : calls.map(({ inputs }) => storagesOf(inputs)),
        one ? listed(first.outputs) : calls.map(({ outputs }) => storagesOf(outputs)),
        priority,
        this.#pending.none,
      );
      return this.#rethrowing(
        op,
        calls.map(({ info }) => info.id),
        started,
      );
    });
  }
}

function listed(arrays: readonly AnyArray[]): NativeStoreArrays {
  return arrays.length === 0 ? null : storagesOf(arrays);
}

function isOptions(given: unknown): given is StoreCallOptions {
  return (
    typeof given === 'object' &&
    given !== null &&
    !Array.isArray(given) &&
    !(given instanceof DeviceBuffer) &&
    !ArrayBuffer.isView(given)
  );
}
