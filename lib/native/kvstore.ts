// The native interface of the key-value store: native/binding/store. It validates only what memory safety needs.
import type { StorageArray } from './arrays.js';
import type { NativeBuffer } from './communicator.js';
import type {
  NativeAllreduceOptions,
  NativeDistCalls,
  NativeDistOptions,
  NativePlace,
} from './dist.js';
import type { NativeOptimizerSpec } from './optimizer.js';

/** Numbers of operations for {@link NativeKVStore.submit}. */
export const nativeStoreOps = { init: 0, push: 1, pull: 2, pushPull: 3 } as const;

/** Where values are merged and stored: native/kvstore/local/local_store.h. */
export const nativePlacements = { host: 0, devices: 1 } as const;

/** How a store on GPUs sums: native/kvstore/gpu/gpu_store.h. */
export const nativeGpuMerges = { automatic: 0, nccl: 1, peer: 2, host: 3 } as const;

/** The arrays of one key, or of each key of a list. */
export type NativeStoreArrays =
  readonly NativeBuffer[] | readonly (readonly NativeBuffer[])[] | null;

/** Leaves the new value in `stored`. */
export type NativeUpdater = (key: number, received: StorageArray, stored: StorageArray) => void;

/** A prepared operation on GPU arrays, from {@link NativeKVStore.prepare}. */
export interface NativeStoreCall {
  readonly [storeCall]: never;
}
declare const storeCall: unique symbol;

/**
 * A store. Keys are numbers from {@link define}. Functions that return a promise or undefined return undefined if
 * already done.
 */
export interface NativeKVStore extends NativeDistCalls {
  /** @param name - the key as a string, which names its optimizer state. */
  define(name: string, dtype: number, count: number, rowLength: number): number;
  /**
   * @param keys - one key with flat lists of arrays, or a list of keys with lists of lists.
   * @param here - whether it may run on the caller's thread if small and with nothing else pending.
   */
  submit(
    op: number,
    keys: number | readonly number[],
    inputs: NativeStoreArrays,
    outputs: NativeStoreArrays,
    priority: number,
    here: boolean,
  ): Promise<void> | undefined;
  /**
   * Reads the arguments of submit; the lists must not be changed afterwards. For stores on GPUs, with lists of keys.
   */
  prepare(
    op: number,
    keys: readonly number[],
    inputs: NativeStoreArrays,
    outputs: NativeStoreArrays,
    priority: number,
  ): NativeStoreCall;
  /** @throws TypeError if one of the buffers was disposed */
  submitPrepared(call: NativeStoreCall, priority: number): Promise<void> | undefined;
  /**
   * @param rows - the rows for each output.
   * @param compact - whether the outputs hold only these rows, which are then sorted and unique.
   */
  rowSparsePull(
    key: number,
    outputs: readonly NativeBuffer[],
    rows: readonly Float64Array[],
    priority: number,
    compact: boolean,
    here: boolean,
  ): Promise<void> | undefined;
  /** @param rows - the rows in each input, concatenated */
  pushRows(
    key: number,
    inputs: readonly NativeBuffer[],
    rows: readonly Float64Array[],
    priority: number,
    here: boolean,
  ): Promise<void> | undefined;
  /** Null: pushes assign. */
  setOptimizer(spec: NativeOptimizerSpec | null): void;
  /** Fails without an optimizer or with a schedule. */
  setLearningRate(learningRate: number): Promise<void> | undefined;
  setUpdater(updater: NativeUpdater | null): void;
  setCompression(type: string, threshold: number): void;
  /** Resolves when all earlier operations are done. */
  barrier(): Promise<void> | undefined;
  saveStates(file: string, dumpOptimizer: boolean): Promise<void> | undefined;
  loadStates(file: string): Promise<void> | undefined;
  /** Requires that nothing is pending. Idempotent. Returns a promise if other processes are notified first. */
  close(): Promise<void> | undefined;
}

export interface NativeKVStoreClass {
  readonly prototype: NativeKVStore;
  /** A store of one process on CPU devices, with TypedArrays. */
  new (placement: number, devices: number): NativeKVStore;
  /**
   * A store of one process on GPUs, one ordinal per device, with NativeDeviceBuffers; an init may also have
   * TypedArrays. NCCL errors appear at the first operation.
   */
  onGpus(
    gpus: readonly number[],
    merge: number,
    timeoutMs: number,
    peer: boolean,
    shardOptimizer: boolean | undefined,
  ): NativeKVStore;
  /** A worker's side of a store with servers. */
  openDist(place: NativePlace, options: NativeDistOptions): Promise<NativeKVStore>;
  /** A worker's side of a store without servers. */
  openAllreduce(place: NativePlace, options: NativeAllreduceOptions): Promise<NativeKVStore>;
}

export interface KVStoreNatives {
  readonly NativeKVStore: NativeKVStoreClass;
}
