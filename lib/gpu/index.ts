export { devices } from './devices.js';
export type { GpuHealth, GpuInfo, GpuLink } from './devices.js';
export { pinned } from './pinned.js';
export { DeviceBuffer } from '../tensor/device-buffer.js';
export type { HostArray } from '../tensor/device-buffer.js';
export type { Element } from '../tensor/element.js';
