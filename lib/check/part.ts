// A part of a check: something that was looked at, what it came to, and what that is worth.
import { messageCase } from '../measure/hosts/message-case.js';
import {
  hasMeasurement,
  type CaseIdentity,
  type CaseResult,
  type FailedCase,
  type Measurement,
  type Verdict,
} from '../results/result.js';

export const good = (text: string): Verdict => ({ level: 'good', text, likelyCause: null });

export const fair = (text: string, likelyCause: string | null): Verdict => ({
  level: 'fair',
  text,
  likelyCause,
});

export const poor = (text: string, likelyCause: string | null): Verdict => ({
  level: 'poor',
  text,
  likelyCause,
});

export interface PartFigures {
  /** What was timed; of what is only looked at, the looking. */
  readonly samplesSeconds: readonly number[];
  /** Moved in that time; 0 where nothing is. */
  readonly bytes?: number;
  readonly verdict: Verdict;
  readonly values?: Readonly<Record<string, number>>;
}

/** A part that has no limit but what it is judged by. */
export function partOf(
  identity: CaseIdentity,
  { samplesSeconds, bytes = 0, verdict, values }: PartFigures,
): CaseResult {
  return failedWherePoor(
    messageCase(identity, {
      samplesSeconds,
      iterationsPerSample: 1,
      warmupIterations: 0,
      bytes,
      wrong: null,
      verdict,
      ...(values === undefined ? {} : { values: () => values }),
    }),
  );
}

/** What is poor did not pass: it is an error with its figures, and the exit status follows. */
export function failedWherePoor(result: CaseResult): CaseResult {
  if (result.status !== 'ok' || result.verdict.level !== 'poor') return result;
  return { ...result, status: 'error', reason: result.verdict.text };
}

function isPoor(result: CaseResult): result is FailedCase & Measurement {
  return (
    result.status === 'error' &&
    hasMeasurement(result) &&
    result.check.passed &&
    result.verdict.level === 'poor'
  );
}

/** Whether one of these is slow, or not as it should be. */
export function hasPoor(parts: readonly CaseResult[]): boolean {
  return parts.some(isPoor);
}

/**
 * A poor part that may be slow because another is: what it needs is told there, and this one is not blamed beside it.
 * Wrong results stay what they are.
 */
export function excused(result: CaseResult, needed: string): CaseResult {
  if (!isPoor(result)) return result;
  const { reason, ...measured } = result;
  const text = `${reason}; not judged: ${needed}`;
  const verdict = { level: 'none', reason: 'excused', text, likelyCause: null } as const;
  return { ...measured, status: 'ok', verdict };
}
