// The machine and this build of the addon, as every report that measured something has them.
import { native } from '../../native/load.js';
import { describeEnvironment } from '../../results/environment.js';
import type { EnvironmentInfo } from '../../results/result.js';

/**
 * What a report says of this machine.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE when no addon loads
 */
export function environmentOf(): EnvironmentInfo {
  const addon = native();
  return describeEnvironment({ simdLevel: addon.simdLevel(), threads: addon.numThreads() });
}
