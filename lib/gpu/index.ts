// GPUs and their memory.
export { gpuDevices } from './devices.js';
export type { GpuHealth, GpuInfo, GpuLink } from '../native/gpu-info.js';
export { pinnedArray } from './pinned.js';
export type { AnyArray } from '../tensor/any-array.js';
export { DeviceBuffer } from '../tensor/device-buffer.js';
export type { HostArray } from '../tensor/device-buffer.js';
export type { Element } from '../tensor/element.js';
