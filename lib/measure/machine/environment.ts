// The machine and this build of the addon, for reports.
import { native } from '../../native/load.js';
import { describeEnvironment } from '../../results/environment.js';
import type { EnvironmentInfo } from '../../results/result.js';

/**
 * This machine's facts for a report.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE if no addon loads
 */
export function environmentOf(): EnvironmentInfo {
  const addon = native();
  return describeEnvironment({ simdLevel: addon.simdLevel(), threads: addon.numThreads() });
}
