// GPUs that a command line names.
import { UsageError } from './usage-error.js';
import { native } from '../native/load.js';

/**
 * How many GPUs there are.
 *
 * @throws UsageError where --gpus names others
 */
export function presentGpus(asked: readonly number[] | undefined): number {
  const present = native().gpuCount();
  const absent = asked?.find((gpu) => gpu >= present);
  if (absent === undefined) return present;
  throw UsageError.of('--gpus', `ordinals below ${present}`, String(absent));
}
