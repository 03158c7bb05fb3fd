// Times one store like MXNet's tools/bandwidth/measure.py: a network's gradients, batch by batch.
import { cpus } from 'node:os';

import { KVStore } from '../../kvstore/kvstore.js';
import { mergesOf } from '../../kvstore/store-options.js';
import type { StoreReport } from '../../kvstore/report.js';
import { parseStoreType } from '../../kvstore/types.js';
import { createOptimizer, type Optimizer } from '../../optimizers/index.js';
import { allocate, parseDType } from '../../tensor/dtype.js';
import { mxnetBandwidth, storeVolume } from '../../results/bandwidth.js';
import { completeCase, errorCheck, unchecked } from '../../results/case.js';
import type { GradientArray, GradientType } from './gradients.js';
import type { CaseResult, IterationLine } from '../../results/result.js';
import { openStoreArrays, type StoreArrays } from './arrays.js';
import { aloneInJob, isShared, type StoreJob } from './job.js';
import type { CaseLimit } from '../machine/sized-limit.js';
import type { StoreLimits } from './limit.js';
import type { BatchOptions, StoreMode } from './store-options.js';
import { StoreReference } from './reference.js';
import { storeTraffic } from './traffic.js';

export type Merging = Pick<BatchOptions, 'merge' | 'peer'>;

/** Of several stores in a run, each uses the options of its type. */
export function mergingOf({
  kvStore,
  merge,
  peer,
}: Merging & Pick<BatchOptions, 'kvStore'>): Merging {
  const { kind } = parseStoreType(kvStore);
  if (kind === 'device') return { merge, peer };
  return merge !== undefined && mergesOf(kind).includes(merge) ? { merge } : {};
}

/** Shared by all stores of a run, because drawing gradients takes longer than pushing them. */
export interface BatchContext {
  /** The GPU of each device; null for CPU devices. */
  readonly gpus: readonly number[] | null;
  /** gradients[array][device]. */
  readonly gradients: readonly (readonly GradientArray[])[];
  readonly limits: StoreLimits;
  readonly job: StoreJob;
}

export interface BatchEvents {
  onLine(line: IterationLine): void;
  /** Called after each batch, including warm-up, outside the timed region. */
  onBatch(): void;
}

/** Bytes of all arrays of a run: gradients, weights, stored values and the check's copies. */
export function memoryNeed(
  options: Pick<BatchOptions, 'network' | 'dtype' | 'devices' | 'compression' | 'optimizer'>,
): number {
  const { network, dtype, devices, compression, optimizer } = options;
  const residuals = compression === null ? 0 : 2 * devices.length;
  const bytes = network.bytes(dtype) * (2 * devices.length + 1 + residuals);
  return optimizer === null ? bytes : bytes + network.elements * Float64Array.BYTES_PER_ELEMENT * 3;
}

function isHalf(dtype: GradientType): boolean {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** Half precision uses float32 weights: small gradients' squares would be 0 otherwise. */
function optimizerOf(name: string, dtype: GradientType): Optimizer {
  return createOptimizer(name, { multiPrecision: isHalf(dtype) });
}

/** The optimizer's state in weight sizes, derived from its states. */
function stateArrays(name: string, dtype: GradientType): number {
  const probe = optimizerOf(name, 'float64');
  const length = 4096;
  probe.update(0, new Float64Array(length), new Float64Array(length));
  const arrays = Math.floor(probe.saveStates().length / (length * Float64Array.BYTES_PER_ELEMENT));
  // Half types keep float32 states and float32 weights.
  return isHalf(dtype) ? 2 * (arrays + 1) : arrays;
}

/** One batch on the same arrays. */
type Batch = () => Promise<void>[];

/**
 * Each array by its own call, as in the original: all calls are issued before any is awaited. The priority is the
 * index, so the last layers come first.
 */
function eachArray(store: KVStore, mode: StoreMode, { gradients, outs }: StoreArrays): Batch {
  const keys = gradients.map((_, key) => key);
  return () => {
    const pending: Promise<void>[] = [];
    if (mode === 'pushpull') {
      for (const key of keys) {
        pending.push(store.pushPull(key, gradients[key] ?? [], outs[key] ?? [], { priority: key }));
      }
      return pending;
    }
    for (const key of keys) {
      pending.push(store.push(key, gradients[key] ?? [], { priority: key }));
    }
    for (const key of keys) pending.push(store.pull(key, outs[key] ?? [], { priority: key }));
    return pending;
  };
}

/**
 * All arrays in one call, in the original's priority order. A GPU moves a network's arrays faster than JavaScript can
 * call for each.
 */
function allArrays(store: KVStore, mode: StoreMode, arrays: StoreArrays): Batch {
  const keys = arrays.gradients.map((_, key) => key).reverse();
  const gradients = arrays.gradients.toReversed();
  const outs = arrays.outs.toReversed();
  return mode === 'pushpull'
    ? () => [store.pushPull(keys, gradients, outs)]
    : () => [store.push(keys, gradients), store.pull(keys, outs)];
}

/** @returns seconds */
async function time(batch: Batch): Promise<number> {
  const start = performance.now();
  await Promise.all(batch());
  return (performance.now() - start) / 1000;
}

/** The result of a batch over the job: the slowest worker's time, and all errors. */
interface Outcome {
  readonly seconds: number;
  readonly error: number;
  readonly wrong: number;
}

async function together(job: StoreJob, mine: Outcome): Promise<Outcome> {
  const all = await job.gather([mine.seconds, mine.error, mine.wrong]);
  return {
    seconds: Math.max(...all.map(([seconds = 0]) => seconds)),
    error: Math.max(...all.map(([, error = 0]) => error)),
    wrong: all.reduce((sum, [, , wrong = 0]) => sum + wrong, 0),
  };
}

/**
 * The expected values of pulls; undefined for an asynchronous store with an optimizer, where the number of updates
 * depends on the other workers.
 */
function referenceOf(
  options: BatchOptions,
  gradients: BatchContext['gradients'],
  workers: number,
): StoreReference | undefined {
  const { dtype, optimizer, compression } = options;
  const { kind } = parseStoreType(options.kvStore);
  const asynchronous = kind.startsWith('dist_async');
  if (!options.check || (asynchronous && optimizer !== null)) return undefined;
  return new StoreReference({
    dtype,
    gradients,
    // Without an optimizer pushes assign, and all workers push the same.
    workers: asynchronous ? 1 : workers,
    optimizer: optimizer === null ? undefined : optimizerOf(optimizer, 'float64'),
    compression: compression ?? undefined,
    compressesSums: kind.startsWith('dist_'),
  });
}

function lineOf(
  iteration: number,
  times: readonly number[],
  bytes: number,
  devices: number,
  error: number,
): IterationLine {
  const seconds = times.reduce((sum, time) => sum + time, 0) / times.length;
  return {
    iteration,
    seconds,
    bytesPerSecond: mxnetBandwidth(bytes, devices, seconds),
    error: Number.isFinite(error) ? error : null,
  };
}

/** @throws GradlinkError if it cannot be opened */
export function openStore(
  options: Pick<BatchOptions, 'kvStore' | 'devices' | 'bigArrayBound'> & Merging,
): Promise<KVStore> {
  const { kvStore, devices, bigArrayBound } = options;
  return KVStore.create(kvStore, { devices, bigArrayBound, ...mergingOf(options) });
}

/**
 * Times one store and closes it. In a job of workers a batch takes as long as the slowest one's. Wrong results become a
 * failed case.
 *
 * @throws GradlinkError if the store fails
 */
export async function timeStore(
  options: BatchOptions,
  opened: KVStore,
  context: BatchContext,
  events: BatchEvents,
): Promise<CaseResult> {
  const { network, devices, dtype, mode } = options;
  const { gpus, gradients, limits } = context;
  await using store = opened;
  const job = isShared(options.kvStore) ? context.job : aloneInJob;
  const merging = mergingOf(options);
  const bytes = network.bytes(dtype);
  const keys = network.parameters.map((_, key) => key);
  const lengths = gradients.map(([first]) => first?.length ?? 0);
  const zeros = allocate(parseDType(dtype), Math.max(0, ...lengths)) as GradientArray;

  await using arrays = await openStoreArrays(dtype, gradients, gpus, store);
  if (options.compression !== null) await store.setGradientCompression(options.compression);
  for (const key of keys) await store.init(key, zeros.subarray(0, lengths[key]), halfOption(dtype));
  const named = options.optimizer ?? undefined;
  if (named !== undefined) await store.setOptimizer(optimizerOf(named, dtype));
  const reference = referenceOf(options, gradients, store.numWorkers);
  const batchOf = gpus === null ? eachArray : allArrays;
  const pushAndPull = batchOf(store, mode, arrays);

  const samples: number[] = [];
  const own: number[] = [];
  const shared = isShared(options.kvStore);
  let before: StoreReport | undefined;
  const lines: IterationLine[] = [];
  let worstError = 0;
  let wrong = 0;
  for (let batch = 1 - options.warmup; batch <= options.batches; batch += 1) {
    if (batch === 1 && shared) before = await store.report();
    await job.barrier();
    const ownSeconds = await time(pushAndPull);
    const compared = reference?.compare(await arrays.results());
    const { error = 0, wrong: ownWrong = 0 } = compared ?? {};
    const outcome = await together(job, { seconds: ownSeconds, error, wrong: ownWrong });
    worstError = Math.max(worstError, outcome.error);
    wrong += outcome.wrong;
    if (batch > 0) samples.push(outcome.seconds);
    if (batch > 0) own.push(ownSeconds);
    if (batch > 0 && batch % options.display === 0) {
      const times = samples.slice(-options.display);
      const shown = compared === undefined ? -1 : outcome.error;
      const line = lineOf(batch, times, bytes, devices.length, shown);
      lines.push(line);
      events.onLine(line);
    }
    events.onBatch();
  }

  const after = before === undefined ? undefined : await store.report();
  const traffic =
    before === undefined || after === undefined
      ? undefined
      : await storeTraffic(job, before, after, own, samples);
  const volume = storeVolume({
    bytes,
    devices: devices.length,
    optimizerStates: named === undefined ? null : stateArrays(named, dtype),
    compressed: options.compression !== null,
    ...(after === undefined
      ? {}
      : { workers: store.numWorkers, servers: after.servers.length > 0 }),
  });
  const limit = limits(options.kvStore, volume, merging.peer ?? true);
  const complete = (rate: CaseLimit): CaseResult =>
    completeCase({
      name: 'kvstore',
      parameters: {
        kvStore: options.kvStore,
        network: network.name,
        devices: devices.length,
        dtype,
        mode,
        optimizer: options.optimizer,
        compression: options.compression?.type ?? null,
        ...(options.bigArrayBound === undefined ? {} : { bigArrayBound: options.bigArrayBound }),
        ...(merging.merge === undefined ? {} : { merge: merging.merge }),
        ...(merging.peer === false ? { peer: false } : {}),
        ...(after === undefined
          ? {}
          : { workers: store.numWorkers, servers: after.servers.length }),
      },
      samplesSeconds: samples,
      warmupIterations: options.warmup,
      volume,
      ...rate,
      expected: limit.expected,
      check:
        reference === undefined ? unchecked : errorCheck(worstError, reference.tolerance, wrong),
      context: {
        ...limit.context,
        compressed: options.compression !== null,
        optimizer: options.optimizer,
        // The launcher binds each process to some cores; the job has them all.
        ...(after === undefined
          ? {}
          : {
              processes: store.numWorkers + after.servers.length,
              threads: null,
              availableCores: cpus().length,
            }),
      },
      arrays: keys.length,
      iterations: lines,
      traffic,
    });
  const { sized, copyBytesPerSecond, between } = limit;
  // With compression less is transferred than pushed.
  const passed = options.compression === null ? between : undefined;
  return sized === undefined
    ? complete({ copyBytesPerSecond })
    : await sized.complete(volume, complete, passed);
}

/** A Uint16Array needs its half type. */
function halfOption(dtype: GradientType): { dtype?: 'float16' | 'bfloat16' } {
  return dtype === 'float16' || dtype === 'bfloat16' ? { dtype } : {};
}
