// The public key-value store. backends.ts decides what is merged where.
import { withCallStack } from '../call-stack.js';
import type { NativeKVStore } from '../native/kvstore.js';
import { native } from '../native/load.js';
import type { Optimizer } from '../optimizers/optimizer.js';
import type { ArrayOf, DType } from '../tensor/dtype.js';
import type { ArrayRules } from './arrays.js';
import { openBackend } from './backends.js';
import { isOptions } from './calls.js';
import type { ArraysFor, KeyCall, Keys, StoreCallOptions } from './calls.js';
import { parseDevices } from './devices.js';
import { forget } from './distributed.js';
import { broadcastNames, initNames, readInit, type InitOptions, type InitValues } from './init.js';
import type { Key } from './keys.js';
import { StoreOperations } from './operations.js';
import { isKnownCapability, openingOptions, storeNames } from './store-options.js';
import type { GradientCompression, KVStoreOptions, SaveStatesOptions } from './store-options.js';
import type { ShardPlace } from '../native/dist.js';
import { nativeOrder } from './pending.js';
import { registered, registerStore, type RegisteredStores, type StoreFactory } from './registry.js';
import { reportOf, type StoreReport } from './report.js';
import type { NestedRowIds } from './rows.js';
import { ServerCalls } from './server-calls.js';
import { StoreSettings } from './settings.js';
import { allocSharedArray } from './shared-arrays.js';
import { bringsRows, SparseCalls } from './sparse-calls.js';
import type { PullOptions, PullTargets, PushValues } from './sparse-calls.js';
import { hasServers, isDistributed, parseStoreType } from './types.js';
import type { StoreBackend, StoreKind, StoreType, StoreTypeName } from './types.js';
import type { Updater } from './updater.js';
import { assertMade, optionsObject } from '../checks.js';

/**
 * A key-value store with MXNet's semantics: devices push arrays, which are summed, and pull the result.
 *
 * Operations on one key, or on one array, run in the order of their calls, so that only the last need be awaited.
 * Operations on different keys run in parallel, higher priority first. A push without an optimizer **assigns** the sum
 * of that push; with one, the optimizer updates the stored value. Methods that return a promise reject rather than
 * throw. Until the promise settles, do not write the given arrays or read those being filled. The store keeps none of
 * them.
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
  /** The requested type, in lower case. */
  readonly type: StoreTypeName;
  /** This worker's number; 0 if there is only one. */
  readonly rank: number;
  /** Number of processes that share the store; 1 for a local store. */
  readonly numWorkers: number;
  /** Number of servers; 0 if values are on the workers. */
  readonly numServers: number;
  /** `cpu:0`, `gpu:1` and so on: a push has an array for each. */
  readonly devices: readonly string[];
  readonly #native: NativeKVStore;
  readonly #kind: StoreKind;
  readonly #rules: ArrayRules;
  readonly #operations: StoreOperations;
  readonly #sparse: SparseCalls;
  readonly #servers: ServerCalls;
  readonly #settings: StoreSettings;
  #left = false;
  #closing: Promise<void> | undefined;

  private constructor(type: StoreType, backend: StoreBackend, rules: ArrayRules) {
    const opened = (backend as Partial<StoreBackend> | null | undefined)?.native;
    assertMade(opened, native().NativeKVStore, 'KVStore', 'KVStore.create(…)');
    this.type = type.name;
    this.#kind = type.kind;
    this.rank = backend.rank;
    this.numWorkers = backend.numWorkers;
    this.numServers = backend.numServers;
    this.devices = rules.devices.names;
    this.#native = backend.native;
    this.#rules = rules;
    const order = nativeOrder(type.kind, rules.devices.gpus !== null);
    const servers = hasServers(type.kind);
    this.#operations = new StoreOperations(backend.native, rules, order, servers);
    this.#sparse = new SparseCalls(backend.native, this.#operations, rules);
    this.#servers = new ServerCalls(backend.native, this.#operations.pending, backend.rank);
    const asked = servers ? this.#servers : undefined;
    this.#settings = new StoreSettings(backend, this.#operations, asked);
  }

  /**
   * Opens a store.
   *
   * @param type - `'local'` sums on the host. `'device'`, the default, sums on the devices, supports gradient
   *   compression, and on distinct GPUs uses NCCL if it is installed. `'nccl'` requires GPUs and NCCL. On CPU devices
   *   local and device both use host memory and are equally fast. MXNet's other spellings are accepted, in any case;
   *   for names known only at run time see {@link isStoreType}.
   * @throws GradlinkError ERR_UNSUPPORTED or ERR_BACKEND_UNAVAILABLE for a type or device that this build lacks.
   */
  static create(type?: StoreTypeName, options?: KVStoreOptions): Promise<KVStore>;
  static create<Name extends keyof RegisteredStores>(
    type: Name,
    options?: KVStoreOptions,
  ): Promise<RegisteredStores[Name]>;
  static create<T extends string>(
    type: Lowercase<T> extends StoreTypeName ? T : StoreTypeName,
    options?: KVStoreOptions,
  ): Promise<KVStore>;
  static async create(type = 'device', options?: KVStoreOptions): Promise<unknown> {
    const own = registered(type);
    if (own !== undefined) return own(options ?? {});
    const parsed = parseStoreType(type);
    const given = optionsObject(options, storeNames, 'KVStore.create');
    const devices = parseDevices(given.devices);
    const chosen = openingOptions(given, parsed, devices);
    const backend = await withCallStack(() => openBackend(parsed, devices, chosen));
    const limit = given.devices === undefined ? Infinity : devices.names.length;
    return new KVStore(parsed, backend, { devices, limit });
  }

  /**
   * Registers a custom store for {@link create}, like MXNet's `KVStoreBase.register`: create resolves to the factory's
   * result. Names ignore case. Declare the result's type in {@link RegisteredStores}.
   *
   * @throws TypeError if the name is taken.
   */
  static register(name: string, factory: StoreFactory): void {
    registerStore(name, factory);
  }

  /**
   * Creates keys with an initial value (copied) that fixes type and length. The first key's kind, int or string,
   * applies to all keys of the store.
   */
  async init<K extends Keys>(keys: K, values: InitValues<K>, options?: InitOptions): Promise<void> {
    this.#operations.pending.assertOpen('init');
    const given = optionsObject(options, initNames, 'init');
    const entries = readInit(this.#operations.keys, keys, values, given, this.#rules.devices);
    const calls = entries.map(({ key, value, dtype, rowLength }): KeyCall => {
      const id = this.#native.define(String(key), dtype, value.length, rowLength);
      const info = { key, id, dtype, count: value.length, rowLength };
      this.#operations.keys.add(info);
      return { info, inputs: [value], outputs: [] };
    });
    this.#settings.tellHostSteps();
    await this.#operations.submit('init', calls, 0);
  }

  /**
   * Sums the devices' arrays, and assigns the sum or passes it to the optimizer or updater. With {@link RowSparse}
   * arrays, equal rows add up; missing rows count as 0, or are skipped by a lazy optimizer.
   */
  push<K extends Keys>(keys: K, values: PushValues<K>, options?: StoreCallOptions): Promise<void> {
    const again = this.#operations.again('push', keys, values, undefined, options);
    if (again !== undefined) return again;
    if (bringsRows(keys, values)) return this.#sparse.push(keys, values, options);
    return this.#operations.call('push', keys, values, undefined, options);
  }

  /** Copies the stored value to all outputs. */
  pull<K extends Keys>(keys: K, outs: PullTargets<K>, options?: PullOptions): Promise<void> {
    if (options?.ignoreSparse === undefined) {
      const again = this.#operations.again('pull', keys, undefined, outs, options);
      if (again !== undefined) return again;
    }
    const wantsRows = options?.ignoreSparse !== undefined || bringsRows(keys, outs);
    if (wantsRows) return this.#sparse.pull(keys, outs, options);
    return this.#operations.call('pull', keys, undefined, outs, options);
  }

  /** A push and a pull in one pass over memory. Without `outs`, the result replaces the values. */
  pushPull<K extends Keys>(
    keys: K,
    values: ArraysFor<K>,
    outs?: ArraysFor<K> | StoreCallOptions,
    options?: StoreCallOptions,
  ): Promise<void> {
    const given = isOptions(outs) ? { outs: undefined, options: outs } : { outs, options };
    return this.#operations.call('pushPull', keys, values, given.outs ?? values, given.options);
  }

  /** {@link init} and {@link pull} in one: copies the initial value to all outputs. */
  async broadcast<K extends Keys>(
    keys: K,
    values: InitValues<K>,
    outs: ArraysFor<K>,
    options?: InitOptions & StoreCallOptions,
  ): Promise<void> {
    const { priority, ...ofInit } = optionsObject(options, broadcastNames, 'broadcast');
    const initialised = this.init(keys, values, ofInit);
    // Queued behind the init; if the init fails there is nothing to pull.
    const pulled = this.pull(keys, outs, { priority });
    const [init, pull] = await Promise.allSettled([initialised, pulled]);
    if (init.status === 'rejected') throw init.reason;
    if (pull.status === 'rejected') throw pull.reason;
  }

  /**
   * Copies some rows of the stored value and sets the other rows of the output to 0.
   *
   * @param outs - of the value's length; or {@link RowSparse} arrays, which then hold just these rows, sorted and
   *   unique, in new memory.
   * @param rowIds - rows in any order and shape, with repeats: one list for all outputs, or one each. A row's length is
   *   the product of init's shape without its first number (1 without a shape).
   */
  rowSparsePull(
    key: Key | readonly Key[],
    outs: PullTargets<Key> | PullTargets<readonly Key[]>,
    rowIds: NestedRowIds | readonly NestedRowIds[],
    options?: StoreCallOptions,
  ): Promise<void> {
    return this.#sparse.rowSparsePull(key, outs, rowIds, options);
  }

  /**
   * From the next push on, updates stored values with this optimizer in native code; null: pushes assign again. The
   * optimizer is copied, so later changes to the object have no effect (see {@link setLearningRate}). States are reset.
   *
   * With servers only worker 0's call counts, and it resolves when the servers have the optimizer. Other workers' calls
   * resolve after worker 0's.
   */
  setOptimizer(optimizer: Optimizer | null): Promise<void> {
    return this.#settings.setOptimizer(optimizer);
  }

  /**
   * Changes the optimizer's rate from the next push on, keeping its states.
   *
   * @throws TypeError without an optimizer, or if a schedule sets the rate.
   */
  setLearningRate(learningRate: number): Promise<void> {
    return this.#settings.setLearningRate(learningRate);
  }

  /**
   * As {@link setOptimizer} with a JavaScript function; an error it throws rejects the push. It runs where the values
   * are: in this process, or for an `allreduce` store on every worker, which all set it.
   *
   * @throws GradlinkError ERR_UNSUPPORTED with servers, which take theirs from `serveJob({ updater })`.
   */
  setUpdater(updater: Updater | null): Promise<void> {
    return this.#settings.setUpdater(updater);
  }

  /**
   * Compresses each device's pushes, with error feedback per key and device. Only float32 keys are compressed. Applies
   * from the next push on and cannot be changed; waits for earlier calls. With servers all workers set the same.
   *
   * @throws GradlinkError ERR_UNSUPPORTED on a `local` store.
   */
  setGradientCompression(compression: GradientCompression): Promise<void> {
    return this.#settings.setGradientCompression(compression);
  }

  /** Writes the optimizer's states to a file atomically, as they are after all earlier operations. */
  saveOptimizerStates(file: string, options?: SaveStatesOptions): Promise<void> {
    return this.#settings.saveOptimizerStates(file, options);
  }

  /**
   * Restores states bit for bit. The keys must be initialised; an invalid file changes nothing.
   *
   * @throws TypeError for a file without states, a damaged one, or one of another optimizer or other keys.
   */
  loadOptimizerStates(file: string): Promise<void> {
    return this.#settings.loadOptimizerStates(file);
  }

  /** Resolves when all earlier operations are done, on all workers. */
  async barrier(): Promise<void> {
    this.#operations.pending.assertOpen('barrier');
    const { pending } = this.#operations;
    const earlier = pending.earlierSettled();
    await pending.run('barrier', [], () => this.#native.barrier());
    // Settle the earlier operations' promises first.
    await earlier;
  }

  /** Whether the store has a capability; `'optimizer'` (runs optimizers itself) is the only one. */
  isCapable(capability: 'optimizer'): boolean {
    return isKnownCapability(capability);
  }

  /**
   * After all earlier operations, tells the other workers not to wait for this one any more, because its data is used
   * up. It may still pull. No effect in a store with one worker.
   */
  async leave(): Promise<void> {
    this.#operations.pending.assertOpen('leave');
    if (!isDistributed(this.#kind)) return;
    this.#left = true;
    await this.#operations.pending.run('leave', [], () => this.#native.leave());
  }

  /**
   * Passes a number (0 when absent) and a text to the handler of every server; `gradlink serve` prints them. Resolves
   * when all have run.
   *
   * @throws GradlinkError ERR_UNSUPPORTED without servers.
   */
  sendCommandToServers(body: string): Promise<void>;
  sendCommandToServers(head: number, body: string): Promise<void>;
  sendCommandToServers(head: number | string, body?: string): Promise<void> {
    return this.#servers.command(head, body);
  }

  /**
   * Makes every server write a Chrome trace of its work for this store (receive, merge, update, answer; with key,
   * worker, bytes). Server 1 writes `profile.json` to `profile.server-1.json` on its host; relative paths start at its
   * working directory. Null ends the trace, as does the end of the store. One worker's call is enough. Resolves when
   * all servers have started; if one fails, none continues.
   *
   * @throws GradlinkError ERR_SYSTEM if a server cannot write the file, or already writes another; ERR_UNSUPPORTED
   *   without servers.
   */
  setServerProfiler(file: string | null): Promise<void> {
    return this.#servers.profile(file);
  }

  /**
   * A zeroed array for `push` and `pull`. With servers it is in memory that those of this host read, so a long push is
   * not staged and resolves once they have read it. Otherwise a plain array. Freed by garbage collection, also after
   * `close()`.
   */
  allocShared<K extends DType>(dtype: K, count: number): ArrayOf[K] {
    this.#operations.pending.assertOpen('allocShared');
    const shared = hasServers(this.#kind) && this.#rules.devices.gpus === null;
    return allocSharedArray(shared ? this.#native : null, dtype, count);
  }

  /** Number of workers and servers known to have died; 0 without servers. */
  numDeadNodes(): number {
    this.#operations.pending.assertOpen('numDeadNodes');
    return hasServers(this.#kind) ? this.#native.deadNodes() : 0;
  }

  /** The server of each shard, in the keys' init order; throws ERR_UNSUPPORTED without servers. */
  placement(): ShardPlace[] {
    this.#operations.pending.assertOpen('placement');
    return this.#native.placement();
  }

  /**
   * Bytes moved and time spent by this worker and the servers.
   *
   * @throws GradlinkError ERR_UNSUPPORTED for a store of one process.
   */
  report(): Promise<StoreReport> {
    return withCallStack(() => reportOf(this.#native, this.rank, hasServers(this.#kind)));
  }

  /** Waits for pending operations, then frees the values. Idempotent; later operations fail with ERR_CLOSED. */
  close(): Promise<void> {
    return (this.#closing ??= withCallStack(() => this.#close()));
  }

  /** As `close()`, at the end of an `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { pending } = this.#operations;
    pending.close();
    if (isDistributed(this.#kind)) {
      await pending.settled();
      // A worker that has left an all-reduce still takes part in the others' sums until they close too.
      if (this.#left && !hasServers(this.#kind)) await this.#native.barrier();
    } else {
      await pending.inTurn(() => undefined);
      await this.#native.barrier();
    }
    await this.#native.close();
    forget(this.#native);
  }
}
