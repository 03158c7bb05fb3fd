// The options of stores.
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
   * The devices whose arrays are pushed and pulled: `4`, `['cpu:0', 'cpu:1']` or `['gpu:0', 'gpu:1']`. A push has at
   * most one array per device: TypedArrays for CPU devices, DeviceBuffers for GPUs. A GPU may be repeated. When absent,
   * arrays are in host memory and their number is unlimited.
   */
  devices?: DeviceList | undefined;
  /**
   * For type `device` on GPUs: `'nccl'`; `'peers'`: copies between GPUs and a kernel that sums; `'auto'`, when absent:
   * NCCL if it works and each GPU is named once, else peers.
   *
   * For `dist_sync_device`, `dist_async_device` and `allreduce` on GPUs: how a worker's arrays are summed before they
   * leave its GPUs. `'peers'`, when absent: the key's GPU reads them all in device order. `'nccl'`: over NVLink in
   * NCCL's order; each GPU is named once.
   */
  merge?: MergeName | undefined;
  /**
   * For type `device` on GPUs: whether GPUs access one another's memory directly; true when absent. With false they
   * exchange through page-locked host memory, as on machines without working direct access, and NCCL is not used.
   */
  peer?: boolean | undefined;
  /**
   * For type `allreduce`, and for `device` and `nccl` on GPUs: whether each worker or GPU updates one part of every
   * large key, keeps the optimizer's state only for that part, and sends the new values to the others. The state takes
   * 1/n of the memory on each of n. For `allreduce` false when absent, and the same on all workers; values are
   * bit-equal, and the traffic is the same.
   *
   * For `device` and `nccl`, when absent: if NCCL merges, which then moves 1/n less, while an optimizer is set that can
   * update parts. With true, `lamb`, `lars`, `lbsgd` and `groupadagrad` are refused, because they need norms of whole
   * arrays; `device` and `nccl` then allow no updaters and no rows.
   */
  shardOptimizer?: boolean | undefined;
  /**
   * For stores with several workers: milliseconds that an operation may wait for other workers and servers; 30 000 when
   * absent.
   */
  timeoutMs?: number | undefined;
  /**
   * For stores with several workers: milliseconds until all workers and servers must have joined; 60 000 when absent.
   */
  startTimeoutMs?: number | undefined;
  /**
   * For stores with servers: keys with at least this many elements are split evenly over all servers; smaller ones are
   * on one. The same on all workers. When absent MXNET_KVSTORE_BIGARRAY_BOUND, and without that 1 000 000.
   */
  bigArrayBound?: number | undefined;
}

/** How arrays on GPUs are merged; see {@link KVStoreOptions.merge}. */
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
   * `'2bit'`: each element becomes -threshold, 0 or +threshold. `'1bit'`: -1 or +1. Both add the error to the next
   * push. `'float16'`, `'bfloat16'`: elements are rounded to nearest without error feedback; not on GPUs.
   */
  type: '2bit' | '1bit' | 'float16' | 'bfloat16';
  /** In the unit of the gradients; above 0 for 2bit. 0.5 when absent. */
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
  /** Also write the optimizer, so that loading needs no setOptimizer; false when absent. */
  dumpOptimizer?: boolean | undefined;
}

export const saveNames = optionNames<SaveStatesOptions>({ dumpOptimizer: true });

/** Validated options besides the devices. */
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

/** The merge options of such a store on GPUs; otherwise empty. */
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

/** @throws TypeError or RangeError for invalid times, and for a bound that is not a positive integer */
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

/** @throws TypeError for an unknown capability */
export function isKnownCapability(capability: unknown): true {
  if (capability === 'optimizer') return true;
  throw argumentError('ERR_INVALID_ARG_VALUE', 'capability', "'optimizer'", capability);
}
