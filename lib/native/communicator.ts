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

/** What one rank gives its destinations and gets of its sources. */
export interface NativeHeldGather {
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
  readonly sources: Int32Array;
  /** Elements of each source, which lie in `out` one after the other. */
  readonly counts: Float64Array;
  readonly destinations: Int32Array;
}

/** One rank's side of a pair that averages; `held`: which of the held ranks. */
export interface NativeHeldGossip {
  readonly held: number;
  readonly peer: number;
  readonly data: NativeBuffer;
  readonly out: NativeBuffer;
  readonly selfWeight: number;
  readonly pairWeight: number;
}

/** A message that a held rank sends or receives. */
export interface NativeHeldMessage {
  /** Which of the held ranks. */
  readonly held: number;
  readonly peer: number;
  readonly sends: boolean;
  readonly dtype: number;
  readonly data: NativeBuffer;
}

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
   * @param call - see encodeCall
   * @param count - in elements, as native/core/communicator.h defines it
   * @param scales - for each held rank what its input is multiplied by first; in host memory one more, for the results
   */
  run(
    call: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    root: number,
    timeoutMs: number,
    ticket: number,
    scales?: Float64Array,
  ): Promise<void>;
  /** As run, on the caller's thread when nothing is pending, else after it. */
  runSync(
    call: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    root: number,
    timeoutMs: number,
    scales?: Float64Array,
  ): void;
  /**
   * A collective with counts.
   *
   * @param kind - as native/core/counted.h numbers them
   * @param sent - elements for each rank, for each held rank in a row
   * @param expected - likewise from each rank; null: as many as come
   * @param output - null: the place is made
   */
  counted(
    kind: number,
    dtype: number,
    reduceOp: number,
    root: number,
    input: readonly (NativeBuffer | null)[],
    sent: Float64Array,
    expected: Float64Array | null,
    output: readonly (NativeBuffer | null)[],
    timeoutMs: number,
    ticket: number,
  ): Promise<NativeCounted>;
  countedSync(
    kind: number,
    dtype: number,
    reduceOp: number,
    root: number,
    input: readonly (NativeBuffer | null)[],
    sent: Float64Array,
    expected: Float64Array | null,
    output: readonly (NativeBuffer | null)[],
    timeoutMs: number,
  ): NativeCounted;
  neighborAllReduce(
    dtype: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    neighborhoods: readonly NativeNeighborhood[],
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  /**
   * Later sums of up to so many bytes that are issued in a row go together, so many bytes at a time; 0: none does.
   *
   * @param waitMs - how long the first waits for others
   */
  setFusion(mostBytes: number, waitMs: number): void;
  neighborAllReduceSync(
    dtype: number,
    input: NativeBuffers,
    output: NativeBuffers,
    count: number,
    neighborhoods: readonly NativeNeighborhood[],
    timeoutMs: number,
  ): void;
  /** @param counts - elements of each source, which lie in `out` one after the other */
  neighborAllGather(
    dtype: number,
    data: NativeBuffer,
    out: NativeBuffer,
    sources: Int32Array,
    counts: Float64Array,
    destinations: Int32Array,
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  neighborAllGatherSync(
    dtype: number,
    data: NativeBuffer,
    out: NativeBuffer,
    sources: Int32Array,
    counts: Float64Array,
    destinations: Int32Array,
    timeoutMs: number,
  ): void;
  pairGossip(
    dtype: number,
    data: NativeBuffer,
    out: NativeBuffer,
    peer: number,
    selfWeight: number,
    pairWeight: number,
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  pairGossipSync(
    dtype: number,
    data: NativeBuffer,
    out: NativeBuffer,
    peer: number,
    selfWeight: number,
    pairWeight: number,
    timeoutMs: number,
  ): void;
  send(
    dtype: number,
    data: NativeBuffer,
    destination: number,
    tag: number,
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  sendSync(
    dtype: number,
    data: NativeBuffer,
    destination: number,
    tag: number,
    timeoutMs: number,
  ): void;
  /** @param source - a rank, or -1 for any. */
  receive(
    dtype: number,
    data: NativeBuffer,
    source: number,
    tag: number,
    timeoutMs: number,
    ticket: number,
  ): Promise<NativeReceived>;
  receiveSync(
    dtype: number,
    data: NativeBuffer,
    source: number,
    tag: number,
    timeoutMs: number,
  ): NativeReceived;
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
  /** Messages of held ranks of NCCL, all together. */
  messages(
    op: string,
    messages: readonly NativeHeldMessage[],
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  /** neighborAllGather of held ranks of NCCL, one for each in their order. */
  gatherFromNeighbors(
    dtype: number,
    held: readonly NativeHeldGather[],
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  gatherFromNeighborsSync(
    dtype: number,
    held: readonly NativeHeldGather[],
    timeoutMs: number,
  ): void;
  /** pairGossip of held ranks of NCCL, all together. */
  gossip(
    dtype: number,
    pairs: readonly NativeHeldGossip[],
    timeoutMs: number,
    ticket: number,
  ): Promise<void>;
  gossipSync(dtype: number, pairs: readonly NativeHeldGossip[], timeoutMs: number): void;
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
  /** What nativeCollectives repeats. */
  readonly collectives: readonly NativeCollective[];
  readonly NativeCommunicator: NativeCommunicatorClass;
  /** Writes the message to standard error and ends all processes of the MPI job; only writes where there is none. */
  abortMpiJob(message: string, status: number): void;
  /** From here on this process joins over TCP what joinMpi names; throws where it has joined over MPI. */
  useTcp(options: NativeTcpOptions): void;
  /** Loads it; throws ERR_BACKEND_UNAVAILABLE where it does not. */
  mpiLibrary(): NativeMpiLibrary;
}
