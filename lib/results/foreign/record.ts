// Another program's results as a report: its figures as printed, without facts of the machine.
import { version } from '../../version.js';
import { completeCase, exactCheck, unchecked } from '../case.js';
import {
  schemaVersion,
  type Bandwidth,
  type CaseIdentity,
  type CaseResult,
  type Report,
  type Scalar,
} from '../result.js';
import { describe } from '../statistics.js';

/** The start of a run with unknown time. */
export const unknownTime = '1970-01-01T00:00:00Z';

export interface ForeignFigure extends CaseIdentity {
  readonly samplesSeconds: readonly number[];
  readonly iterationsPerSample?: number;
  readonly warmupIterations?: number;
  /** Per operation; 0 if unknown. */
  readonly bytes: number;
  /** As printed, in bytes per second. */
  readonly algorithm: number;
  readonly bus: number;
  readonly formula: string;
  /** Elements; null if not checked. */
  readonly wrong: number | null;
  readonly values?: Readonly<Record<string, number>>;
}

export function foreignCase(figure: ForeignFigure): CaseResult {
  const { name, parameters, samplesSeconds, bytes, formula, values } = figure;
  const statistics = describe(samplesSeconds);
  const { lowerSeconds, upperSeconds } = statistics.medianInterval;
  const printed = (bytesPerSecond: number): Bandwidth => {
    const at = (seconds: number): number =>
      seconds > 0 ? (bytesPerSecond * statistics.medianSeconds) / seconds : bytesPerSecond;
    return {
      bytesPerSecond,
      lowerBytesPerSecond: at(upperSeconds),
      upperBytesPerSecond: at(lowerSeconds),
      formula,
    };
  };
  const volume = {
    bytes,
    algorithmFormula: formula,
    busFactor: 1,
    busFormula: formula,
    mustMoveBytes: 0,
    mustMoveFormula: 'not known',
  };
  return {
    ...completeCase({
      name,
      parameters,
      samplesSeconds,
      iterationsPerSample: figure.iterationsPerSample ?? 1,
      warmupIterations: figure.warmupIterations ?? 0,
      volume,
      copyBytesPerSecond: null,
      check: figure.wrong === null ? unchecked : exactCheck(figure.wrong),
    }),
    algorithmBandwidth: printed(figure.algorithm),
    busBandwidth: printed(figure.bus),
    ...(values === undefined || Object.keys(values).length === 0 ? {} : { values }),
  };
}

export interface ForeignRun {
  readonly tool: 'nccl-tests' | 'nvbandwidth' | 'osu';
  /** The program's version; undefined if unknown. */
  readonly version?: string | undefined;
  readonly commandLine?: readonly string[];
  readonly options?: Readonly<Record<string, Scalar>>;
  readonly startedAt?: string | undefined;
  readonly variables?: Readonly<Record<string, string>>;
}

export function foreignReport(run: ForeignRun, cases: readonly CaseResult[]): Report {
  const { tool, commandLine = [], options = {}, startedAt = unknownTime, variables = {} } = run;
  return {
    schemaVersion,
    run: {
      tool,
      program: run.version === undefined ? tool : `${tool} ${run.version}`,
      packageVersion: version,
      commandLine,
      options,
      startedAt,
    },
    environment: {
      cpuModel: 'unknown',
      availableCores: 0,
      onlineCores: 0,
      simdLevel: null,
      threads: null,
      memoryBytes: 0,
      freeMemoryBytes: 0,
      lastLevelCacheBytes: null,
      operatingSystem: 'unknown',
      kernel: 'unknown',
      architecture: 'unknown',
      nodeVersion: 'unknown',
      variables,
    },
    cases,
  };
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A number or its text, as both programs write them; undefined for `N/A`, `nan` and others. */
export function amountIn(value: unknown): number | undefined {
  const text = typeof value === 'string' ? value.trim() : value;
  const number = text === '' ? NaN : Number(typeof text === 'string' ? text : (text ?? NaN));
  const isOne = typeof text === 'string' || typeof text === 'number';
  return isOne && Number.isFinite(number) && number >= 0 ? number : undefined;
}

export const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
