import { GradlinkError } from '../../errors.js';
import { native } from '../../native/load.js';

/**
 * Reads the current load of the visible GPUs: the mean of those that tell, from 0 to 1; undefined if none does.
 *
 * @returns undefined without a driver or a GPU.
 */
export function gpuShares(): (() => number | undefined) | undefined {
  const addon = native();
  let addresses: readonly string[];
  try {
    const count = addon.gpuCount();
    addresses = Array.from({ length: count }, (_, ordinal) => addon.gpuInfo(ordinal).pciBusId);
  } catch (error) {
    if (error instanceof GradlinkError && error.code === 'ERR_BACKEND_UNAVAILABLE') {
      return undefined;
    }
    throw error;
  }
  return () => {
    const known = addresses.flatMap((address) => {
      const percent = addon.gpuHealth(address)?.utilizationPercent ?? null;
      return percent === null ? [] : [percent / 100];
    });
    if (known.length === 0) return undefined;
    return known.reduce((sum, share) => sum + share, 0) / known.length;
  };
}
