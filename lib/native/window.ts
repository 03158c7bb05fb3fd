// The native surface of windows: native/binding/window_wrap.cc.
import type { StorageArray } from '../tensor/dtype.js';
import type { NativeCommunicator } from './communicator.js';

/** Numbers of the operations. */
export const nativeWindowOps = { put: 0, accumulate: 1, get: 2, update: 3 } as const;

/** One rank's side of a window; see native/core/window.h. */
export interface NativeWindow {
  /** The rank's array; the memory lives as long as the ArrayBuffer. */
  memory(): ArrayBuffer;
  /**
   * @param array - what is put, or where an update goes; null: the rank's own array
   * @param weights - one for each of `ranks`
   */
  run(
    op: number,
    array: StorageArray | null,
    ranks: Int32Array,
    weights: Float64Array,
    selfWeight: number,
    divisor: number,
    reset: boolean,
    withP: boolean,
    timeoutMs: number,
  ): Promise<void>;
  runSync(
    op: number,
    array: StorageArray | null,
    ranks: Int32Array,
    weights: Float64Array,
    selfWeight: number,
    divisor: number,
    reset: boolean,
    withP: boolean,
    timeoutMs: number,
  ): void;
  /** Unread writes, in the order of the sources. */
  versions(): number[];
  p(): number;
  tryLock(owner: number, other: number): boolean;
  unlock(owner: number, other: number): void;
  /** Collective. */
  free(timeoutMs: number): Promise<void>;
}

export interface NativeWindowClass {
  readonly prototype: NativeWindow;
  /** Collective. */
  open(
    communicator: NativeCommunicator,
    dtype: number,
    data: StorageArray,
    zeroInit: boolean,
    sources: Int32Array,
    destinations: Int32Array,
    timeoutMs: number,
  ): Promise<NativeWindow>;
}

export interface WindowNatives {
  readonly NativeWindow: NativeWindowClass;
}
