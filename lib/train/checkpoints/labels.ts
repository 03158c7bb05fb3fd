// What a run must be like to go on from a checkpoint.
import { argumentError, GradlinkError } from '../../errors.js';
import type { Checkpoint, TrainingPlace } from './types.js';

/** An object of texts. */
export function checkLabels(labels: unknown, name: string): void {
  const isRecord = typeof labels === 'object' && labels !== null && !Array.isArray(labels);
  if (!isRecord || !Object.values(labels).every((value) => typeof value === 'string')) {
    throw argumentError('ERR_INVALID_ARG_TYPE', name, 'an object of texts', labels);
  }
}

/** The error of a checkpoint of another run; undefined where it fits. */
export function labelMismatch(
  { folder, labels: written }: Checkpoint,
  labels: TrainingPlace['labels'],
): GradlinkError | undefined {
  for (const [name, value] of Object.entries(labels)) {
    if (written[name] === value) continue;
    return new GradlinkError(
      'ERR_MISMATCH',
      `expected a checkpoint of ${name} ${value} in ${folder}, got one of ${written[name] ?? 'unknown'}; give the ` +
        'run another folder, or remove it',
      { usable: true },
    );
  }
  return undefined;
}
