// The native interface of windows: native/binding/communicator/window_wrap.cc.
import type { NativeBuffer, NativeCommunicator } from './communicator.js';
import type { NativeDeviceBuffer } from './gpu.js';

/** Numbers of the operations. */
export const nativeWindowOps = { put: 0, accumulate: 1, get: 2, update: 3 } as const;

/** One rank's side of a window; see native/core/window.h. */
export interface NativeWindow {
  /** The rank's array in host memory; free() and the communicator's close() empty the ArrayBuffer. */
  memory(): ArrayBuffer;
  /**
   * @param array - the source of a put or the target of an update; null: the rank's own array
   * @param weights - one for each of `ranks`
   */
  run(
    op: number,
    array: NativeBuffer | null,
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
    array: NativeBuffer | null,
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
  /** Of the communicator: how long calls may take that do not say it themselves. */
  timeoutMs(): number;
  /** @returns -1, or the rank that has the lock */
  tryLock(owner: number, other: number): number;
  unlock(owner: number, other: number): void;
  /** Collective. */
  free(timeoutMs: number): Promise<void>;
}

/** What a held rank's window is made of; `array`: the memory that becomes its array. */
export interface NativeHeldWindow {
  readonly data: NativeBuffer;
  readonly sources: Int32Array;
  readonly destinations: Int32Array;
  readonly array: NativeDeviceBuffer;
}

export interface NativeWindowClass {
  readonly prototype: NativeWindow;
  /**
   * Collective.
   *
   * @param array - where ranks are GPUs: the memory that becomes the window's array; null elsewhere
   */
  open(
    communicator: NativeCommunicator,
    dtype: number,
    data: NativeBuffer,
    zeroInit: boolean,
    sources: Int32Array,
    destinations: Int32Array,
    timeoutMs: number,
    array: NativeDeviceBuffer | null,
  ): Promise<NativeWindow>;
  /** Collective: of each rank of NCCL held here, in their order. */
  openHeld(
    communicator: NativeCommunicator,
    dtype: number,
    windows: readonly NativeHeldWindow[],
    zeroInit: boolean,
    timeoutMs: number,
  ): Promise<NativeWindow[]>;
}

export interface WindowNatives {
  readonly NativeWindow: NativeWindowClass;
}
