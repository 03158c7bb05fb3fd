// The types of data, options and results. They tie the arrays of a call to where its ranks' memory is, and the type of an
// array to the dtype that may be named with it.
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

/** Where the arrays of ranks are: in the memory of the host, or on the GPUs that the ranks are. */
export type Memory = 'host' | 'gpu';

/** An array of one rank: a TypedArray, or a {@link DeviceBuffer} on the rank's GPU. */
export type ArrayIn<M extends Memory> = M extends 'gpu' ? DeviceBuffer : NumericArray;

/** What a call takes: one array of a rank's {@link Communicator}, one for each rank of a {@link LocalGroup}. */
export type RankData = ArrayIn<Memory> | readonly ArrayIn<Memory>[];

/** The array type of one rank. */
export type ArrayOfRank<D> = D extends readonly (infer A)[] ? A : D;

/** The arrays that come back when `D` is given: the same, as a mutable list. */
export type SameArrays<D> = D extends readonly (infer A)[] ? A[] : D;

/** A newly made array for what `A` holds. */
export type NewArray<A> = A extends Float16ArrayLike | DeviceBuffer ? A : ArrayOf[DTypeOf<A>];

/** Newly made arrays in the shape of `D`. */
export type NewArrays<D> = D extends readonly (infer A)[] ? NewArray<A>[] : NewArray<D>;

/** What a rank that is not the root may give a scatter: nothing, where the result can be made in the host's memory. */
export type NothingGiven<D> = [Extract<D, NumericArray>] extends [never] ? never : null | undefined;

/** What every operation may carry. */
export interface CallOptions {
  /** Milliseconds until ERR_TIMEOUT; the communicator's own default when absent, Infinity to wait forever. */
  timeoutMs?: number | undefined;
}

/** What every operation that returns a promise may carry. */
export interface AsyncOptions extends CallOptions {
  /**
   * Ends the operation: one that has not begun is dropped; one that is running **aborts the whole communicator**, on
   * all ranks, because its peers cannot be told otherwise. Either way the promise rejects with the signal's reason.
   * A dropped collective leaves the peers waiting for this rank, so abort those too.
   */
  signal?: AbortSignal | undefined;
}

/** What a collective may carry besides. */
export interface NameOptions {
  /**
   * What this rank calls it, such as `'grad/conv1'`: its errors and timelines show it, and every rank's where their calls
   * differ. Ranks do not compare names: calls meet by their order.
   */
  name?: string | undefined;
}

/** {@link CallOptions} of a collective. */
export type NamedCallOptions = CallOptions & NameOptions;

/** {@link AsyncOptions} of a collective. */
export type NamedAsyncOptions = AsyncOptions & NameOptions;

/** For operations that combine values. */
export interface OpOptions {
  /** How values are combined; `'sum'` when absent. */
  op?: ReduceOp | undefined;
}

/** For sums of float types, in the memory of the host also for averages. */
export interface ScaleOptions<D> {
  /** What a rank's data is multiplied by before it is added, which saves a pass over it; of a group also one a rank. */
  scale?: (D extends readonly unknown[] ? number | readonly number[] : number) | undefined;
  /** What the result is multiplied by. GPUs multiply the data by both before it is added. */
  postscale?: number | undefined;
}

/** {@link OpOptions} with {@link ScaleOptions}. */
export type ReduceOptions<D> = OpOptions & ScaleOptions<D>;

/** For operations with one special rank. */
export interface RootOptions {
  /** 0 when absent. */
  root?: Rank | undefined;
}

/** Where the result goes. */
export interface OutOptions<O> {
  /** Where the result goes; when absent, in place or into a new array, as the call says. */
  out?: O | undefined;
}

/** The dtype that may be named with data of type `D`. */
export interface DTypeOption<D> {
  /** Inferred from the array; a Uint16Array must say `'float16'` or `'bfloat16'`. */
  dtype?: DTypeOf<ArrayOfRank<D>> | undefined;
}

/**
 * The options argument that belongs to data of type `D`: it may be left out unless the array is a Uint16Array, which
 * must be told its dtype.
 */
export type Options<D, O extends object> = [ArrayOfRank<D>] extends [Uint16Array]
  ? [options: O & { dtype: HalfDType }]
  : [options?: O & DTypeOption<D>];

/** The same where some of the options are required, so that the argument is. */
export type RequiredOptions<D, O extends object> = [options: O & NonNullable<Options<D, O>[0]>];

/**
 * Options of {@link Communicator.neighborAllReduce}. Without weights the topology decides; `selfWeight` and
 * `srcWeights` belong together; with `dstWeights` all three are given, and the topology plays no part.
 */
export interface NeighborOptions {
  /** The weight of a rank's own data. */
  selfWeight?: number | undefined;
  /**
   * For each rank that this one receives from, the weight its contribution is multiplied by here. Without
   * `dstWeights` only sources of the topology; those left out count 0.
   */
  srcWeights?: RankWeights | undefined;
  /** For each rank that this one sends to, the weight its data is multiplied by there; a list means 1 for each. */
  dstWeights?: RankWeights | readonly Rank[] | undefined;
  /**
   * False: the caller vouches that senders and receivers agree, and nobody compares. Where they do not agree the
   * result is undefined, or the call ends with ERR_TIMEOUT. One rank that leaves it true has all compared. True when
   * absent.
   */
  checkTopology?: boolean | undefined;
}

/** Options of {@link Communicator.setFusion}. */
export interface FusionOptions {
  /** Arrays of up to so many bytes go together, up to so many bytes at a time; 8 MiB when absent, 0: none does. */
  thresholdBytes?: number | undefined;
  /**
   * Milliseconds that the first of several waits for others; 0 when absent: what came while the communicator was busy
   * goes together.
   */
  cycleMs?: number | undefined;
}

/** Options of {@link Communicator.neighborAllGather}: both lists or none. */
export interface NeighborGatherOptions {
  /** Ranks to receive from, in the order of the result; the topology's sources, ascending, when absent. */
  srcRanks?: readonly Rank[] | undefined;
  /** Ranks to send to; the topology's destinations when absent. */
  dstRanks?: readonly Rank[] | undefined;
  /** Elements that each source sends, in the order of the sources; as many as `data` has when absent. */
  srcCounts?: readonly number[] | undefined;
}

/** Options of {@link Communicator.pairGossip}: both weights or none. */
export interface GossipOptions {
  /** The other rank, which names this one. */
  peer: Rank;
  /** The weight of a rank's own data; 1/2 when absent. */
  selfWeight?: number | undefined;
  /** The weight of the other's data; 1/2 when absent. */
  pairWeight?: number | undefined;
}

/** Options of {@link Communicator.setTopology}. */
export interface TopologyOptions {
  /** Whether the graph's weights are used; false, uniform averaging over a rank and its sources, when absent. */
  weighted?: boolean | undefined;
}

/** Options of {@link Communicator.setMachineTopology}. */
export interface MachineTopologyOptions extends TopologyOptions, CallOptions {
  /**
   * Ranks of each node, a divisor of the size. When absent: GRADLINK_RANKS_PER_NODE, the launcher's count of ranks on
   * this host, or all.
   */
  ranksPerNode?: number | undefined;
}

/** Options of {@link Communicator.hierarchicalNeighborAllReduce}: all weights or none. */
export interface HierarchicalOptions {
  /** The weight of the own node's sum. */
  selfWeight?: number | undefined;
  /** For each node that this one receives from, the weight of its sum. */
  srcMachineWeights?: NodeWeights | undefined;
  /** For each node that this one sends to, the weight its sum is multiplied by there; a list means 1 for each. */
  dstMachineWeights?: NodeWeights | readonly Node[] | undefined;
}

/** Options of {@link Communicator.createWindow}. */
export interface WindowOptions {
  /** What {@link Communicator.window} finds it by, the same on all ranks; it can be found by none when absent. */
  name?: string | undefined;
  /** Whether the buffers hold zeros at first instead of a copy of the data; false when absent. */
  zeroInit?: boolean | undefined;
  /** Whether a number p goes through the same sums as the array, for push-sum; false when absent. */
  associatedP?: boolean | undefined;
  /** Milliseconds of the meeting, and how long an operation waits for memory that is in use; 30 000 when absent. */
  timeoutMs?: number | undefined;
}

/** Where a received message came from. */
export interface Received {
  /** The rank that sent it. */
  readonly source: Rank;
  /** Elements that came; the rest of the buffer is as it was. */
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
  /** Only a message of this tag; default 0. */
  tag?: number | undefined;
}

/** Options of a scatter on a rank that brings no data: the array is made. */
export interface ScatterCount<K extends AnyDType> extends RootOptions {
  /** Of the elements that arrive. */
  dtype: K;
  /** Elements that this rank gets. */
  count: number;
}

/** What argument checks need to know of a communicator. */
export interface Group {
  readonly size: number;
  /** The first rank held here. */
  readonly rank: number;
  /** One rank, or, of a group, each that this process holds. */
  readonly heldRanks: readonly number[];
  /** The GPU of each of these; empty where the ranks' arrays are in the memory of the host. */
  readonly gpus: readonly number[];
  /** Calls bring a list of arrays, one for each rank held here; else the one rank's array. */
  readonly takesLists: boolean;
}
