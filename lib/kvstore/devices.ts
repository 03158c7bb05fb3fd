// Which devices a store's arrays belong to.
import { argumentError, GradlinkError } from '../errors.js';

/** A number of CPU devices, or their names: `4`, or `['cpu:0', 'cpu:1']`. */
export type DeviceList = number | readonly string[];

const maxDevices = 4096;

/**
 * The names of the devices; `['cpu:0']` when none are given.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE for a GPU: this build has CPU devices.
 */
export function parseDevices(devices: DeviceList | undefined): readonly string[] {
  if (devices === undefined) return Object.freeze(['cpu:0']);
  const expected = `a number of CPU devices from 1 to ${maxDevices}, or names such as ['cpu:0', 'cpu:1']`;
  if (typeof devices === 'number') {
    if (!Number.isInteger(devices) || devices < 1 || devices > maxDevices) {
      throw argumentError('ERR_OUT_OF_RANGE', 'devices', expected, devices);
    }
    return Object.freeze(Array.from({ length: devices }, (_, index) => `cpu:${index}`));
  }
  if (!Array.isArray(devices) || devices.length === 0 || devices.length > maxDevices) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'devices', expected, devices);
  }
  const names = devices.map(parseDevice);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'devices', 'each device once', {
      text: `${repeated} twice`,
    });
  }
  return Object.freeze(names);
}

function parseDevice(device: unknown): string {
  const [, kind, index] =
    (typeof device === 'string' ? /^(cpu|gpu):(\d{1,9})$/i.exec(device) : null) ?? [];
  if (kind === undefined || index === undefined) {
    throw argumentError('ERR_INVALID_ARG_VALUE', 'devices', "'cpu:' and a number", device);
  }
  if (kind.toLowerCase() === 'gpu') {
    throw new GradlinkError(
      'ERR_BACKEND_UNAVAILABLE',
      `there are no GPU devices in this build, so ${String(device)} cannot be used; ` +
        "use CPU devices: { devices: 4 } or { devices: ['cpu:0', 'cpu:1'] }",
      { usable: true },
    );
  }
  return `cpu:${Number(index)}`;
}
