// Runs validated calls on the native store: leases, repeated calls, updater errors.
import { nativeStoreOps } from '../native/kvstore.js';
import type { NativeKVStore, NativeStoreArrays } from '../native/kvstore.js';
import type { AnyArray } from '../tensor/any-array.js';
import { Answers } from './answers.js';
import { storagesOf } from './arrays.js';
import type { ArrayRules } from './arrays.js';
import { priorityOf, readCall } from './calls.js';
import type { KeyCall, StoreCallOptions } from './calls.js';
import { KeyTable } from './keys.js';
import { PendingOperations } from './pending.js';
import type { NativeOrder } from './pending.js';
import { RepeatedCalls } from './repeated.js';
import type { RepeatedCall } from './repeated.js';
import type { UpdaterCalls } from './updater.js';

export class StoreOperations {
  readonly keys = new KeyTable();
  readonly pending: PendingOperations;
  /** The JavaScript updater, if any. */
  updater: UpdaterCalls | undefined;
  readonly #native: NativeKVStore;
  readonly #rules: ArrayRules;
  /** Only for stores on GPUs. */
  readonly #repeated: RepeatedCalls | undefined;
  /** Only for stores with servers. */
  readonly #answers: Answers | undefined;

  constructor(native: NativeKVStore, rules: ArrayRules, orders: NativeOrder, servers: boolean) {
    this.#native = native;
    this.#rules = rules;
    this.pending = new PendingOperations(orders);
    this.#repeated = rules.devices.gpus === null ? undefined : new RepeatedCalls(this.pending);
    this.#answers = servers ? new Answers(native, this.pending) : undefined;
  }

  /** Repeats a remembered call. Rejects rather than throws. */
  again(
    op: 'push' | 'pull' | 'pushPull',
    keys: unknown,
    values: unknown,
    outs: unknown,
    options: StoreCallOptions | undefined,
  ): Promise<void> | undefined {
    const known = this.#repeated?.find(op, keys, values, outs);
    if (known === undefined) return undefined;
    try {
      this.pending.assertOpen(op);
      return this.#repeat(op, known, priorityOf(options, op));
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever it is, it came as thrown
      return Promise.reject(error);
    }
  }

  /** Runs a push, pull or pushPull. Rejects rather than throws. */
  call(
    op: 'push' | 'pull' | 'pushPull',
    keys: unknown,
    values: unknown,
    outs: unknown,
    options: StoreCallOptions | undefined,
  ): Promise<void> {
    const again = this.again(op, keys, values, outs, options);
    if (again !== undefined) return again;
    try {
      this.pending.assertOpen(op);
      const priority = priorityOf(options, op);
      const calls = readCall(this.keys, keys, op, values, outs, this.#rules);
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
      return this.submit(op, calls, priority);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever it is, it came as thrown
      return Promise.reject(error);
    }
  }

  submit(
    op: 'init' | 'push' | 'pull' | 'pushPull',
    calls: readonly KeyCall[],
    priority: number,
  ): Promise<void> {
    const [first] = calls;
    if (first === undefined) return Promise.resolve();
    return this.pending.run(op, calls, () => {
      const one = calls.length === 1;
      const started = this.#native.submit(
        nativeStoreOps[op],
        one ? first.info.id : calls.map(({ info }) => info.id),
        one ? listed(first.inputs) : calls.map(({ inputs }) => storagesOf(inputs)),
        one ? listed(first.outputs) : calls.map(({ outputs }) => storagesOf(outputs)),
        priority,
        this.pending.none,
      );
      return this.#rethrowing(
        op,
        calls.map(({ info }) => info.id),
        started,
      );
    });
  }

  /** Any other operation on one key. */
  run(op: string, call: KeyCall, start: () => Promise<void> | undefined): Promise<void> {
    return this.pending.run(op, [call], () => this.#rethrowing(op, [call.info.id], start()));
  }

  #repeat(
    op: 'push' | 'pull' | 'pushPull',
    { native, leases, ids }: RepeatedCall,
    priority: number,
  ): Promise<void> {
    return this.pending.runGroup(leases, () =>
      this.#rethrowing(op, ids, this.#native.submitPrepared(native, priority)),
    );
  }

  /** Rejects a push with its updater's error. */
  #rethrowing(
    op: string,
    ids: readonly number[],
    started: Promise<void> | undefined,
  ): Promise<void> | undefined {
    if (started !== undefined) this.#answers?.lookFor();
    const updater = op === 'push' || op === 'pushPull' ? this.updater : undefined;
    if (started === undefined || updater === undefined) return started;
    return updater.rethrow(ids, started);
  }
}

function listed(arrays: readonly AnyArray[]): NativeStoreArrays {
  return arrays.length === 0 ? null : storagesOf(arrays);
}
