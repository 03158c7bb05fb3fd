// Copies between the host and a GPU, and what stays inside it: each beside the driver's own copy in the same run.
import { median } from 'simple-statistics';

import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import {
  nativeGpuLoops,
  nativeHostMemory,
  type NativeGpuCopiesOptions,
} from '../../lib/native/gpu-measure.js';
import { native } from '../../lib/native/load.js';
import { pinnedArray } from '../../lib/gpu/index.js';
import { hostLimit, memoryLimit } from '../../lib/measure/machine/gpu-rates.js';
import type { Machine } from '../../lib/measure/machine/gpus.js';
import type { Reached } from './target.js';

/** How much is copied, and how often. */
export interface CopyOptions {
  readonly machine: Machine;
  readonly gpu: number;
  /** float32 elements of an array. */
  readonly count: number;
  readonly loops: number;
  readonly samples: number;
}

const floatBytes = Float32Array.BYTES_PER_ELEMENT;
const timeoutMs = 60_000;

async function copied(
  { count }: CopyOptions,
  copy: NativeGpuCopiesOptions['copies'][number],
  times: Pick<NativeGpuCopiesOptions, 'warmup' | 'loops' | 'samples'>,
): Promise<Float64Array> {
  const { seconds, wrong } = await native().gpuCopies({
    ...times,
    copies: [copy],
    measured: 1,
    bytes: count * floatBytes,
    verify: true,
    peerAccess: true,
    affinity: true,
    health: false,
    hostTimes: false,
    timeoutMs,
  });
  if (wrong > 0) throw new Error(`${wrong} elements of a plain copy were wrong`);
  return seconds[0] ?? new Float64Array();
}

/** Seconds of the best of five copies by the driver's command alone: what ours are held against. */
async function plainSeconds(options: CopyOptions, from: number, to: number): Promise<number> {
  const copy = { from, to, by: options.gpu, kernel: false };
  return Math.min(...(await copied(options, copy, { warmup: 1, loops: 1, samples: 5 })));
}

async function time(samples: number, copy: () => Promise<unknown>): Promise<number[]> {
  const seconds: number[] = [];
  await copy();
  for (let i = 0; i < samples; i += 1) {
    const start = performance.now();
    await copy();
    seconds.push((performance.now() - start) / 1e3);
  }
  return seconds;
}

/** Between page-locked memory of the host and a GPU. */
export async function hostCopies(options: CopyOptions): Promise<Reached[]> {
  const { machine, gpu, count, samples } = options;
  const bytes = count * floatBytes;
  const host = pinnedArray('float32', count).fill(1);
  const buffer = DeviceBuffer.alloc(gpu, 'float32', count);
  try {
    const toDevice = await plainSeconds(options, nativeHostMemory, gpu);
    const toHost = await plainSeconds(options, gpu, nativeHostMemory);
    const link = hostLimit(machine, gpu);
    const there = await time(samples, () => buffer.copyFrom(host));
    const back = await time(samples, () => buffer.copyTo(host));
    const best = (seconds: number): NonNullable<Reached['limit']> => ({
      bytesPerSecond: bytes / seconds,
      basis: 'the best of five plain driver copies',
    });
    const ours = { bytes, target: 0.95 };
    return [
      { name: 'plain copy, host to device', bytes, seconds: [toDevice], limit: link },
      { name: 'plain copy, device to host', bytes, seconds: [toHost], limit: link },
      { ...ours, name: 'copyFrom(pinned)', seconds: there, limit: best(toDevice) },
      { ...ours, name: 'copyTo(pinned)', seconds: back, limit: best(toHost) },
    ];
  } finally {
    buffer.dispose();
  }
}

function loop(
  { gpu, count, loops, samples }: CopyOptions,
  name: keyof typeof nativeGpuLoops,
  arrays: number,
): ReturnType<ReturnType<typeof native>['gpuLoop']> {
  return native().gpuLoop({
    loop: nativeGpuLoops[name],
    gpu,
    arrays,
    warmup: 2,
    loops,
    samples,
    timeoutMs,
    count: name === 'copy' ? count : count / 2,
  });
}

/** Copies, sums and an optimizer's step, all in the memory of a GPU: bytes are those read and those written. */
export async function insideGpu(options: CopyOptions): Promise<Reached[]> {
  const { machine, gpu, count, loops, samples } = options;
  const plain = await loop(options, 'copy', 1);
  const limit = {
    bytesPerSecond: plain.bytes / median(Array.from(plain.seconds)),
    basis: 'the plain device-to-device copy of this run',
  };
  const target = 0.9;
  const copy = { from: gpu, to: gpu, by: gpu, kernel: true };
  const local = await copied(options, copy, { warmup: 4, loops, samples });
  const reached: Reached[] = [
    {
      ...plain,
      name: 'plain copy, device to device (read + written)',
      limit: memoryLimit(machine, gpu),
    },
    {
      name: 'local copy by the multiprocessors',
      bytes: 2 * count * floatBytes,
      seconds: local,
      limit,
      target,
    },
  ];
  for (const arrays of [2, 4, 8]) {
    const sum = await loop(options, 'sum', arrays);
    reached.push({ ...sum, name: `sum of ${arrays} arrays`, limit, target });
  }
  const step = await loop(options, 'sgdMomentum', 1);
  return [...reached, { ...step, name: 'optimizer step, sgd with momentum', limit }];
}
