import { bandwidth, perSecond, type Volume } from './bandwidth.js';
import { anIterable, aNumber, having, type Kind, orAbsent, orNull } from '../checks.js';
import { checkKind, contextKind, identityKind, sharesKind, volumeKind } from './kinds.js';
import type {
  CaseIdentity,
  Check,
  FailedCase,
  FirstWrong,
  IterationLine,
  Limit,
  MeasuredCase,
  Measurement,
  Statistics,
  WaivedCase,
} from './result.js';
import type { StoreTraffic } from './store-traffic.js';
import { describe } from './statistics.js';
import { grantedCores } from './container-limits.js';
import { judge, type VerdictContext } from './verdict.js';

/** The lower bound of an operation's time from facts about the machine. */
export interface ExpectedTime {
  /** Bytes that count against the rate. */
  bytes: number;
  /** The rate of `bytes`. */
  bytesPerSecond: number;
  /** The formula of `bytes`. */
  formula: string;
  /** The source of the rate. */
  basis: string;
}

/** The input for a case, from which the rest of the record follows. */
export interface CaseInput extends CaseIdentity {
  /** At least one; each the mean of `iterationsPerSample` operations. */
  samplesSeconds: Iterable<number>;
  /** Calls per sample; default 1. */
  iterationsPerSample?: number;
  /** Calls before the first sample; default 0. */
  warmupIterations?: number;
  /** The volume of the operation. */
  volume: Volume;
  /** The machine's copy bandwidth, read plus written, measured in this run; null if not measured. */
  copyBytesPerSecond: number | null;
  /** The size of that copy, if it matches the operation instead of exceeding all caches. */
  loopBytes?: number | undefined;
  /** The limit between processes with separate arrays; the slower of this and the copy counts. */
  betweenCores?: Omit<ExpectedTime, 'basis'> | undefined;
  /** A limit from links or a library's estimate, instead of the copy. */
  expected?: ExpectedTime | undefined;
  /** The check of the results. */
  check: Check;
  /** Further facts for the verdict: threads, cores, processes, compression. */
  context?: Omit<VerdictContext, 'statistics' | 'limit' | 'bytes' | 'arrays' | 'shares'>;
  /** Arrays per sample; default 1. */
  arrays?: number;
  /** Lines of batches, as in `measure`. */
  iterations?: readonly IterationLine[];
  /** The work of a store's workers and servers. */
  traffic?: StoreTraffic | undefined;
}

const caseInput: Kind = (value, name) => {
  identityKind(value, name);
  own(value, name);
};
const own = having({
  samplesSeconds: anIterable,
  volume: volumeKind,
  check: checkKind,
  copyBytesPerSecond: orNull(aNumber),
  loopBytes: orAbsent(aNumber),
  betweenCores: orAbsent(having({ bytes: aNumber, bytesPerSecond: aNumber })),
  expected: orAbsent(having({ bytes: aNumber, bytesPerSecond: aNumber })),
  context: orAbsent(contextKind),
  arrays: orAbsent(aNumber),
  traffic: orAbsent(having({ shares: sharesKind })),
});

/** Completes a case that ran. If its check failed, it becomes a failed case with its measurement. */
export function completeCase(input: CaseInput): MeasuredCase | FailedCase {
  caseInput(input, 'input');
  const { name, parameters, volume, check } = input;
  const samplesSeconds = [...input.samplesSeconds];
  const statistics = describe(samplesSeconds);
  const limit =
    input.expected === undefined
      ? slower(limitOf(input, statistics), coresLimit(input, statistics))
      : expectedLimit(input.expected, statistics);
  const measurement: Measurement = {
    samplesSeconds,
    iterationsPerSample: input.iterationsPerSample ?? 1,
    warmupIterations: input.warmupIterations ?? 0,
    statistics,
    bytes: volume.bytes,
    algorithmBandwidth: bandwidth(volume.bytes, statistics, volume.algorithmFormula),
    busBandwidth: bandwidth(volume.bytes * volume.busFactor, statistics, volume.busFormula),
    limit,
    check,
    verdict: judge({
      grantedCores: grantedCores(),
      ...input.context,
      statistics,
      limit,
      bytes: volume.bytes,
      arrays: input.arrays ?? 1,
      ...(input.traffic === undefined ? {} : { shares: input.traffic.shares }),
    }),
    ...(input.arrays === undefined ? {} : { arrays: input.arrays }),
    ...(input.iterations === undefined ? {} : { iterations: input.iterations }),
    ...(input.traffic === undefined ? {} : { traffic: input.traffic }),
  };
  if (check.passed) return { status: 'ok', name, parameters, ...measurement };
  return {
    status: 'error',
    name,
    parameters,
    reason: wrongResult(check),
    code: 'ERR_WRONG_RESULT',
    ...measurement,
  };
}

/** A case that cannot run here; `reason` tells what is missing and how to get it. */
export function waivedCase(identity: CaseIdentity, reason: string): WaivedCase {
  identityKind(identity, 'identity');
  return { status: 'waived', name: identity.name, parameters: identity.parameters, reason };
}

/** A case that threw. */
export function failedCase(identity: CaseIdentity, error: unknown): FailedCase {
  identityKind(identity, 'identity');
  const code =
    error instanceof Error && 'code' in error && typeof error.code === 'string'
      ? { code: error.code }
      : {};
  const reason = error instanceof Error ? error.message : String(error);
  return { status: 'error', name: identity.name, parameters: identity.parameters, reason, ...code };
}

/** Compares every element: `wrong` of them differ from the expected bits. */
export function exactCheck(wrong: number, firstWrong?: FirstWrong): Check {
  return {
    kind: 'exact',
    wrong,
    ...(firstWrong === undefined ? {} : { firstWrong }),
    error: null,
    tolerance: null,
    passed: wrong === 0,
  };
}

/** `: element 12 of rank 2 (gpu:2, node1) is 3.5, should be 3`; empty if unknown. */
export function firstWrongText({ firstWrong }: Check): string {
  if (firstWrong === undefined) return '';
  const { rank, device, host, index, expected, got } = firstWrong;
  const places = [device, host].filter((place) => place !== undefined).join(', ');
  const whose = rank === undefined ? '' : ` of rank ${String(rank)}`;
  const where = places === '' ? '' : ` (${places})`;
  return `: element ${String(index)}${whose}${where} is ${got}, should be ${expected}`;
}

/**
 * MXNet's relative error against a bound; NaN fails. The total hides single errors, so `wrong` counts elements beyond
 * rounding, and must be 0.
 */
export function errorCheck(error: number, tolerance: number, wrong: number | null = null): Check {
  const finite = Number.isFinite(error);
  return {
    kind: 'error',
    wrong,
    error: finite ? error : null,
    tolerance,
    passed: finite && error <= tolerance && (wrong ?? 0) === 0,
  };
}

/** The check of results that were not compared. */
export const unchecked: Check = {
  kind: 'none',
  wrong: null,
  error: null,
  tolerance: null,
  passed: true,
};

function expectedLimit(expected: ExpectedTime, statistics: Statistics): Limit {
  const { bytes, bytesPerSecond, formula, basis } = expected;
  const boundSeconds = bytes / bytesPerSecond;
  return {
    mustMoveBytes: bytes,
    formula,
    copyBytesPerSecond: bytesPerSecond,
    basis,
    boundSeconds,
    ratio: perSecond(boundSeconds, statistics.medianSeconds),
  };
}

function limitOf(
  { volume, copyBytesPerSecond, loopBytes }: CaseInput,
  statistics: Statistics,
): Limit | null {
  // With one rank in place nothing moves: a limit of zero seconds would be meaningless.
  if (copyBytesPerSecond === null || !(copyBytesPerSecond > 0) || volume.mustMoveBytes <= 0)
    return null;
  const boundSeconds = volume.mustMoveBytes / copyBytesPerSecond;
  return {
    mustMoveBytes: volume.mustMoveBytes,
    formula: volume.mustMoveFormula,
    copyBytesPerSecond,
    ...(loopBytes === undefined ? {} : { loopBytes }),
    boundSeconds,
    ratio: perSecond(boundSeconds, statistics.medianSeconds),
  };
}

/** Null if nothing passes between processes or nothing was measured. */
function coresLimit({ betweenCores }: CaseInput, statistics: Statistics): Limit | null {
  if (betweenCores === undefined) return null;
  const { bytes, bytesPerSecond, formula } = betweenCores;
  const boundSeconds = bytes / bytesPerSecond;
  return {
    mustMoveBytes: bytes,
    formula,
    copyBytesPerSecond: bytesPerSecond,
    kind: 'between cores',
    boundSeconds,
    ratio: perSecond(boundSeconds, statistics.medianSeconds),
  };
}

function slower(a: Limit | null, b: Limit | null): Limit | null {
  if (a === null || b === null) return a ?? b;
  return b.boundSeconds > a.boundSeconds ? b : a;
}

function wrongResult(check: Check): string {
  if (check.kind === 'exact')
    return `wrong result: ${check.wrong ?? 0} elements differ from the expected sum${firstWrongText(check)}`;
  if (check.error === null) return 'wrong result: the error is not a finite number';
  if ((check.wrong ?? 0) > 0)
    return `wrong result: ${check.wrong ?? 0} elements are further off than rounding explains`;
  return `wrong result: relative error ${check.error} is above ${check.tolerance ?? 0}`;
}
