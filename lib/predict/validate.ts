// Validates forecasts against published figures, and against your own sweeps.
import { aString, oneOfWords } from '../checks.js';
import { bluefog } from '../results/published/bluefog.js';
import { dlperf } from '../results/published/dlperf.js';
import { elasticdl } from '../results/published/elasticdl.js';
import type { PublishedCurves } from '../results/published/types.js';
import { mostMisfit, predictCurve } from './curve.js';
import { medianError, plainLink, predictUnseen, type Point } from './link.js';
import { linkOfPair } from './pair.js';
import { exchangeSeconds, type Scheme } from './schemes.js';
import { stepTime, type Workload } from './step.js';

/** Published tables. */
export const publishedTables = ['dlperf', 'bluefog', 'elasticdl'] as const;
/** One of {@link publishedTables}. */
export type PublishedTable = (typeof publishedTables)[number];

/** A predicted figure with the actual one. */
export interface Checked {
  /** The row's name. */
  readonly name: string;
  /** In `unit`. */
  readonly predicted: number;
  /** In `unit`. */
  readonly published: number;
  /** Of both figures. */
  readonly unit: string;
  /** predicted / published - 1. */
  readonly error: number;
}

/** Forecasts with the measured values. */
export interface Validation {
  /** Name of the published table. */
  readonly table: string;
  /** Its publication. */
  readonly source: string;
  /** The prediction's input and output. */
  readonly method: string;
  /** Each figure with its forecast. */
  readonly rows: readonly Checked[];
  /** How errors are summarised: `median` if single figures are noisy. */
  readonly summary: 'mean' | 'largest' | 'median';
  /** Relative error of the forecasts. */
  readonly error: number;
  /** Limit of the error; null without a promise. */
  readonly target: number | null;
  /** Whether the error is within the target. */
  readonly passed: boolean;
}

function checked(name: string, predicted: number, published: number, unit: string): Checked {
  return { name, predicted, published, unit, error: predicted / published - 1 };
}

function summarise(rows: readonly Checked[], summary: Validation['summary']): number {
  const sizes = rows.map(({ error }) => Math.abs(error));
  if (summary === 'largest') return Math.max(...sizes);
  if (summary === 'median') {
    return medianError(rows.map((row) => ({ ...row, bytes: 0, seconds: 0, predictedSeconds: 0 })))!;
  }
  return sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
}

function validation(parts: Omit<Validation, 'error' | 'passed'>): Validation {
  const error = summarise(parts.rows, parts.summary);
  return { ...parts, error, passed: parts.target === null || error <= parts.target };
}

/** Throughput at `target` workers from that at `known`. */
function checkCurves(
  { series, workersPerHost }: PublishedCurves,
  known: readonly number[],
  target: number,
): (Checked & { readonly misfit: number })[] {
  return series.map(({ name, batchSize, throughput }) => {
    const place = (workers: number): { workers: number; hosts: number } => ({
      workers,
      hosts: Math.ceil(workers / workersPerHost),
    });
    const measured = known.map((workers) => ({
      ...place(workers),
      stepSeconds: (workers * batchSize) / throughput[workers]!,
    }));
    const { stepSeconds, misfit } = predictCurve(measured, place(target));
    const predicted = (target * batchSize) / stepSeconds;
    return { ...checked(name, predicted, throughput[target]!, 'samples/s'), misfit };
  });
}

/** NCCL 2 in these runs uses a ring over all GPUs; hierarchical communication is more expensive with more hosts. */
const pairTargets = { ring: 0.035, hierarchical: null } as const;

/** The V100's NVLink: 10 us, and NCCL's rate. */
const v100Link = plainLink(10e-6, 120e9);
const elementsOf = { 'ResNet-50': 25_557_032, BERT: 110e6 } as const;
const slices = 200;

/** Slices of equal size: only the timing of the bytes within the backward pass matters. */
function publishedWorkload(name: string, stepSeconds: number): Workload {
  const elements = name.startsWith('BERT') ? elementsOf.BERT : elementsOf['ResNet-50'];
  const width = name.includes('mixed precision') ? 2 : 4;
  return {
    gradientBytes: Array.from({ length: slices }, () => (elements * width) / slices),
    forwardSeconds: stepSeconds / 3,
    backwardSeconds: (stepSeconds * 2) / 3,
    sigmaSeconds: 0,
    bucketBytes: 25 * 2 ** 20,
    overlap: true,
  };
}

/** Throughput at `target` workers from the steps of one host and of a pair. */
function checkPairs(
  { series, workersPerHost: perHost }: PublishedCurves,
  scheme: Scheme,
  target: number,
): Checked[] {
  return series.map(({ name, batchSize, throughput }) => {
    const step = (workers: number): number => (workers * batchSize) / throughput[workers]!;
    const workload = publishedWorkload(name, step(perHost));
    const inside = v100Link;
    const pair = { workload, perHost, inside, stepSeconds: step(2 * perHost), scheme };
    const cluster = { workers: target, perHost, inside, between: linkOfPair(pair), servers: 1 };
    const { stepSeconds } = stepTime(workload, target, (bytes) =>
      exchangeSeconds(scheme, bytes, cluster),
    );
    return checked(name, (target * batchSize) / stepSeconds, throughput[target]!, 'samples/s');
  });
}

function validateDlperf(): Validation[] {
  return [
    validation({
      table: 'dlperf',
      source: dlperf.source,
      method: 'throughput of 4 hosts from that of 1 and 2 hosts',
      rows: checkCurves(dlperf, [8, 16], 32),
      summary: 'mean',
      target: 0.036,
    }),
    ...(['ring', 'hierarchical'] as const).map((scheme) =>
      validation({
        table: 'dlperf',
        source: dlperf.source,
        method: `throughput of 4 hosts from a step of 1 and the network that explains a step of 2, ${scheme}`,
        rows: checkPairs(dlperf, scheme, 32),
        summary: 'mean',
        target: pairTargets[scheme],
      }),
    ),
  ];
}

/** The row with a target. */
const promised = 'Horovod, batch 64';

function validateBluefog(): Validation[] {
  const rows = checkCurves(bluefog, [1, 16, 32], 128);
  const parts = { table: 'bluefog', source: bluefog.source, summary: 'largest' } as const;
  const method = 'throughput of 128 GPUs from that of 1, 16 and 32';
  const onCurve = rows.filter(({ misfit }) => misfit <= mostMisfit);
  return [
    validation({
      ...parts,
      method: `${method}: ${promised}`,
      rows: onCurve.filter(({ name }) => name === promised),
      target: 0.06,
    }),
    validation({
      ...parts,
      method: `${method}: the other bars, read off a chart`,
      rows: onCurve.filter(({ name }) => name !== promised),
      target: 0.1,
    }),
    validation({
      ...parts,
      method: `${method}: refused, the known points lie on no curve`,
      rows: rows
        .filter(({ misfit }) => misfit > mostMisfit)
        .map((row) => ({ ...row, name: `${row.name} (${(row.misfit * 100).toFixed(1)} % off)` })),
      target: null,
    }),
  ];
}

/** Without overlap: a worker's compute time, then the communication. */
function validateElasticdl(): Validation[] {
  const rows = elasticdl.models.flatMap(({ name, tasks }) => {
    const alone = tasks[0]!;
    return tasks.slice(1).map(({ workers, taskSeconds, exchangeSeconds }) => {
      const workload = {
        gradientBytes: [1],
        forwardSeconds: alone.batchSeconds,
        backwardSeconds: 0,
        sigmaSeconds: 0,
        bucketBytes: 1,
        overlap: false,
      };
      const { stepSeconds } = stepTime(workload, workers, () => exchangeSeconds);
      return checked(`${name}, ${String(workers)} workers`, stepSeconds, taskSeconds, 's a task');
    });
  });
  return [
    validation({
      table: 'elasticdl',
      source: elasticdl.source,
      method: "a task's time from that of one worker and the published time of the exchanges",
      rows,
      summary: 'largest',
      target: 0.02,
    }),
  ];
}

const validators: Readonly<Record<PublishedTable, () => Validation[]>> = {
  dlperf: validateDlperf,
  bluefog: validateBluefog,
  elasticdl: validateElasticdl,
};

const knownTable = oneOfWords(publishedTables);

/** Runs the model on a published table. */
export function validatePublished(table: PublishedTable): Validation[] {
  knownTable(table, 'table');
  return validators[table]();
}

/**
 * Holds out every other size of a sweep and predicts it from the rest.
 *
 * @param points from {@link linkOfSweep}; at least five sizes
 */
export function validateSweep(name: string, points: readonly Point[]): Validation {
  aString(name, 'name');
  return validation({
    table: 'own',
    source: name,
    method: 'times of sizes that were left out, from the others',
    rows: predictUnseen(points).map(({ bytes, predictedSeconds, seconds }) =>
      checked(`${String(bytes)} bytes a message`, predictedSeconds * 1e6, seconds * 1e6, 'us'),
    ),
    summary: 'median',
    target: 0.15,
  });
}
