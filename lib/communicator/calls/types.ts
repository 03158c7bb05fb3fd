// The types of data, options and results. They connect the arrays of a call with the memory of its ranks, and array
// types with dtypes.
import type { DTypeOf } from '../../tensor/any-array.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import type {
  ArrayOf,
  AnyDType,
  Float16ArrayLike,
  HalfDType,
  NumericArray,
} from '../../tensor/dtype.js';
import type { NodeWeights, Node, Rank, RankWeights } from '../../topology/rank.js';
import type { ReduceOp } from './reduce-op.js';

/** Where the ranks' arrays are: in host memory, or on the ranks' GPUs. */
export type Memory = 'host' | 'gpu';

/** An array of one rank: a TypedArray, or a {@link DeviceBuffer} on the rank's GPU. */
export type ArrayIn<M extends Memory> = M extends 'gpu' ? DeviceBuffer : NumericArray;

/** The data of a call: one array for a {@link Communicator}, one per rank for a {@link LocalGroup}. */
export type RankData = ArrayIn<Memory> | readonly ArrayIn<Memory>[];

/** The array type of one rank. */
export type ArrayOfRank<D> = D extends readonly (infer A)[] ? A : D;

/** The arrays returned for `D`: the same, as a mutable list. */
export type SameArrays<D> = D extends readonly (infer A)[] ? A[] : D;

/** A new array for the elements of `A`. */
export type NewArray<A> = A extends Float16ArrayLike | DeviceBuffer ? A : ArrayOf[DTypeOf<A>];

/** New arrays in the shape of `D`. */
export type NewArrays<D> = D extends readonly (infer A)[] ? NewArray<A>[] : NewArray<D>;

/** A non-root rank's data in a scatter: nothing, if the result can be made in host memory. */
export type NothingGiven<D> = [Extract<D, NumericArray>] extends [never] ? never : null | undefined;

/** Options of every operation. */
export interface CallOptions {
  /** Milliseconds until ERR_TIMEOUT; the communicator's own default when absent, Infinity to wait forever. */
  timeoutMs?: number | undefined;
}

/** Options of every operation that returns a promise. */
export interface AsyncOptions extends CallOptions {
  /**
   * Ends the operation. One that has not begun is dropped; one in progress **aborts the whole communicator** on all
   * ranks, because peers cannot be notified otherwise. The promise rejects with the signal's reason. Peers of a dropped
   * collective wait for this rank, so abort theirs too.
   */
  signal?: AbortSignal | undefined;
}

/** Further options of a collective. */
export interface NameOptions {
  /**
   * The caller's name for it, such as `'grad/conv1'`. Errors and timelines show it, and mismatch errors show every
   * rank's. Ranks do not compare names: calls match by their order.
   */
  name?: string | undefined;
}

/** {@link CallOptions} of a collective. */
export type NamedCallOptions = CallOptions & NameOptions;

/** {@link AsyncOptions} of a collective. */
export type NamedAsyncOptions = AsyncOptions & NameOptions;

/** Options of reductions. */
export interface OpOptions {
  /** How values are combined; `'sum'` when absent. */
  op?: ReduceOp | undefined;
}

/** For sums of float types, and in host memory also for averages. */
export interface ScaleOptions<D> {
  /** Factor of a rank's data before it is added, which saves a pass; a group may give one per rank. */
  scale?: (D extends readonly unknown[] ? number | readonly number[] : number) | undefined;
  /** Factor of the result. GPUs multiply the data by both factors before adding. */
  postscale?: number | undefined;
}

/** {@link OpOptions} with {@link ScaleOptions}. */
export type ReduceOptions<D> = OpOptions & ScaleOptions<D>;

/** For operations with a root. */
export interface RootOptions {
  /** 0 when absent. */
  root?: Rank | undefined;
}

/** The output option. */
export interface OutOptions<O> {
  /** Where the result goes; when absent, in place or a new array, depending on the call. */
  out?: O | undefined;
}

/** The dtype option for data of type `D`. */
export interface DTypeOption<D> {
  /** Inferred from the array; a Uint16Array must say `'float16'` or `'bfloat16'`. */
  dtype?: DTypeOf<ArrayOfRank<D>> | undefined;
}

/** The options argument for data of type `D`, optional unless the array is a Uint16Array, which needs a dtype. */
export type Options<D, O extends object> = [ArrayOfRank<D>] extends [Uint16Array]
  ? [options: O & { dtype: HalfDType }]
  : [options?: O & DTypeOption<D>];

/** The same with required options. */
export type RequiredOptions<D, O extends object> = [options: O & NonNullable<Options<D, O>[0]>];

/**
 * Options of {@link Communicator.neighborAllReduce}. Without weights the topology decides. `selfWeight` and
 * `srcWeights` belong together; with `dstWeights` all three are required, and the topology is not used.
 */
export interface NeighborOptions {
  /** The weight of a rank's own data. */
  selfWeight?: number | undefined;
  /**
   * For each source rank, the weight of its contribution. Without `dstWeights` only sources of the topology are
   * allowed; missing ones count 0.
   */
  srcWeights?: RankWeights | undefined;
  /** For each destination rank, the weight of this rank's data there; a list means 1 for each. */
  dstWeights?: RankWeights | readonly Rank[] | undefined;
  /**
   * False: the caller guarantees that senders and receivers agree, and no check is made. If they do not, the result is
   * undefined or the call ends with ERR_TIMEOUT. If any rank leaves it true, all are checked. True when absent.
   */
  checkTopology?: boolean | undefined;
}

/** Options of {@link Communicator.setFusion}. */
export interface FusionOptions {
  /**
   * Arrays of up to this many bytes are fused, up to this many bytes at a time; 8 MiB when absent, 0 disables fusion.
   */
  thresholdBytes?: number | undefined;
  /**
   * Milliseconds that the first of several calls waits for others; 0 when absent: calls are fused if they arrive while
   * the communicator is busy.
   */
  cycleMs?: number | undefined;
}

/** Options of {@link Communicator.neighborAllGather}: both lists or neither. */
export interface NeighborGatherOptions {
  /** Ranks to receive from, in the order of the result; the topology's sources, ascending, when absent. */
  srcRanks?: readonly Rank[] | undefined;
  /** Ranks to send to; the topology's destinations when absent. */
  dstRanks?: readonly Rank[] | undefined;
  /** Elements that each source sends, in the order of the sources; the length of `data` when absent. */
  srcCounts?: readonly number[] | undefined;
}

/** Options of {@link Communicator.pairGossip}: both weights or neither. */
export interface GossipOptions {
  /** The other rank, which must name this one. */
  peer: Rank;
  /** The weight of a rank's own data; 1/2 when absent. */
  selfWeight?: number | undefined;
  /** The weight of the peer's data; 1/2 when absent. */
  pairWeight?: number | undefined;
}

/** Options of {@link Communicator.setTopology}. */
export interface TopologyOptions {
  /** Whether to use the graph's weights; false, uniform averaging over a rank and its sources, when absent. */
  weighted?: boolean | undefined;
}

/** Options of {@link Communicator.setMachineTopology}. */
export interface MachineTopologyOptions extends TopologyOptions, CallOptions {
  /**
   * Ranks per node, a divisor of the size. When absent: GRADLINK_RANKS_PER_NODE, the launcher's number of ranks on this
   * host, or all.
   */
  ranksPerNode?: number | undefined;
}

/** Options of {@link Communicator.hierarchicalNeighborAllReduce}: all weights or none. */
export interface HierarchicalOptions {
  /** The weight of this node's sum. */
  selfWeight?: number | undefined;
  /** For each source node, the weight of its sum. */
  srcMachineWeights?: NodeWeights | undefined;
  /** For each destination node, the weight of this node's sum there; a list means 1 for each. */
  dstMachineWeights?: NodeWeights | readonly Node[] | undefined;
}

/** Options of {@link Communicator.createWindow}. */
export interface WindowOptions {
  /** The name for {@link Communicator.window}, the same on all ranks; without one it cannot be looked up. */
  name?: string | undefined;
  /** Whether the buffers start as zeros instead of a copy of the data; false when absent. */
  zeroInit?: boolean | undefined;
  /** Whether a number p goes through the same sums as the array, for push-sum; false when absent. */
  associatedP?: boolean | undefined;
  /** Milliseconds to wait for the other ranks, and for memory in use; 30 000 when absent. */
  timeoutMs?: number | undefined;
}

/** The result of a receive. */
export interface Received {
  /** The rank that sent it. */
  readonly source: Rank;
  /** Number of received elements; the rest of the buffer is unchanged. */
  readonly count: number;
}

/** Options of {@link Communicator.send}. */
export interface SendOptions {
  /** The rank that gets the message. */
  to: Rank;
  /** Only a receive of the same tag takes the message; 0 when absent. */
  tag?: number | undefined;
}

/** Options of {@link Communicator.receive}. */
export interface ReceiveOptions {
  /** The rank the message comes from; any when absent. */
  from?: Rank | undefined;
  /** Only a message with this tag; default 0. */
  tag?: number | undefined;
}

/** Options of a scatter on a rank without data: the array is made. */
export interface ScatterCount<K extends AnyDType> extends RootOptions {
  /** The type of the received elements. */
  dtype: K;
  /** Elements that this rank gets. */
  count: number;
}

/** The facts of a communicator that argument checks need. */
export interface Group {
  readonly size: number;
  /** The first rank held here. */
  readonly rank: number;
  /** One rank, or all ranks that this process holds. */
  readonly heldRanks: readonly number[];
  /** The GPU of each of these; empty for host memory. */
  readonly gpus: readonly number[];
  /** Calls take a list of arrays, one for each rank held here, instead of one array. */
  readonly takesLists: boolean;
}
