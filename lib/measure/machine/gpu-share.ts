import { GradlinkError } from '../../errors.js';
import { native } from '../../native/load.js';

/**
 * Asks how busy the GPUs that this process sees are at the moment: the mean over those that tell, from 0 to 1; undefined
 * where none does.
 *
 * @returns undefined where there is no driver or no GPU.
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
