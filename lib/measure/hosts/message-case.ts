// A case of messages between two hosts or ranks, judged against the others of its kind.
import { bandwidth } from '../../results/bandwidth.js';
import { exactCheck, unchecked } from '../../results/case.js';
import type { Judged } from '../../results/beside.js';
import type {
  CaseIdentity,
  FailedCase,
  MeasuredCase,
  Statistics,
  Verdict,
} from '../../results/result.js';
import { describe } from '../../results/statistics.js';

export interface MessageFigures {
  /** Per message, or per pair of messages in both directions. */
  readonly samplesSeconds: readonly number[];
  readonly iterationsPerSample: number;
  readonly warmupIterations: number;
  /** Bytes per message. */
  readonly bytes: number;
  /** Wrong bytes; null if not checked. */
  readonly wrong: number | null;
  readonly verdict: Verdict;
  readonly values?: (statistics: Statistics) => Readonly<Record<string, number>>;
}

/** Judges a link against the others. */
export function besideVerdict(
  { level }: Pick<Judged, 'level'>,
  text: string,
  cause: string,
): Verdict {
  return { level, reason: 'others', text, likelyCause: level === 'good' ? null : cause };
}

/** A verdict without others to compare with. */
export function noneAlike(text: string, likelyCause: string | null = null): Verdict {
  return { level: 'none', reason: 'none alike', text, likelyCause };
}

/** Without a limit, because links are judged against each other. */
export function messageCase(
  identity: CaseIdentity,
  { samplesSeconds, bytes, wrong, verdict, values, ...counts }: MessageFigures,
): MeasuredCase | FailedCase {
  const statistics = describe(samplesSeconds);
  const figures = bandwidth(bytes, statistics, 'bytes / t');
  const check = wrong === null ? unchecked : exactCheck(wrong);
  const measurement = {
    samplesSeconds,
    ...counts,
    statistics,
    bytes,
    algorithmBandwidth: figures,
    busBandwidth: figures,
    limit: null,
    check,
    verdict,
    ...(values === undefined ? {} : { values: values(statistics) }),
  };
  if (check.passed) return { status: 'ok', ...identity, ...measurement };
  return {
    status: 'error',
    ...identity,
    reason: `wrong data: ${String(wrong)} bytes are not what was sent`,
    code: 'ERR_WRONG_RESULT',
    ...measurement,
  };
}
