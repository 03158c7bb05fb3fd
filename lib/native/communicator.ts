// The native interface of communicators: native/binding/communicator. It validates only what memory safety needs.
import type { NativeCollective } from '../collectives.js';
import type { StorageArray } from './arrays.js';
import type { NativeDeviceBuffer } from './gpu.js';

/** A rank's array in host memory, or on its GPU. */
export type NativeBuffer = StorageArray | NativeDeviceBuffer;

/** The arrays of one rank or, as a list, of each held rank; null where a rank needs none. */
export type NativeBuffers = NativeBuffer | readonly (NativeBuffer | null)[] | null;

/** Packs operation, dtype number and reduce-op number: passing one argument is cheaper than three. */
export function encodeCall(op: number, dtype: number, reduceOp: number): number {
  return op | (dtype << 8) | (reduceOp << 16);
}

export interface NativeJoinOptions {
  readonly job: string;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** Milliseconds; Infinity waits forever. */
  readonly timeoutMs: number;
  readonly threads: boolean;
}

export interface NativeMpiJoinOptions {
  readonly name: string;
  /** The members' ranks in MPI_COMM_WORLD, ascending; empty: all. */
  readonly ranks: Int32Array;
  /** Milliseconds; Infinity waits forever. */
  readonly timeoutMs: number;
}

/** Which calls in a GPU world the ranks compare first. */
export type NativeCheck = 'always' | 'first' | 'never';

/** This process's rank in a job without MPI. */
export interface NativeTcpOptions {
  readonly rank: number;
  readonly size: number;
  /** Where rank 0 listens. */
  readonly address: string;
  readonly port: number;
  /** The address of this host to listen on and connect from; empty: that of the route to rank 0. */
  readonly own: string;
  /** The port range of the other ranks, inclusive; 0: any. */
  readonly firstPort: number;
  readonly lastPort: number;
  /** Known only to the job's processes. */
  readonly secret: string;
  /** Whether all payloads carry a MAC, not just the short ones. */
  readonly sealsAll: boolean;
  /** Seconds of silence from a rank before the system probes its host; 0: never. */
  readonly keepAliveSeconds: number;
}

/** The MPI that this process uses. */
export interface NativeMpiLibrary {
  /** 'openmpi', 'mpich', or 'tcp' for ranks without MPI. */
  readonly flavour: string;
  /** The first line of its version text. */
  readonly version: string;
  /** The shim for it. */
  readonly file: string;
  /** The environment variable that selected it. */
  readonly chosenBy: string;
}

export interface NativeNeighborhood {
  readonly selfWeight: number;
  readonly sourceRanks: Int32Array;
  readonly sourceWeights: Float64Array;
  readonly destinationRanks: Int32Array;
  readonly destinationWeights: Float64Array;
  /** The divisor of the sum before rounding or wrapping, at least 1. */
  readonly divisor: number;
  /** False: neighbour lists are not compared between ranks. */
  readonly check: boolean;
}

/** The counts of a collective, for each held rank in turn. */
export interface NativeCounts {
  readonly sent: Float64Array;
  /** Elements from each rank; null: any number. */
  readonly expected: Float64Array | null;
}

/** One rank's sources and destinations in a neighborAllGather. */
export interface NativeGather {
  readonly sources: Int32Array;
  /** Elements of each source, concatenated in the output. */
  readonly counts: Float64Array;
  readonly destinations: Int32Array;
}

/** One rank's side of a pair average; `held`: index of the held rank. */
export interface NativeGossip {
  readonly held: number;
  readonly peer: number;
  readonly selfWeight: number;
  readonly pairWeight: number;
}

/** A message of held NCCL ranks in a joint call. */
export interface NativeMessage {
  /** Index of the held rank. */
  readonly held: number;
  readonly peer: number;
  /** True: its data is the next input; false: the next output. */
  readonly sends: boolean;
  readonly dtype: number;
}

/** Further arguments of a call: see {@link NativeCommunicator.run}. */
export type NativeMore =
  | Float64Array
  | NativeCounts
  | readonly (NativeNeighborhood | NativeGather | NativeGossip | NativeMessage)[];

export interface NativeReceived {
  readonly source: number;
  readonly count: number;
}

export interface NativeCounted {
  /** Counts from each rank, for each held rank in turn. */
  readonly counts: Float64Array;
  /** Memory allocated for each held rank; null if `out` was given or nothing arrived. */
  readonly made: readonly (ArrayBuffer | null)[];
}

/** Results besides the output: of a receive, of a collective with counts, of others. */
export type NativeResult = NativeReceived | NativeCounted | undefined;

/**
 * A native communicator with its own thread. `timeoutMs` below 0 is the communicator's default; a nonzero `ticket`
 * identifies the operation for cancel().
 */
export interface NativeCommunicator {
  readonly size: number;
  readonly heldRanks: readonly number[];
  readonly backend: string;
  /** The GPU of each held rank; empty for host memory. */
  readonly gpus: readonly number[];
  /**
   * Any call of nativeCalls but split:
   *
   * | call                          | input, output               | more                                                |
   * | ----------------------------- | --------------------------- | --------------------------------------------------- |
   * | collectives                   | as the table says           | of a sum the factors of the inputs of the held      |
   * |                               |                             | ranks; in host memory one more, for the results     |
   * | neighborAllReduce             | `count` elements each       | NativeNeighborhood of each held rank                |
   * | allToAllV … reduceScatterV    | lists; null: none, is made  | NativeCounts                                        |
   * | neighborAllGather             | lists                       | NativeGather of each held rank                      |
   * | pairGossip                    | lists, of each pair         | NativeGossip of each held rank that has a peer      |
   * | send, receive                 | an array; `count` is the    | nothing                                             |
   * |                               | tag, `root` the other rank, |                                                     |
   * |                               | -1 for any source           |                                                     |
   * | send, receive, sendReceive    | what is sent, what comes    | NativeMessage of each; in the order of both lists   |
   *
   * @param call - see encodeCall
   * @param count - in elements, as native/core/communicator.h defines it
   * @param name - the caller's name, shown to all ranks in mismatch errors
   */
  run(
    call: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    root: number,
    timeoutMs: number,
    ticket: number,
    more?: NativeMore,
    name?: string,
  ): Promise<NativeResult>;
  /** As run, on the caller's thread if nothing is pending, else after it. */
  runSync(
    call: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    root: number,
    timeoutMs: number,
    more?: NativeMore,
    name?: string,
  ): NativeResult;
  /**
   * Fuses later consecutive sums of up to this many bytes, up to this many bytes at a time; 0: no fusion.
   *
   * @param waitMs - the wait of the first for others
   */
  setFusion(mostBytes: number, waitMs: number): void;
  /** @param forCollectives - on GPUs: NCCL connects at the first collective, which must precede calls of two ranks */
  split(
    color: number,
    key: number,
    timeoutMs: number,
    forCollectives: boolean,
  ): Promise<NativeCommunicator | null>;
  /**
   * For NCCL: a color and key for each held rank. Returns each rank's group, the same object for ranks of one group,
   * null for a color below 0.
   */
  splitHeld(
    colors: Int32Array,
    keys: Int32Array,
    timeoutMs: number,
  ): Promise<(NativeCommunicator | null)[]>;
  /**
   * Ends waiting calls here with the error that ends `above`, which includes all ranks of this one. Not for MPI jobs
   * and GPUs.
   */
  follow(above: NativeCommunicator): void;
  /** Lets ranks join from now on; waits for pending calls. Throws for several held ranks or GPUs. */
  setJoinable(): void;
  /**
   * Takes part in others' calls until all ranks have joined; returns the last. `timeoutMs` is between two of their
   * calls.
   */
  joinOthers(timeoutMs: number, ticket: number): Promise<number>;
  /** Memory that every rank of the host can map, until close() or garbage collection. */
  allocShared(bytes: number): ArrayBuffer;
  /** A buffer on each held rank's GPU, registered with NCCL if supported. Collective. */
  allocRegistered(dtype: number, count: number, timeoutMs: number): Promise<NativeDeviceBuffer[]>;
  /** True: the operation had not begun and is dropped. False: it is running or done. */
  cancel(ticket: number): boolean;
  abort(reason: string): void;
  /** Later calls fail at once; resolves when pending ones are done and the ranks have left. Idempotent. */
  close(): Promise<void>;
}

export interface NativeCommunicatorClass {
  readonly prototype: NativeCommunicator;
  /** One communicator that holds all `size` ranks. */
  local(size: number): NativeCommunicator;
  join(options: NativeJoinOptions): Promise<NativeCommunicator>;
  /** `size` communicators of one rank each, optionally with a GPU each, joined within this process. */
  joinAll(
    size: number,
    name: string,
    timeoutMs: number,
    gpus: Int32Array | null,
  ): NativeCommunicator[];
  /** One communicator with a rank for each GPU. */
  openNccl(gpus: Int32Array, timeoutMs: number): Promise<NativeCommunicator>;
  /**
   * As join, for processes that hold a rank for each GPU: they coordinate through host memory and transfer data with
   * NCCL.
   */
  joinNccl(
    options: NativeJoinOptions,
    gpus: Int32Array,
    check: NativeCheck,
  ): Promise<NativeCommunicator>;
  /**
   * Joins ranks of the MPI or TCP job with the same name and members; with a GPU, this rank's arrays are there. With
   * `nccl` each process holds a rank for each GPU.
   *
   * @param nccl - the check mode of data over NCCL; null: through host memory
   */
  joinMpi(
    options: NativeMpiJoinOptions,
    gpus: Int32Array | null,
    nccl: NativeCheck | null,
  ): Promise<NativeCommunicator>;
}

export interface CommunicatorNatives {
  /** The native side of nativeCalls and nativeCollectives; the index of a row is its number. */
  readonly calls: readonly NativeCollective[];
  /** Throws ERR_MISMATCH if the records of the ranks' calls differ; the texts show them. */
  checkCalls(
    op: string,
    calls: readonly { readonly rank: number; readonly record: number; readonly call: string }[],
  ): void;
  readonly NativeCommunicator: NativeCommunicatorClass;
  /** Writes the message to standard error and ends all processes of the MPI job, if there is one. */
  abortMpiJob(message: string, status: number): void;
  /** Makes this process use TCP for joinMpi from now on; throws if it has joined over MPI. */
  useTcp(options: NativeTcpOptions): void;
  /** Loads the MPI; throws ERR_BACKEND_UNAVAILABLE if it fails. */
  mpiLibrary(): NativeMpiLibrary;
}
