// The job of MXNet's tools/bandwidth/measure.py: a network's gradients through a key-value store, batch by batch.
import { KVStore } from '../kvstore/kvstore.js';
import type { Network } from '../models/index.js';
import { elementsOf } from '../models/index.js';
import { createOptimizer, type Optimizer } from '../optimizers/index.js';
import { parseDevices } from '../kvstore/devices.js';
import { allocate, parseDType } from '../tensor/dtype.js';
import { mxnetBandwidth, storeVolume } from './bandwidth.js';
import { completeCase, errorCheck, unchecked } from './case.js';
import { drawGradient, type GradientArray, type GradientType } from './gradients.js';
import type { CaseResult, IterationLine } from './result.js';
import { openStoreArrays, type StoreArrays } from './store-arrays.js';
import type { StoreLimits } from './store-limit.js';
import { StoreReference, type Compression } from './store-reference.js';

/** `push-pull`: all pushes, then all pulls, as the original; `pushpull`: one call for both. */
export const storeModes = ['push-pull', 'pushpull'] as const;
export type StoreMode = (typeof storeModes)[number];

export interface StoreRunOptions {
  readonly kvStore: string;
  readonly devices: readonly string[];
  readonly network: Network;
  readonly dtype: GradientType;
  readonly mode: StoreMode;
  /** Timed batches. */
  readonly batches: number;
  /** Batches a line is the mean of. */
  readonly display: number;
  readonly warmup: number;
  readonly check: boolean;
  /** A name of createOptimizer; null: pushes assign. */
  readonly optimizer: string | null;
  readonly compression: Compression | null;
}

/** What every store of one run shares: drawing gradients takes longer than pushing them. */
export interface StoreRunContext {
  /** gradients[array][device]. */
  readonly gradients: readonly (readonly GradientArray[])[];
  readonly limits: StoreLimits;
}

export interface StoreRunEvents {
  onLine(line: IterationLine): void;
  /** After each batch, warm-up included, outside the timed region. */
  onBatch(): void;
}

/** The same gradients for every store, batch and worker. */
export function drawGradients(
  options: Pick<StoreRunOptions, 'network' | 'dtype' | 'devices'>,
  seed: number,
): GradientArray[][] {
  return options.network.parameters.map(({ shape }, array) =>
    options.devices.map((_, device) =>
      drawGradient(options.dtype, elementsOf(shape), seed, array, device),
    ),
  );
}

/** Bytes of the arrays of one run: gradients, weights, the stored value and what the check keeps. */
export function memoryNeed(
  options: Pick<StoreRunOptions, 'network' | 'dtype' | 'devices' | 'compression' | 'optimizer'>,
): number {
  const { network, dtype, devices, compression, optimizer } = options;
  const residuals = compression === null ? 0 : 2 * devices.length;
  const bytes = network.bytes(dtype) * (2 * devices.length + 1 + residuals);
  return optimizer === null ? bytes : bytes + network.elements * Float64Array.BYTES_PER_ELEMENT * 3;
}

function isHalf(dtype: GradientType): boolean {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** Half precision steps on float32 weights: in the type itself small gradients' squares would be 0. */
function optimizerOf(name: string, dtype: GradientType): Optimizer {
  return createOptimizer(name, { multiPrecision: isHalf(dtype) });
}

/** Arrays of the size of a weight that an optimizer keeps, in units of the weight's type: read off its own states. */
function stateArrays(name: string, dtype: GradientType): number {
  const probe = optimizerOf(name, 'float64');
  const length = 4096;
  probe.update(0, new Float64Array(length), new Float64Array(length));
  const arrays = Math.floor(probe.saveStates().length / (length * Float64Array.BYTES_PER_ELEMENT));
  // Half types keep float32 states and a float32 weight.
  return isHalf(dtype) ? 2 * (arrays + 1) : arrays;
}

/** One batch: the same arrays pushed and pulled. */
type Batch = () => Promise<void>[];

/**
 * Each array by a call of its own, as the original: everything is issued before anything is awaited. Its priorities
 * are the index, so the last layers come first.
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
 * All arrays in one call, in the order that the original's priorities come down to. A GPU moves a network's arrays in
 * less time than JavaScript takes for a call for each.
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

/** The mean of a line's batches. */
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

/**
 * Times one store; the result of a wrong run comes back as a failed case.
 *
 * @throws GradlinkError where the store cannot be opened or fails
 */
export async function runStore(
  options: StoreRunOptions,
  context: StoreRunContext,
  events: StoreRunEvents,
): Promise<CaseResult> {
  const { network, devices, dtype, mode } = options;
  const { gradients, limits } = context;
  const { gpus } = parseDevices(devices);
  const bytes = network.bytes(dtype);
  const keys = network.parameters.map((_, key) => key);
  const empty = (key: number): GradientArray =>
    allocate(parseDType(dtype), gradients[key]?.[0]?.length ?? 0) as GradientArray;

  await using arrays = await openStoreArrays(dtype, gradients, gpus);
  await using store = await KVStore.create(options.kvStore, { devices });
  if (options.compression !== null) await store.setGradientCompression(options.compression);
  for (const key of keys) await store.init(key, empty(key), halfOption(dtype));
  const named = options.optimizer ?? undefined;
  if (named !== undefined) await store.setOptimizer(optimizerOf(named, dtype));
  const reference = options.check
    ? new StoreReference({
        dtype,
        gradients,
        workers: store.numWorkers,
        optimizer: named === undefined ? undefined : optimizerOf(named, 'float64'),
        compression: options.compression ?? undefined,
      })
    : undefined;
  const batchOf = gpus === null ? eachArray : allArrays;
  const pushAndPull = batchOf(store, mode, arrays);

  const samples: number[] = [];
  const lines: IterationLine[] = [];
  let worstError = 0;
  let wrong = 0;
  for (let batch = 1 - options.warmup; batch <= options.batches; batch += 1) {
    const seconds = await time(pushAndPull);
    const compared = reference?.compare(await arrays.results());
    worstError = Math.max(worstError, compared?.error ?? 0);
    wrong += compared?.wrong ?? 0;
    if (batch > 0) samples.push(seconds);
    if (batch > 0 && batch % options.display === 0) {
      const times = samples.slice(-options.display);
      const line = lineOf(batch, times, bytes, devices.length, compared?.error ?? -1);
      lines.push(line);
      events.onLine(line);
    }
    events.onBatch();
  }

  const volume = storeVolume({
    bytes,
    devices: devices.length,
    optimizerStates: named === undefined ? null : stateArrays(named, dtype),
    compressed: options.compression !== null,
  });
  const limit = limits(options.kvStore, volume);
  return completeCase({
    name: 'kvstore',
    parameters: {
      kvStore: options.kvStore,
      network: network.name,
      devices: devices.length,
      dtype,
      mode,
      optimizer: options.optimizer,
      compression: options.compression?.type ?? null,
    },
    samplesSeconds: samples,
    warmupIterations: options.warmup,
    volume,
    copyBytesPerSecond: limit.copyBytesPerSecond,
    expected: limit.expected,
    check: reference === undefined ? unchecked : errorCheck(worstError, reference.tolerance, wrong),
    context: {
      ...limit.context,
      compressed: options.compression !== null,
      optimizer: options.optimizer,
    },
    arrays: keys.length,
    iterations: lines,
  });
}

/** A Uint16Array must be told which of the half types it holds. */
function halfOption(dtype: GradientType): { dtype?: 'float16' | 'bfloat16' } {
  return dtype === 'float16' || dtype === 'bfloat16' ? { dtype } : {};
}
