// The native surface of communicators: native/binding/communicator. No meaning is checked there, only what
// memory safety needs.
import type { NativeCollective } from '../collectives.js';
import type { StorageArray } from './arrays.js';
import type { NativeDeviceBuffer } from './gpu.js';

/** The array of one rank: in host memory, or on the GPU that is the rank. */
export type NativeBuffer = StorageArray | NativeDeviceBuffer;

/** What one rank or, as an array, each held rank brings; null where a rank needs no such memory. */
export type NativeBuffers = NativeBuffer | readonly (NativeBuffer | null)[] | null;

/** Packs operation, dtype number and reduce-op number: one argument is cheaper to hand over than three. */
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

/** Which calls of a world of GPUs the ranks agree on first. */
export type NativeCheck = 'always' | 'first' | 'never';

/** This process's place in a job without MPI. */
export interface NativeTcpOptions {
  readonly rank: number;
  readonly size: number;
  /** Where rank 0 listens. */
  readonly address: string;
  readonly port: number;
  /** The address of this host that listens and calls; empty: as the way to rank 0 goes. */
  readonly own: string;
  /** The ports that the other ranks choose theirs from, both included; 0: any. */
  readonly firstPort: number;
  readonly lastPort: number;
  /** What only processes of the job know. */
  readonly secret: string;
  /** Whether payloads of any length carry a MAC, not the short ones alone. */
  readonly sealsAll: boolean;
  /** After so many seconds without anything from a rank the system asks whether its host is there; 0: never. */
  readonly keepAliveSeconds: number;
}

/** Which MPI this process uses. */
export interface NativeMpiLibrary {
  /** 'openmpi', 'mpich', or 'tcp' for ranks without MPI. */
  readonly flavour: string;
  /** The first line of what it says of itself. */
  readonly version: string;
  /** The shim between it and this package. */
  readonly file: string;
  /** The environment variable that told. */
  readonly chosenBy: string;
}

export interface NativeNeighborhood {
  readonly selfWeight: number;
  readonly sourceRanks: Int32Array;
  readonly sourceWeights: Float64Array;
  readonly destinationRanks: Int32Array;
  readonly destinationWeights: Float64Array;
  /** What the sum is divided by before it is rounded or wraps, 1 or more. */
  readonly divisor: number;
  /** False: nobody compares who names whom. */
  readonly check: boolean;
}

/** Who sends how much to whom in a collective with counts, for each held rank in a row. */
export interface NativeCounts {
  /** Elements for each rank. */
  readonly sent: Float64Array;
  /** Elements from each rank; null: as many as come. */
  readonly expected: Float64Array | null;
}

/** Whom one rank hears from in a neighborAllGather, and whom it sends to. */
export interface NativeGather {
  readonly sources: Int32Array;
  /** Elements of each source, which lie in the output one after the other. */
  readonly counts: Float64Array;
  readonly destinations: Int32Array;
}

/** One rank's side of a pair that averages; `held`: which of the held ranks. */
export interface NativeGossip {
  readonly held: number;
  readonly peer: number;
  readonly selfWeight: number;
  readonly pairWeight: number;
}

/** A message of held ranks of NCCL that go together. */
export interface NativeMessage {
  /** Which of the held ranks. */
  readonly held: number;
  readonly peer: number;
  /** True: its data is the next of the input; else the next of the output. */
  readonly sends: boolean;
  readonly dtype: number;
}

/** What a call brings besides: see {@link NativeCommunicator.run}. */
export type NativeMore =
  | Float64Array
  | NativeCounts
  | readonly (NativeNeighborhood | NativeGather | NativeGossip | NativeMessage)[];

export interface NativeReceived {
  readonly source: number;
  readonly count: number;
}

export interface NativeCounted {
  /** What came from each rank, for each held rank in a row. */
  readonly counts: Float64Array;
  /** The memory that was made for each held rank; null where there was a place, or nothing came. */
  readonly made: readonly (ArrayBuffer | null)[];
}

/** What a call gives besides what it writes: of a receive, of a collective with counts, of others. */
export type NativeResult = NativeReceived | NativeCounted | undefined;

/**
 * One native communicator with its own thread. In every call `timeoutMs` below 0 takes the communicator's own
 * default, and a `ticket` other than 0 names the operation for cancel().
 */
export interface NativeCommunicator {
  readonly size: number;
  readonly heldRanks: readonly number[];
  readonly backend: string;
  /** The GPU of each held rank; empty where the ranks' memory is the host's. */
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
   * @param name - what the caller named it: the ranks hear of it where their calls differ
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
  /** As run, on the caller's thread when nothing is pending, else after it. */
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
   * Later sums of up to so many bytes that are issued in a row go together, so many bytes at a time; 0: none does.
   *
   * @param waitMs - how long the first waits for others
   */
  setFusion(mostBytes: number, waitMs: number): void;
  /** @param forCollectives - of GPUs: the part meets in NCCL at its first collective; calls of two ranks come after that. */
  split(
    color: number,
    key: number,
    timeoutMs: number,
    forCollectives: boolean,
  ): Promise<NativeCommunicator | null>;
  /**
   * A color and key for each held rank, of ranks of NCCL: for each its part, the same object for those of one part, null
   * for a color below 0.
   */
  splitHeld(
    colors: Int32Array,
    keys: Int32Array,
    timeoutMs: number,
  ): Promise<(NativeCommunicator | null)[]>;
  /**
   * Calls here that wait end with what ended `above`, which all ranks of this one belong to. Ranks of an MPI job and GPUs
   * follow nobody.
   */
  follow(above: NativeCommunicator): void;
  /** From now on ranks may join; waits for what is pending, and throws where ranks are several or GPUs. */
  setJoinable(): void;
  /** Takes part in what others call until all have joined: the last. `timeoutMs` is between two calls of theirs. */
  joinOthers(timeoutMs: number, ticket: number): Promise<number>;
  /** Memory that every rank of the host can map, until close() empties the ArrayBuffer or it is collected. */
  allocShared(bytes: number): ArrayBuffer;
  /** A buffer on each held rank's GPU, which NCCL knows as far as it can. Collective. */
  allocRegistered(dtype: number, count: number, timeoutMs: number): Promise<NativeDeviceBuffer[]>;
  /** True: the operation had not begun and never will. False: it is running or done. */
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
  /** `size` communicators of one rank each, with a GPU each or none, joined in this process; returns when all have met. */
  joinAll(
    size: number,
    name: string,
    timeoutMs: number,
    gpus: Int32Array | null,
  ): NativeCommunicator[];
  /** One communicator that holds a rank for each of these GPUs. */
  openNccl(gpus: Int32Array, timeoutMs: number): Promise<NativeCommunicator>;
  /**
   * As join, and then what joins are processes that hold a rank for each of these GPUs: they meet and agree through host
   * memory, their data goes through NCCL.
   */
  joinNccl(
    options: NativeJoinOptions,
    gpus: Int32Array,
    check: NativeCheck,
  ): Promise<NativeCommunicator>;
  /**
   * Ranks of the MPI job, or of the job over TCP, that gave the same name and members; with a GPU, this rank's arrays are
   * there. With `nccl` what joins are processes that hold a rank for each of the GPUs.
   *
   * @param nccl - their data goes through NCCL, and the ranks agree as it says; null: through the memory of the host
   */
  joinMpi(
    options: NativeMpiJoinOptions,
    gpus: Int32Array | null,
    nccl: NativeCheck | null,
  ): Promise<NativeCommunicator>;
}

export interface CommunicatorNatives {
  /** What nativeCalls and nativeCollectives repeat; the place of a row is its number. */
  readonly calls: readonly NativeCollective[];
  /** Throws ERR_MISMATCH where the records of the ranks' calls differ; the texts show them. */
  checkCalls(
    op: string,
    calls: readonly { readonly rank: number; readonly record: number; readonly call: string }[],
  ): void;
  readonly NativeCommunicator: NativeCommunicatorClass;
  /** Writes the message to standard error and ends all processes of the MPI job; only writes where there is none. */
  abortMpiJob(message: string, status: number): void;
  /** From here on this process joins over TCP what joinMpi names; throws where it has joined over MPI. */
  useTcp(options: NativeTcpOptions): void;
  /** Loads it; throws ERR_BACKEND_UNAVAILABLE where it does not. */
  mpiLibrary(): NativeMpiLibrary;
}
