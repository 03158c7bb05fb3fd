// One line of what a GPU reaches: a rate beside its limit, and the share that is asked for.
import { completeCase, unchecked } from '../../lib/results/case.js';
import type { CaseResult } from '../../lib/results/result.js';

export interface Reached {
  readonly name: string;
  readonly bytes: number;
  /** Each the time of so many bytes. */
  readonly seconds: Iterable<number>;
  /** Bytes a second, and where they come from; absent where nobody says. */
  readonly limit?: { readonly bytesPerSecond: number; readonly basis: string } | undefined;
  /** Share of the limit that is to be reached. */
  readonly target?: number;
}

/** The line as a case of a report. */
export function reachedCase(gpu: number, { name, bytes, seconds, limit, target }: Reached) {
  const formula = 'bytes that move';
  const result: CaseResult = completeCase({
    name,
    parameters: { gpu },
    samplesSeconds: seconds,
    volume: {
      bytes,
      algorithmFormula: `${formula} / t`,
      busFactor: 1,
      busFormula: `${formula} / t`,
      mustMoveBytes: bytes,
      mustMoveFormula: formula,
    },
    copyBytesPerSecond: null,
    expected: limit && { bytes, formula, ...limit },
    check: unchecked,
    context: { onGpus: true },
  });
  return target === undefined ? result : { ...result, values: { target } };
}
