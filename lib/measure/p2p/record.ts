// A figure of `gradlink p2p` as a record of a report.
import { perSecond } from '../../results/bandwidth.js';
import { exactCheck, firstWrongText, unchecked } from '../../results/case.js';
import type { Machine } from '../machine/gpus.js';
import { judgeP2p, type P2pEvidence } from './verdict.js';
import type {
  Bandwidth,
  CaseIdentity,
  FailedCase,
  FirstWrong,
  Limit,
  MeasuredCase,
  Measurement,
  Statistics,
} from '../../results/result.js';
import { describe } from '../../results/statistics.js';

/** A measurement before it is judged against others. */
export interface Observation {
  readonly identity: CaseIdentity;
  readonly samplesSeconds: readonly number[];
  readonly iterationsPerSample: number;
  readonly warmupIterations: number;
  /** Per operation. */
  readonly bytes: number;
  /** 2 if each byte is read and written in one memory. */
  readonly factor: 1 | 2;
  /** Undefined if not checked. */
  readonly wrong: number | undefined;
  readonly firstWrong?: FirstWrong | undefined;
  /** Further figures. */
  readonly values?: Readonly<Record<string, number>>;
  /** All evidence except the figure, which follows from the samples. */
  readonly evidence: Omit<P2pEvidence, 'value' | 'statistics'>;
}

/** The time for the figure. */
function centre(statistics: Statistics, mean: boolean): number {
  return mean ? statistics.meanSeconds : statistics.medianSeconds;
}

export function evidenceOf(observation: Observation, mean: boolean): P2pEvidence {
  const statistics = describe(observation.samplesSeconds);
  const seconds = centre(statistics, mean);
  const { quantity } = observation.evidence;
  const value =
    quantity === 'latency' ? seconds : perSecond(observation.bytes * observation.factor, seconds);
  return { ...observation.evidence, statistics, value };
}

/**
 * @param evidence this observation's
 * @param all evidence of all observations of the case
 */
export function completeP2p(
  machine: Machine,
  observation: Observation,
  evidence: P2pEvidence,
  all: readonly P2pEvidence[],
  mean: boolean,
): MeasuredCase | FailedCase {
  const { identity, bytes, factor, wrong } = observation;
  const { statistics } = evidence;
  const check = wrong === undefined ? unchecked : exactCheck(wrong, observation.firstWrong);
  const measurement: Measurement = {
    samplesSeconds: observation.samplesSeconds,
    iterationsPerSample: observation.iterationsPerSample,
    warmupIterations: observation.warmupIterations,
    statistics,
    bytes,
    algorithmBandwidth: figure(bytes, statistics, mean, 'bytes / t'),
    busBandwidth: figure(
      bytes * factor,
      statistics,
      mean,
      factor === 2 ? '2 bytes / t (read + written)' : 'bytes / t',
    ),
    limit: limitOf(observation, evidence, mean),
    check,
    verdict: judgeP2p(machine, evidence, all),
    ...(observation.values === undefined ? {} : { values: observation.values }),
  };
  if (check.passed) return { status: 'ok', ...identity, ...measurement };
  return {
    status: 'error',
    ...identity,
    reason: `wrong data: ${wrong} elements of 4 bytes are not what was sent (${String(identity.parameters.flow)})${firstWrongText(check)}`,
    code: 'ERR_WRONG_RESULT',
    ...measurement,
  };
}

function figure(bytes: number, statistics: Statistics, mean: boolean, formula: string): Bandwidth {
  const { lowerSeconds, upperSeconds } = statistics.medianInterval;
  return {
    bytesPerSecond: perSecond(bytes, centre(statistics, mean)),
    lowerBytesPerSecond: perSecond(bytes, upperSeconds),
    upperBytesPerSecond: perSecond(bytes, lowerSeconds),
    formula: mean ? `${formula}, t = mean` : formula,
  };
}

function limitOf(observation: Observation, evidence: P2pEvidence, mean: boolean): Limit | null {
  const { limit, quantity } = evidence;
  if (limit === undefined || quantity === 'latency') return null;
  const mustMoveBytes = observation.bytes * observation.factor;
  const boundSeconds = mustMoveBytes / limit.bytesPerSecond;
  return {
    mustMoveBytes,
    formula: observation.factor === 2 ? 'bytes read + bytes written' : 'bytes in one direction',
    copyBytesPerSecond: limit.bytesPerSecond,
    basis: limit.basis,
    boundSeconds,
    ratio: perSecond(boundSeconds, centre(evidence.statistics, mean)),
  };
}
