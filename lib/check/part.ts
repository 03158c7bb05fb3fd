// A part of a check: its figures and its verdict.
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
  /** The times; if nothing was timed, the time that the check took. */
  readonly samplesSeconds: readonly number[];
  /** Bytes moved in that time, 0 if none. */
  readonly bytes?: number;
  readonly verdict: Verdict;
  readonly values?: Readonly<Record<string, number>>;
}

/** A part without a limit of its own. */
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

/** A poor part fails: an error with its figures, which sets the exit status. */
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

export function hasPoor(parts: readonly CaseResult[]): boolean {
  return parts.some(isPoor);
}

/**
 * Excuses a poor part that may be slow because of another one, which already has the blame. Wrong results stay errors.
 */
export function excused(result: CaseResult, needed: string): CaseResult {
  if (!isPoor(result)) return result;
  const { reason, ...measured } = result;
  const text = `${reason}; not judged: ${needed}`;
  const verdict = { level: 'none', reason: 'excused', text, likelyCause: null } as const;
  return { ...measured, status: 'ok', verdict };
}
