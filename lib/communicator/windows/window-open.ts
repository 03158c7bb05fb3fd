// Opens windows.
import { native } from '../../native/load.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { DeviceBuffer, isDeviceBuffer, usable } from '../../tensor/device-buffer.js';
import { arrayOver, elementBytes } from '../../tensor/dtype.js';
import { assertFixedLength, shownElements } from '../../tensor/memory.js';
import { milliseconds } from '../../checks.js';
import type { Executor } from '../executor.js';
import type { StaticTopology } from '../calls/neighbor-call.js';
import { oneType } from '../calls/collective-call.js';
import { assertPlace } from '../calls/place.js';
import type { NewArray, WindowOptions, Group } from '../calls/types.js';
import { NeighborWindow } from './window.js';

/** See {@link Communicator.createWindow}. */
export async function openWindow<A extends AnyArray>(
  executor: Executor,
  by: StaticTopology,
  data: A,
  given: WindowOptions & { readonly dtype?: string | undefined },
  onFree: () => void = () => undefined,
): Promise<NeighborWindow<NewArray<A> & AnyArray>> {
  const { zeroInit = false, associatedP = false } = given;
  const dtype = dtypeNumber(data, given.dtype, 'data');
  assertPlace(executor, 0, data, 'data');
  assertFixedLength(data, 'data');
  if (!isDeviceBuffer(data)) shownElements(data.length, 'the length of data', elementBytes[dtype]!);
  const storage = storageOf(data);
  const { rank } = executor;
  const sources = Int32Array.from(by.topology.sources(rank));
  const destinations = Int32Array.from(by.topology.destinations(rank));
  const calls = milliseconds(given.timeoutMs, 'timeoutMs', -1);
  // The engine allocates host memory, so that peers can reach it; GPU memory needs nothing special.
  const buffer = isDeviceBuffer(data)
    ? DeviceBuffer.alloc(data.device, data.dtype, data.length)
    : null;
  const own = buffer === null ? null : usable(buffer, 'array');
  const start = () =>
    native().NativeWindow.open(
      executor.native,
      dtype,
      storage,
      zeroInit,
      sources,
      destinations,
      calls,
      own,
    );
  const opened = await executor.submit(
    { op: 'createWindow', reads: storage, writes: null, start },
    undefined,
  );
  const array = buffer ?? arrayOver(dtype, opened.memory(), data.length);
  const timeoutMs = calls < 0 ? opened.timeoutMs() : calls;
  return new NeighborWindow({
    executor,
    group: executor,
    native: opened,
    array,
    dtype,
    by,
    withP: associatedP,
    timeoutMs,
    onFree,
  });
}

/** {@link openWindow} for all GPU ranks of this process in one call. */
export async function openWindows(
  executor: Executor,
  by: StaticTopology,
  views: readonly Group[],
  datas: readonly DeviceBuffer[],
  given: Omit<WindowOptions, 'name'>,
): Promise<NeighborWindow<DeviceBuffer>[]> {
  const { zeroInit = false, associatedP = false } = given;
  const typed = datas.map((data, held) => {
    const dtype = dtypeNumber(data, undefined, 'data');
    assertPlace(executor, held, data, 'data');
    return { dtype };
  });
  const dtype = oneType(executor.heldRanks, typed);
  const storages = datas.map((data) => storageOf(data));
  const calls = milliseconds(given.timeoutMs, 'timeoutMs', -1);
  const arrays = datas.map((data) => DeviceBuffer.alloc(data.device, data.dtype, data.length));
  const windows = views.map(({ rank }, held) => ({
    data: storages[held]!,
    sources: Int32Array.from(by.topology.sources(rank)),
    destinations: Int32Array.from(by.topology.destinations(rank)),
    array: usable(arrays[held]!, 'array'),
  }));
  const start = () =>
    native().NativeWindow.openHeld(executor.native, dtype, windows, zeroInit, calls);
  const opened = await executor.submit(
    { op: 'createWindow', reads: storages, writes: null, start },
    undefined,
  );
  return opened.map(
    (one, held) =>
      new NeighborWindow<DeviceBuffer>({
        executor,
        group: views[held]!,
        native: one,
        array: arrays[held]!,
        dtype,
        by,
        withP: associatedP,
        timeoutMs: calls < 0 ? one.timeoutMs() : calls,
        onFree: () => undefined,
      }),
  );
}
