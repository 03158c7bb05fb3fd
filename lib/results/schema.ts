import { schemaVersion, type VerdictReason } from './result.js';

/**
 * JSON Schema (draft 07) of a {@link Report}, as `--format json` writes it. Objects are open, because fields may be
 * added within a version; one that changes its meaning or is removed raises the version. A test compares it with the
 * types.
 */

const number = { type: 'number' } as const;
const positive = { type: 'number', minimum: 0 } as const;
const count = { type: 'integer', minimum: 0 } as const;
const text = { type: 'string' } as const;

/** The type, or null. */
function nullable<T extends { readonly type: string }>(schema: T) {
  return { ...schema, type: [schema.type, 'null'] as const };
}

/** An object with these fields, all required except the optional ones. */
function object<P extends Readonly<Record<string, object>>>(
  properties: P,
  optional: readonly (keyof P)[] = [],
) {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
  } as const;
}

function reference(name: string) {
  return { $ref: `#/definitions/${name}` } as const;
}

function orNull<T extends object>(schema: T) {
  return { anyOf: [schema, { type: 'null' }] } as const;
}

const linkFigures = {
  hosts: { type: 'array', items: text, minItems: 2, maxItems: 2 },
  messageSeconds: positive,
  bytesPerSecond: positive,
} as const;
const scalar = { type: ['string', 'number', 'boolean', 'null'] } as const;
const scalars = { type: 'object', additionalProperties: scalar } as const;

/** A record, so that none is missing. */
const verdictReasons: Readonly<Record<VerdictReason, true>> = {
  'no limit': true,
  'fixed cost': true,
  'above limit': true,
  'host time': true,
  'none alike': true,
  comparison: true,
  'nothing exchanged': true,
  scatter: true,
  excused: true,
  others: true,
  faults: true,
  hidden: true,
  expected: true,
};

const measurement = {
  samplesSeconds: { type: 'array', items: positive, minItems: 1 },
  iterationsPerSample: { type: 'integer', minimum: 1 },
  warmupIterations: count,
  statistics: reference('statistics'),
  bytes: positive,
  algorithmBandwidth: reference('bandwidth'),
  busBandwidth: reference('bandwidth'),
  limit: orNull(reference('limit')),
  check: reference('check'),
  verdict: reference('verdict'),
  arrays: count,
  iterations: { type: 'array', items: reference('iteration') },
  traffic: reference('traffic'),
  values: { type: 'object', additionalProperties: nullable(number) },
} as const;

const optionalOfMeasurement = ['arrays', 'iterations', 'traffic', 'values'] as const;
const wholeMeasurement = Object.keys(measurement).filter(
  (name) => !(optionalOfMeasurement as readonly string[]).includes(name),
);
const identity = { name: text, parameters: scalars } as const;

const definitions = {
  run: object(
    {
      tool: text,
      program: text,
      packageVersion: text,
      commandLine: { type: 'array', items: text },
      options: scalars,
      startedAt: {
        type: 'string',
        pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z$',
      },
    },
    ['program'],
  ),
  environment: object({
    cpuModel: text,
    availableCores: count,
    onlineCores: count,
    simdLevel: nullable(text),
    threads: nullable(count),
    memoryBytes: count,
    freeMemoryBytes: count,
    lastLevelCacheBytes: nullable(count),
    operatingSystem: text,
    kernel: text,
    architecture: text,
    nodeVersion: text,
    variables: { type: 'object', additionalProperties: text },
  }),
  gpus: object({
    cudaVersion: text,
    driverRelease: nullable(text),
    ncclVersion: nullable(text),
    nvmlMissing: nullable(text),
    devices: { type: 'array', items: reference('gpu') },
  }),
  gpu: object({
    ordinal: count,
    name: text,
    uuid: nullable(text),
    pciBusId: text,
    memoryBytes: count,
    computeCapability: text,
    numaNode: nullable(count),
    pcieGeneration: nullable(count),
    pcieWidth: nullable(count),
    links: nullable(count),
    activeLinks: nullable(count),
    linkBytesPerSecond: nullable(positive),
  }),
  statistics: object({
    samples: { type: 'integer', minimum: 1 },
    minSeconds: positive,
    medianSeconds: positive,
    p95Seconds: positive,
    p99Seconds: positive,
    maxSeconds: positive,
    meanSeconds: positive,
    medianInterval: object({
      lowerSeconds: positive,
      upperSeconds: positive,
      confidence: { type: 'number', minimum: 0, maximum: 1 },
    }),
  }),
  bandwidth: object({
    bytesPerSecond: positive,
    lowerBytesPerSecond: positive,
    upperBytesPerSecond: positive,
    formula: text,
  }),
  limit: object(
    {
      mustMoveBytes: positive,
      formula: text,
      copyBytesPerSecond: positive,
      kind: { enum: ['between cores'] },
      basis: text,
      loopBytes: positive,
      boundSeconds: positive,
      ratio: positive,
    },
    ['kind', 'basis', 'loopBytes'],
  ),
  check: object(
    {
      kind: { enum: ['exact', 'error', 'none'] },
      wrong: nullable(count),
      firstWrong: object(
        { rank: count, device: text, host: text, index: count, expected: text, got: text },
        ['rank', 'device', 'host'],
      ),
      error: nullable(positive),
      tolerance: nullable(positive),
      passed: { type: 'boolean' },
    },
    ['firstWrong'],
  ),
  verdict: object(
    {
      level: { enum: ['good', 'fair', 'poor', 'none'] },
      reason: { enum: Object.keys(verdictReasons) },
      text,
      likelyCause: nullable(text),
    },
    ['reason'],
  ),
  iteration: object({
    iteration: count,
    seconds: positive,
    bytesPerSecond: positive,
    // -1 if results were not checked, as in MXNet.
    error: nullable(number),
  }),
  traffic: object({
    batches: count,
    workers: {
      type: 'array',
      items: object({
        rank: count,
        medianSeconds: positive,
        bytesSent: positive,
        bytesReceived: positive,
        copySeconds: positive,
        waitSeconds: positive,
        reduceSeconds: positive,
        updateSeconds: positive,
      }),
    },
    servers: {
      type: 'array',
      items: object({
        server: count,
        shards: count,
        elements: count,
        bytesReceived: positive,
        bytesSent: positive,
        mergeSeconds: positive,
        updateSeconds: positive,
        waitSeconds: positive,
      }),
    },
    networkBytesPerSecond: positive,
    networkFormula: text,
    slowestRank: count,
    shares: object({ copy: positive, wire: positive, merge: positive, update: positive }),
  }),
  hosts: object({
    messageBytes: count,
    memory: { enum: ['host', 'gpu'] },
    margin: positive,
    hosts: {
      type: 'array',
      items: object({
        host: text,
        ranks: { type: 'array', items: count },
        copySeconds: nullable(positive),
        messageSeconds: nullable(positive),
      }),
    },
    linkCount: count,
    linkMedianSeconds: nullable(positive),
    slowestLinks: { type: 'array', items: object(linkFigures) },
    slowestHost: orNull(
      object({
        host: text,
        ranks: { type: 'array', items: count },
        by: { enum: ['copies', 'messages'] },
        times: positive,
        standsOut: { type: 'boolean' },
      }),
    ),
    slowestLink: orNull(
      object({
        ...linkFigures,
        times: nullable(positive),
        standsOut: { type: 'boolean' },
        asAllOf: nullable(text),
      }),
    ),
  }),
  measured: object({ status: { const: 'ok' }, ...identity, ...measurement }, optionalOfMeasurement),
  waived: object({ status: { const: 'waived' }, ...identity, reason: text }),
  failed: {
    ...object(
      { status: { const: 'error' }, ...identity, reason: text, code: text, ...measurement },
      [...(Object.keys(measurement) as (keyof typeof measurement)[]), 'code'],
    ),
    // A case has either all parts of a measurement or none.
    dependencies: Object.fromEntries(wholeMeasurement.map((name) => [name, wholeMeasurement])),
  },
} as const;

/** JSON Schema, draft 7, of a {@link Report}. */
export const reportSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'gradlink report',
  ...object(
    {
      schemaVersion: { const: schemaVersion },
      run: reference('run'),
      environment: reference('environment'),
      gpus: reference('gpus'),
      hosts: reference('hosts'),
      cases: {
        type: 'array',
        items: { oneOf: [reference('measured'), reference('waived'), reference('failed')] },
      },
    },
    ['gpus', 'hosts'],
  ),
  definitions,
} as const;
