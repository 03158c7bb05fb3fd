import {
  hasMeasurement,
  type CaseResult,
  type Measurement,
  type Scalar,
} from '../results/result.js';

/** A value of a case under a name with its unit: a column of CSV. */
type Field = readonly [name: string, read: (measurement: Measurement) => Scalar];

const fields: readonly Field[] = [
  ['bytes', ({ bytes }) => bytes],
  ['arrays', ({ arrays }) => arrays ?? null],
  ['samples', ({ statistics }) => statistics.samples],
  ['iterationsPerSample', ({ iterationsPerSample }) => iterationsPerSample],
  ['minSeconds', ({ statistics }) => statistics.minSeconds],
  ['medianSeconds', ({ statistics }) => statistics.medianSeconds],
  ['p95Seconds', ({ statistics }) => statistics.p95Seconds],
  ['p99Seconds', ({ statistics }) => statistics.p99Seconds],
  ['meanSeconds', ({ statistics }) => statistics.meanSeconds],
  ['medianLowerSeconds', ({ statistics }) => statistics.medianInterval.lowerSeconds],
  ['medianUpperSeconds', ({ statistics }) => statistics.medianInterval.upperSeconds],
  ['medianConfidence', ({ statistics }) => statistics.medianInterval.confidence],
  ['algorithmBytesPerSecond', ({ algorithmBandwidth }) => algorithmBandwidth.bytesPerSecond],
  ['busBytesPerSecond', ({ busBandwidth }) => busBandwidth.bytesPerSecond],
  ['mustMoveBytes', ({ limit }) => limit?.mustMoveBytes ?? null],
  ['copyBytesPerSecond', ({ limit }) => limit?.copyBytesPerSecond ?? null],
  ['limitBasis', ({ limit }) => limit?.kind ?? limit?.basis ?? null],
  ['boundSeconds', ({ limit }) => limit?.boundSeconds ?? null],
  ['limitRatio', ({ limit }) => limit?.ratio ?? null],
  ['wrong', ({ check }) => check.wrong],
  ['error', ({ check }) => check.error],
  ['verdict', ({ verdict }) => verdict.level],
  ['likelyCause', ({ verdict }) => verdict.likelyCause],
];

/** A case as a flat record: name, status, reason, `parameter.NAME` for each parameter, its figures, `value.NAME`. */
export function flatRecord(result: CaseResult): Record<string, Scalar> {
  const record: Record<string, Scalar> = {
    name: result.name,
    status: result.status,
    reason: result.status === 'ok' ? null : result.reason,
  };
  for (const [name, value] of Object.entries(result.parameters))
    record[`parameter.${name}`] = value;
  for (const [name, read] of fields) record[name] = hasMeasurement(result) ? read(result) : null;
  for (const [name, value] of Object.entries(valuesOf(result))) record[`value.${name}`] = value;
  return record;
}

function valuesOf(result: CaseResult): Readonly<Record<string, number | null>> {
  return (hasMeasurement(result) ? result.values : undefined) ?? {};
}

/** Every column that any case has: identity, parameters in order of first appearance, figures, values. */
export function columnNames(cases: readonly CaseResult[]): string[] {
  const parameters = new Set(cases.flatMap((result) => Object.keys(result.parameters)));
  const values = new Set(cases.flatMap((result) => Object.keys(valuesOf(result))));
  return [
    'name',
    'status',
    'reason',
    ...[...parameters].map((name) => `parameter.${name}`),
    ...fields.map(([name]) => name),
    ...[...values].map((name) => `value.${name}`),
  ];
}
