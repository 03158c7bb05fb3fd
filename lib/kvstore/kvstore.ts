// The key-value store as users see it. What is merged where is the backend's business (backends.ts).
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
 * A key-value store with MXNet's meaning: the devices of this process push arrays, which are summed, and pull the
 * result.
 *
 * Operations on one key run in the order of their calls; operations on different keys run side by side, higher
 * priority first; operations on one array too run in the order of their calls, so that none but the last need be
 * awaited. A push without an optimizer **assigns** the sum of that push; with one, the optimizer updates the stored
 * value. Every method that returns a promise rejects rather than throws. Until the promise settles, only the store
 * itself may write arrays that were given or read those being filled; afterwards they are the caller's again: the store
 * never keeps them.
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
  readonly type: StoreTypeName;
  /** This worker; 0 where there is one. */
  readonly rank: number;
  /** Processes that share the store; 1 of a store of this process alone. */
  readonly numWorkers: number;
  /** 0 where values lie on the workers. */
  readonly numServers: number;
  /** `cpu:0`, `gpu:1` and so on: a push brings an array for each. */
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
    this.#settings = new StoreSettings(backend.native, this.#operations, asked);
  }

  /**
   * Opens a store.
   *
   * @param type - `'local'` (sums on the host), `'device'`, the default (sums where the devices are, with gradient
   *   compression; on GPUs with NCCL where it is there and no GPU is named twice), or `'nccl'` (GPUs; NCCL must be
   *   there). On CPU devices local and device both lie in host memory and are equally fast. MXNet's other spellings
   *   are accepted, in upper case too; for a word that is known at run time alone see {@link isStoreType}.
   * @throws GradlinkError ERR_UNSUPPORTED or ERR_BACKEND_UNAVAILABLE for a type or device this build does not have.
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
   * Makes {@link create} know a store of one's own, as MXNet's `KVStoreBase.register`: it resolves to what the factory
   * makes of the options. Upper and lower case are the same. For TypeScript {@link RegisteredStores} says what it makes.
   *
   * @throws TypeError for a name that is taken.
   */
  static register(name: string, factory: StoreFactory): void {
    registerStore(name, factory);
  }

  /**
   * Makes keys, each once, with a first value (copied) that fixes type and length. The kind of the first key, int or
   * string, is that of all keys of the store.
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
    await this.#operations.submit('init', calls, 0);
  }

  /**
   * Sums what the devices bring; the sum is assigned, or given to the optimizer or updater. Of {@link RowSparse} arrays,
   * rows that several bring add up; the others count as 0, or are left alone by an optimizer that updates lazily.
   */
  push<K extends Keys>(keys: K, values: PushValues<K>, options?: StoreCallOptions): Promise<void> {
    const again = this.#operations.again('push', keys, values, undefined, options);
    if (again !== undefined) return again;
    if (bringsRows(keys, values)) return this.#sparse.push(keys, values, options);
    return this.#operations.call('push', keys, values, undefined, options);
  }

  /** Copies the stored value to every output. */
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

  /** {@link init} and {@link pull} in one: gives every output the first value. */
  async broadcast<K extends Keys>(
    keys: K,
    values: InitValues<K>,
    outs: ArraysFor<K>,
    options?: InitOptions & StoreCallOptions,
  ): Promise<void> {
    const { priority, ...ofInit } = optionsObject(options, broadcastNames, 'broadcast');
    const initialised = this.init(keys, values, ofInit);
    // Queued behind the init; if that is refused, there is nothing to pull.
    const pulled = this.pull(keys, outs, { priority });
    const [init, pull] = await Promise.allSettled([initialised, pulled]);
    if (init.status === 'rejected') throw init.reason;
    if (pull.status === 'rejected') throw pull.reason;
  }

  /**
   * Copies some rows of the stored value; the other rows of the output become 0.
   *
   * @param outs - as long as the value; or {@link RowSparse} arrays, which then hold these rows alone, in order, each
   *   once, in new memory.
   * @param rowIds - rows, in any order, repeats allowed, of any shape: one list for all outputs, or a list for each. A
   *   row has the product of all but the first number of the shape given to init (1 element without a shape).
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
   * From the next push on, pushes update the stored values through this optimizer, natively; null: pushes assign
   * again. The optimizer is taken as it is at the call: later changes to the object do not reach the store (see
   * {@link setLearningRate}). States start anew. Takes effect at the call.
   *
   * With servers worker 0's call is enough, and resolves when the servers have the optimizer. Another worker's call brings
   * none: it resolves when worker 0's has.
   */
  setOptimizer(optimizer: Optimizer | null): Promise<void> {
    return this.#settings.setOptimizer(optimizer);
  }

  /**
   * Changes the optimizer's rate from the next push on, keeping its states.
   *
   * @throws TypeError without an optimizer, or where a schedule decides the rate.
   */
  setLearningRate(learningRate: number): Promise<void> {
    return this.#settings.setLearningRate(learningRate);
  }

  /**
   * As {@link setOptimizer}, with a JavaScript function; an error it throws rejects the push. It runs where values are: in
   * this process, in an `allreduce` store on every worker, each of which sets it.
   *
   * @throws GradlinkError ERR_UNSUPPORTED in a store with servers: there servers have it, by `serveJob({ updater })`.
   */
  setUpdater(updater: Updater | null): Promise<void> {
    return this.#settings.setUpdater(updater);
  }

  /**
   * Compresses what each device pushes, with error feedback for each key and device; float32 keys only, others are
   * summed as they are. Once, for good, from the next push on: it waits for what was called before. With servers every
   * worker sets the same.
   *
   * @throws GradlinkError ERR_UNSUPPORTED on a `local` store.
   */
  setGradientCompression(compression: GradientCompression): Promise<void> {
    return this.#settings.setGradientCompression(compression);
  }

  /** Writes the optimizer's states to a file, in one step, as they are after every operation issued before. */
  saveOptimizerStates(file: string, options?: SaveStatesOptions): Promise<void> {
    return this.#settings.saveOptimizerStates(file, options);
  }

  /**
   * Reads states back, bit for bit. The keys must have been initialised; a file that does not fit changes nothing.
   *
   * @throws TypeError for a file that is not of states, is damaged, or belongs to another optimizer or other keys.
   */
  loadOptimizerStates(file: string): Promise<void> {
    return this.#settings.loadOptimizerStates(file);
  }

  /** Resolves when every operation issued before is done, on all workers. */
  async barrier(): Promise<void> {
    this.#operations.pending.assertOpen('barrier');
    const { pending } = this.#operations;
    const earlier = pending.earlierSettled();
    await pending.run('barrier', [], () => this.#native.barrier());
    // The barrier may be told of first.
    await earlier;
  }

  /** Whether the store can do something; `'optimizer'` (run optimizers itself) is what there is to ask. */
  isCapable(capability: 'optimizer'): boolean {
    return isKnownCapability(capability);
  }

  /**
   * The other workers no longer wait for this one, whose batches are used up; it may still pull. After every operation
   * issued before. A store of one worker has nothing to do.
   */
  async leave(): Promise<void> {
    this.#operations.pending.assertOpen('leave');
    if (!isDistributed(this.#kind)) return;
    this.#left = true;
    await this.#operations.pending.run('leave', [], () => this.#native.leave());
  }

  /**
   * Every server hands the text, and the number before it (what it is about; 0 when absent), to its handler; `gradlink
   * serve` prints it. Resolves when all have.
   *
   * @throws GradlinkError ERR_UNSUPPORTED without servers.
   */
  sendCommandToServers(body: string): Promise<void>;
  sendCommandToServers(head: number, body: string): Promise<void>;
  sendCommandToServers(head: number | string, body?: string): Promise<void> {
    return this.#servers.command(head, body);
  }

  /**
   * Every server writes from now on what it does for this store (receive, merge, update, answer; with key, worker, bytes),
   * as a Chrome trace: `profile.json` of server 1 is `profile.server-1.json`, on the server's host; a path that is not
   * absolute begins at its working directory. Null: they write the rest and end, as they do when the store ends. One
   * worker's call is enough. Resolves when all servers have; if one fails, none goes on.
   *
   * @throws GradlinkError ERR_SYSTEM for a file that a server cannot write, or while another is being written;
   *   ERR_UNSUPPORTED without servers.
   */
  setServerProfiler(file: string | null): Promise<void> {
    return this.#servers.profile(file);
  }

  /**
   * A zeroed array for `push` and `pull`. With servers it lies where those of this host read it: a push of a long one is not staged,
   * and resolves when they have. Otherwise a plain array. Freed when it is collected, also after `close()`.
   */
  allocShared<K extends DType>(dtype: K, count: number): ArrayOf[K] {
    this.#operations.pending.assertOpen('allocShared');
    const shared = hasServers(this.#kind) && this.#rules.devices.gpus === null;
    return allocSharedArray(shared ? this.#native : null, dtype, count);
  }

  /** Workers and servers that are known to have died; 0 where there are no servers. */
  numDeadNodes(): number {
    this.#operations.pending.assertOpen('numDeadNodes');
    return hasServers(this.#kind) ? this.#native.deadNodes() : 0;
  }

  /** Which server holds what, key by key in the order of their init; an ERR_UNSUPPORTED without servers. */
  placement(): ShardPlace[] {
    this.#operations.pending.assertOpen('placement');
    return this.#native.placement();
  }

  /**
   * What this worker and the servers have moved, and where their time went.
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
      // Who has left an all-reduce still takes part in the others' sums, until they close too.
      if (this.#left && !hasServers(this.#kind)) await this.#native.barrier();
    } else {
      await pending.inTurn(() => undefined);
      await this.#native.barrier();
    }
    await this.#native.close();
    forget(this.#native);
  }
}
