import { withCallStack } from '../call-stack.js';
import { argumentError } from '../errors.js';
import { native } from '../native/load.js';
import type { NativeDeviceBuffer } from '../native/gpu.js';
import { assertMade, integer, maxInt32 } from '../checks.js';
import {
  allocate,
  dtypeNames,
  dtypeNumber,
  isFloat8,
  parseDeviceDType,
  storageOf,
} from './dtype.js';
import type { ArrayOf, DeviceDType, Float16ArrayLike, NumericArray } from './dtype.js';
import { elementOf } from './element.js';
import type { Element } from './element.js';
import { lease, release } from './leases.js';
import { assertFixedLength, overlap, overlapError } from './memory.js';

/** The TypedArrays for a dtype. */
export type HostArray<K extends DeviceDType> = K extends 'float16'
  ? Uint16Array | Float16ArrayLike
  : ArrayOf[K];

let wrap: (wrapped: NativeDeviceBuffer) => DeviceBuffer;
let unwrap: (buffer: DeviceBuffer) => NativeDeviceBuffer;

/**
 * `length` elements in the memory of one GPU.
 *
 * The memory is freed by {@link dispose} (or `using`), or when the buffer and its slices are garbage collected. Copies
 * resolve when the GPU has done them; until then the arrays are in use, as with collectives.
 */
export class DeviceBuffer<K extends DeviceDType = DeviceDType> implements Disposable {
  /** The GPU's ordinal. */
  readonly device: number;
  /** The element type. */
  readonly dtype: K;
  /** Number of elements. */
  readonly length: number;
  /** Size in bytes. */
  readonly byteLength: number;
  /** The offset of a slice in its allocation. */
  readonly byteOffset: number;
  /** The NCCL registration of a buffer from a communicator's `allocRegistered`; null for others. */
  readonly registration: 'symmetric' | 'local' | null;
  readonly #native: NativeDeviceBuffer;

  static {
    wrap = (wrapped) => new DeviceBuffer(wrapped);
    unwrap = (buffer) => buffer.#native;
  }

  private constructor(wrapped: NativeDeviceBuffer) {
    assertMade(wrapped, native().NativeDeviceBuffer, 'DeviceBuffer', 'DeviceBuffer.alloc(…)');
    this.device = wrapped.device;
    this.dtype = dtypeNames[wrapped.dtype] as K;
    this.length = wrapped.length;
    this.byteLength = wrapped.byteLength;
    this.byteOffset = wrapped.byteOffset;
    this.registration = wrapped.registration;
    this.#native = wrapped;
  }

  /**
   * Allocates `count` elements on the GPU `device`, with undefined content.
   *
   * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or a GPU; ERR_OUT_OF_MEMORY with the free memory.
   * @throws TypeError for a GPU that does not exist.
   */
  static alloc<K extends DeviceDType>(device: number, dtype: K, count: number): DeviceBuffer<K> {
    const ordinal = integer(device, 'device', 0, maxInt32);
    const number = parseDeviceDType(dtype);
    const elements = integer(count, 'count', 0, Number.MAX_SAFE_INTEGER);
    return wrap(native().NativeDeviceBuffer.alloc(ordinal, number, elements)) as DeviceBuffer<K>;
  }

  /** Copies a buffer to another one of the same dtype and length, on the same GPU or between GPUs. */
  static async copyBetween<K extends DeviceDType>(
    from: DeviceBuffer<K>,
    to: DeviceBuffer<NoInfer<K>>,
  ): Promise<void> {
    const source = usable(from, 'from');
    const target = usable(to, 'to');
    if (from.dtype !== to.dtype || from.length !== to.length) {
      const expected = `a DeviceBuffer of ${from.length} ${from.dtype}, as from`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'to', expected, { text: describeBuffer(to) });
    }
    if (overlap(from, to)) throw overlapError('to', 'from');
    await run('copyBetween', from, to, () => target.copyFrom(source));
  }

  /** Whether this buffer, or the one that it is a slice of, was disposed. */
  get disposed(): boolean {
    return this.#native.disposed;
  }

  /** @internal The allocation, the same object for all its slices. */
  get buffer(): object {
    return this.#native.buffer;
  }

  /** Copies a host array of this dtype and length to the GPU; fastest from a {@link pinnedArray}. */
  async copyFrom(from: HostArray<K>): Promise<void> {
    const own = usable(this, 'this');
    const source = hostArray(this, from, 'from');
    await run('copyFrom', source, this, () => own.copyFrom(storageOf(source)));
  }

  /**
   * Copies to a host array of this dtype and length, or to a new one.
   *
   * @returns that array.
   */
  async copyTo(): Promise<ArrayOf[K]>;
  async copyTo<A extends HostArray<K>>(to: A): Promise<A>;
  async copyTo(to?: HostArray<K>): Promise<unknown> {
    const own = usable(this, 'this');
    const target =
      to === undefined
        ? allocate(dtypeNames.indexOf(this.dtype), this.length)
        : hostArray(this, to, 'to');
    await run('copyTo', this, target, () => own.copyTo(storageOf(target)));
    return target;
  }

  /** A view of the elements from `begin` up to `end`. Disposed with its buffer. */
  slice(begin = 0, end = this.length): DeviceBuffer<K> {
    const own = usable(this, 'this');
    const first = integer(begin, 'begin', 0, this.length);
    const last = integer(end, 'end', first, this.length);
    return wrap(own.slice(first, last)) as DeviceBuffer<K>;
  }

  /**
   * Sets all elements: a bigint for 64-bit integers, else a number, which must be an integer in range for integer types
   * and is rounded for float types.
   */
  async fill(value: Element<K>): Promise<void> {
    const own = usable(this, 'this');
    const element = elementOf(this.dtype, value);
    await run('fill', null, this, () => own.fill(element));
  }

  /**
   * Frees the memory, after pending operations that use it. Its slices end too; disposing a slice ends only the slice.
   * Idempotent.
   */
  dispose(): void {
    this.#native.dispose();
  }

  /** As `dispose()`, at the end of a `using`. */
  [Symbol.dispose](): void {
    this.dispose();
  }
}

export function wrapBuffer(wrapped: NativeDeviceBuffer): DeviceBuffer {
  return wrap(wrapped);
}

/** Validates a host array for the buffer. */
function hostArray<K extends DeviceDType>(buffer: DeviceBuffer<K>, given: unknown, name: string) {
  dtypeNumber(given, isFloat8(buffer.dtype) ? 'uint8' : buffer.dtype, name);
  const array = given as NumericArray;
  if (array.length !== buffer.length) {
    const expected = `an array of ${buffer.length} elements, as the DeviceBuffer`;
    throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, { text: `${array.length}` });
  }
  assertFixedLength(array, name);
  return array;
}

async function run(
  op: string,
  reads: NumericArray | DeviceBuffer | null,
  writes: NumericArray | DeviceBuffer,
  start: () => Promise<void>,
): Promise<void> {
  const leases = lease(op, reads, writes);
  try {
    await withCallStack(start);
  } finally {
    release(leases);
  }
}

/** Whether a value is a {@link DeviceBuffer}. */
export function isDeviceBuffer(value: unknown): value is DeviceBuffer {
  return value instanceof DeviceBuffer;
}

/** "a DeviceBuffer of 4 float32 on gpu:0", for messages. */
export function describeBuffer(buffer: DeviceBuffer): string {
  return `a DeviceBuffer of ${buffer.length} ${buffer.dtype} on gpu:${buffer.device}`;
}

/**
 * The native side of a buffer.
 *
 * @throws TypeError unless it is a buffer that was not disposed.
 */
export function usable(value: unknown, name: string): NativeDeviceBuffer {
  if (!isDeviceBuffer(value)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'a DeviceBuffer', value);
  }
  const buffer = unwrap(value);
  if (buffer.disposed) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, 'a DeviceBuffer with memory', {
      text: 'a disposed one',
    });
  }
  return buffer;
}
