// The devices of a store's arrays.
import { argumentError } from '../errors.js';

/**
 * A number of CPU devices, or device names: `4`, `['cpu:0', 'cpu:1']` or `['gpu:0', 'gpu:1']`. A repeated GPU counts as
 * several devices.
 */
export type DeviceList = number | readonly string[];

/** The devices of a store: only CPU devices, or only GPUs. */
export interface StoreDevices {
  readonly names: readonly string[];
  /** One ordinal per device; null for CPU devices. */
  readonly gpus: readonly number[] | null;
}

const maxDevices = 4096;

/**
 * Parses devices; `cpu:0` by default.
 *
 * @throws TypeError or RangeError for invalid devices, repeated CPU devices, and a mix of both kinds.
 */
export function parseDevices(devices: DeviceList | undefined): StoreDevices {
  if (devices === undefined) return devicesOnHost(1);
  const expected = `a number of CPU devices from 1 to ${maxDevices}, or names such as ['cpu:0', 'cpu:1'] or ['gpu:0', 'gpu:1']`;
  if (typeof devices === 'number') {
    if (!Number.isInteger(devices) || devices < 1 || devices > maxDevices) {
      throw argumentError('ERR_OUT_OF_RANGE', 'devices', expected, devices);
    }
    return devicesOnHost(devices);
  }
  if (!Array.isArray(devices) || devices.length === 0 || devices.length > maxDevices) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'devices', expected, devices);
  }
  const parsed = Array.from(devices, parseDevice);
  const names = Object.freeze(parsed.map(({ kind, index }) => `${kind}:${index}`));
  const gpus = parsed.filter(({ kind }) => kind === 'gpu').map(({ index }) => index);
  if (gpus.length === names.length) return { names, gpus };
  if (gpus.length > 0) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'devices', 'CPU devices only, or GPUs only', {
      text: names.join(', '),
    });
  }
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'devices', 'each CPU device once', {
      text: `${repeated} twice`,
    });
  }
  return { names, gpus: null };
}

export function devicesOnHost(count: number): StoreDevices {
  const names = Array.from({ length: count }, (_, index) => `cpu:${index}`);
  return { names: Object.freeze(names), gpus: null };
}

export function devicesOnGpus(gpus: readonly number[]): StoreDevices {
  return { names: Object.freeze(gpus.map((gpu) => `gpu:${gpu}`)), gpus };
}

function parseDevice(device: unknown): { kind: string; index: number } {
  const [, kind, index] =
    (typeof device === 'string' ? /^(cpu|gpu):(\d{1,9})$/i.exec(device) : null) ?? [];
  if (kind === undefined || index === undefined) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'devices',
      "'cpu:' or 'gpu:' and a number",
      device,
    );
  }
  return { kind: kind.toLowerCase(), index: Number(index) };
}
