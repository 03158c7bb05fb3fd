// Arrays on GPUs for tests: made from numbers, read back, disposed of together.
import { gpuDevices } from '../../lib/gpu/devices.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';

/** How many GPUs there are: four on the stand-ins, at least one elsewhere. */
export const gpuCount = gpuDevices().length;

/** Ordinals for `count` devices: all different as far as there are GPUs. */
export const spread = (count: number): number[] =>
  Array.from({ length: count }, (_, i) => i % gpuCount);

/** The names of devices. */
export const named = (gpus: readonly number[]): string[] => gpus.map((gpu) => `gpu:${String(gpu)}`);

const made: DeviceBuffer[] = [];

export async function onGpu(
  gpu: number,
  values: Float32Array | readonly number[],
): Promise<DeviceBuffer<'float32'>> {
  const buffer = DeviceBuffer.alloc(gpu, 'float32', values.length);
  made.push(buffer);
  await buffer.copyFrom(Float32Array.from(values));
  return buffer;
}

/** The same values on each. */
export const onEach = (gpus: readonly number[], values: Float32Array | readonly number[]) =>
  Promise.all(gpus.map((gpu) => onGpu(gpu, values)));

export const numbers = async (buffer: DeviceBuffer<'float32'>): Promise<number[]> => [
  ...(await buffer.copyTo()),
];
export const allNumbers = (buffers: readonly DeviceBuffer<'float32'>[]): Promise<number[][]> =>
  Promise.all(buffers.map(numbers));

/** After each test. */
export function disposeAll(): void {
  for (const buffer of made.splice(0)) buffer.dispose();
}
