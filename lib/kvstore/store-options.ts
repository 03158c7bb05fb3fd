// What stores are made with.
import { defaultTimeoutMs } from '../time.js';
import { argumentError, ruleError } from '../errors.js';
import {
  aNumber,
  flag,
  having,
  integer,
  milliseconds,
  notOneOf,
  oneOfWords,
  optionNames,
  orAbsent,
} from '../checks.js';
import type { DeviceList, StoreDevices } from './devices.js';
import type { StoreKind, StoreType } from './types.js';

/** Options of {@link KVStore.create}. */
export interface KVStoreOptions {
  /**
   * The devices whose arrays are pushed and pulled: `4`, `['cpu:0', 'cpu:1']` or `['gpu:0', 'gpu:1']`. A push brings at
   * most one array a device: TypedArrays for CPU devices, DeviceBuffers for GPUs. A GPU may be named several times.
   * When absent, the arrays are the host's and their number is not limited.
   */
  devices?: DeviceList | undefined;
  /**
   * Of the type `device` on GPUs: what sums and spreads arrays. `'nccl'`; `'peers'`: copies between the GPUs and a kernel
   * that sums; `'auto'`, when absent: NCCL where it is there, can start and each GPU is named once, else peers.
   *
   * Of `dist_sync_device`, `dist_async_device` and `allreduce` on GPUs: what sums a worker's arrays before they leave its GPUs.
   * `'peers'`, when absent: the home of a key reads all of them, in the order of the devices. `'nccl'`: they are passed on
   * over NVLink, in NCCL's order; each GPU is named once.
   */
  merge?: MergeName | undefined;
  /**
   * Of the type `device` on GPUs: whether the GPUs may reach one another's memory; true when absent. With false what they
   * exchange passes through page-locked memory of the host, as on machines whose direct access is missing or broken, and
   * NCCL takes no part.
   */
  peer?: boolean | undefined;
  /**
   * Of the type `allreduce`, and of `device` and `nccl` on GPUs: whether each worker, or each GPU, steps a part of every
   * large key, keeps what the optimizer has for that part alone, and hands the new values to the others. What the
   * optimizer keeps takes 1/n of the memory on each of n. Of `allreduce` false when absent, and the same on all workers;
   * the values are the same to the bit, and as many bytes travel.
   *
   * Of `device` and `nccl`, when absent: where NCCL merges, which then moves 1/n less, while an optimizer is set that can
   * step parts. With true `lamb`, `lars`, `lbsgd` and `groupadagrad`, which need norms of whole arrays, are refused;
   * `device` and `nccl` take no updaters of one's own and no rows then.
   */
  shardOptimizer?: boolean | undefined;
  /**
   * Of stores of several workers: milliseconds that an operation may wait for other workers and for servers; 30 000
   * when absent.
   */
  timeoutMs?: number | undefined;
  /** Of stores of several workers: milliseconds until all workers and servers must have come; 60 000 when absent. */
  startTimeoutMs?: number | undefined;
  /**
   * Of stores with servers: a key of at least so many elements is cut evenly over all servers; a smaller one lies on
   * one. The same on all workers. When absent MXNET_KVSTORE_BIGARRAY_BOUND, and without that 1 000 000.
   */
  bigArrayBound?: number | undefined;
}

/** What merges arrays on GPUs; see {@link KVStoreOptions.merge}. */
export type MergeName = 'auto' | 'peers' | 'nccl';
export const mergeNames: readonly MergeName[] = ['auto', 'peers', 'nccl'];

export const storeNames = optionNames<KVStoreOptions>({
  devices: true,
  merge: true,
  peer: true,
  shardOptimizer: true,
  timeoutMs: true,
  startTimeoutMs: true,
  bigArrayBound: true,
});

/** Options of {@link KVStore.setGradientCompression}. */
export interface GradientCompression {
  /**
   * `'2bit'`: each element becomes -threshold, 0 or +threshold. `'1bit'`: -1 or +1. What an element loses is added to
   * the next push's. `'float16'`, `'bfloat16'`: each element is rounded to the nearest, nothing is added later; not on
   * GPUs.
   */
  type: '2bit' | '1bit' | 'float16' | 'bfloat16';
  /** Of the same unit as the gradients; above 0 for 2bit. 0.5 when absent. */
  threshold?: number | undefined;
}

export const compressionNames = optionNames<GradientCompression>({ type: true, threshold: true });
const compressionTypes: readonly GradientCompression['type'][] = [
  '2bit',
  '1bit',
  'float16',
  'bfloat16',
];
export const compressionKind = having({
  type: oneOfWords(compressionTypes),
  threshold: orAbsent(aNumber),
});

/** Options of {@link KVStore.saveOptimizerStates}. */
export interface SaveStatesOptions {
  /** Write the optimizer itself too, so that loading needs no setOptimizer; false when absent. */
  dumpOptimizer?: boolean | undefined;
}

export const saveNames = optionNames<SaveStatesOptions>({ dumpOptimizer: true });

/** What stores are opened with beside their devices, checked. */
export interface OpeningOptions {
  readonly merge: MergeName;
  readonly peer: boolean;
  /** Absent: what is best for the store. */
  readonly shardOptimizer: boolean | undefined;
  readonly timeoutMs: number;
  readonly startTimeoutMs: number;
  readonly bigArrayBound: number;
}

const defaultStartTimeoutMs = 60_000;
/** MXNet's variable, and its default. */
const bigArrayVariable = 'MXNET_KVSTORE_BIGARRAY_BOUND';
const defaultBigArrayBound = 1_000_000;

function bigArrayBoundOf(given: number | undefined): number {
  const text = process.env[bigArrayVariable];
  const [value, name] =
    given !== undefined || text === undefined || text === ''
      ? [given ?? defaultBigArrayBound, 'bigArrayBound']
      : [Number(text), bigArrayVariable];
  return integer(value, name, 1, Number.MAX_SAFE_INTEGER);
}

/** What may merge the arrays of such a store on GPUs; nothing to choose elsewhere. */
export function mergesOf(kind: StoreKind): readonly MergeName[] {
  if (kind === 'device') return mergeNames;
  return kind.endsWith('_device') || kind === 'allreduce' ? ['peers', 'nccl'] : [];
}

function checkMerge(merge: MergeName, known: readonly MergeName[]): void {
  if (known.includes(merge)) return;
  if (known.length === 0) {
    const types = "'device', 'dist_sync_device', 'dist_async_device' or 'allreduce'";
    throw ruleError('ERR_INVALID_ARG_VALUE', `merge needs a store of type ${types} on GPUs`);
  }
  throw notOneOf(merge, 'merge', known);
}

/** @throws TypeError or RangeError for invalid times and for a bound that is not an integer above 0. */
export function openingOptions(
  options: KVStoreOptions,
  { kind }: StoreType,
  { gpus }: StoreDevices,
): OpeningOptions {
  const { timeoutMs, startTimeoutMs, bigArrayBound, merge } = options;
  if (merge !== undefined) checkMerge(merge, gpus === null ? [] : mergesOf(kind));
  const peer = flag(options.peer, 'peer', true);
  if (options.peer !== undefined && (kind !== 'device' || gpus === null)) {
    throw ruleError('ERR_INVALID_ARG_VALUE', "peer needs store type 'device' on GPUs");
  }
  const { shardOptimizer } = options;
  if (shardOptimizer !== undefined) flag(shardOptimizer, 'shardOptimizer', false);
  const shards = kind === 'allreduce' || ((kind === 'device' || kind === 'nccl') && gpus !== null);
  if (shardOptimizer !== undefined && !shards) {
    const rule = "shardOptimizer needs store type 'allreduce', or 'device' or 'nccl' on GPUs";
    throw ruleError('ERR_INVALID_ARG_VALUE', rule);
  }
  return {
    merge: merge ?? 'auto',
    peer,
    shardOptimizer,
    timeoutMs: milliseconds(timeoutMs, 'timeoutMs', defaultTimeoutMs),
    startTimeoutMs: milliseconds(startTimeoutMs, 'startTimeoutMs', defaultStartTimeoutMs),
    bigArrayBound: bigArrayBoundOf(bigArrayBound),
  };
}

/** @throws TypeError for anything but what there is to ask. */
export function isKnownCapability(capability: unknown): true {
  if (capability === 'optimizer') return true;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'capability', "'optimizer'", capability);
}
