// The native surface of the key-value store: native/binding/store. No meaning is checked there, only what
// memory safety needs.
import type { StorageArray } from './arrays.js';
import type { NativeBuffer } from './communicator.js';
import type {
  NativeAllreduceOptions,
  NativeDistCalls,
  NativeDistOptions,
  NativePlace,
} from './dist.js';
import type { NativeOptimizerSpec } from './optimizer.js';

/** Numbers of the operations of {@link NativeKVStore.submit}. */
export const nativeStoreOps = { init: 0, push: 1, pull: 2, pushPull: 3 } as const;

/** Where values are merged and kept: native/kvstore/local/local_store.h. */
export const nativePlacements = { host: 0, devices: 1 } as const;

/** How a store on GPUs sums: native/kvstore/gpu/gpu_store.h. */
export const nativeGpuMerges = { automatic: 0, nccl: 1, peer: 2, host: 3 } as const;

/** The arrays of one key, or, for a list of keys, of each. */
export type NativeStoreArrays =
  readonly NativeBuffer[] | readonly (readonly NativeBuffer[])[] | null;

/** What an updater is called with; what it leaves in `stored` becomes the value. */
export type NativeUpdater = (key: number, received: StorageArray, stored: StorageArray) => void;

/** Operations on the arrays of GPUs that {@link NativeKVStore.prepare} has read. */
export interface NativeStoreCall {
  /** Nothing else is one. */
  readonly [storeCall]: never;
}
declare const storeCall: unique symbol;

/**
 * One store. Keys are the numbers that {@link define} gives. What returns a promise or undefined returns undefined when
 * it was done at once.
 */
export interface NativeKVStore extends NativeDistCalls {
  /** @param name - the string key, or the int key in decimal: the name of its optimizer state. */
  define(name: string, dtype: number, count: number, rowLength: number): number;
  /**
   * @param keys - one key with flat lists of arrays, or a list of keys with lists of lists.
   * @param here - whether it may run on the caller's thread if it is small and nothing else is pending.
   */
  submit(
    op: number,
    keys: number | readonly number[],
    inputs: NativeStoreArrays,
    outputs: NativeStoreArrays,
    priority: number,
    here: boolean,
  ): Promise<void> | undefined;
  /** Reads what submit would submit; nobody may change the lists afterwards. For stores on GPUs, with lists of keys. */
  prepare(
    op: number,
    keys: readonly number[],
    inputs: NativeStoreArrays,
    outputs: NativeStoreArrays,
    priority: number,
  ): NativeStoreCall;
  /** @throws TypeError where one of the buffers was disposed of. */
  submitPrepared(call: NativeStoreCall, priority: number): Promise<void> | undefined;
  /**
   * @param rows - the rows wanted, for each output.
   * @param compact - whether the outputs have room for these rows alone, which are sorted then, each once.
   */
  rowSparsePull(
    key: number,
    outputs: readonly NativeBuffer[],
    rows: readonly Float64Array[],
    priority: number,
    compact: boolean,
    here: boolean,
  ): Promise<void> | undefined;
  /** @param rows - which rows each input holds, one after another. */
  pushRows(
    key: number,
    inputs: readonly NativeBuffer[],
    rows: readonly Float64Array[],
    priority: number,
    here: boolean,
  ): Promise<void> | undefined;
  /** Null: pushes assign. */
  setOptimizer(spec: NativeOptimizerSpec | null): void;
  /** Fails where there is no optimizer, or a schedule decides. */
  setLearningRate(learningRate: number): Promise<void> | undefined;
  setUpdater(updater: NativeUpdater | null): void;
  setCompression(type: string, threshold: number): void;
  /** Resolves when everything submitted before is done. */
  barrier(): Promise<void> | undefined;
  saveStates(file: string, dumpOptimizer: boolean): Promise<void> | undefined;
  loadStates(file: string): Promise<void> | undefined;
  /** Nothing may be pending. Idempotent. A promise where other processes are told first. */
  close(): Promise<void> | undefined;
}

export interface NativeKVStoreClass {
  readonly prototype: NativeKVStore;
  /** The store of one process on CPU devices; its arrays are TypedArrays. */
  new (placement: number, devices: number): NativeKVStore;
  /**
   * The store of one process on GPUs, one ordinal a device; its arrays are NativeDeviceBuffers, an init's may be a
   * TypedArray too. What opening NCCL fails with comes with the first operation.
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
