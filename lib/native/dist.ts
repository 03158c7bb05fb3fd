// The native interface of stores with several processes: native/binding/store/dist_*.cc.
import type { StorageArray } from './arrays.js';

/** Where the processes of a store connect, and this one's rank. */
export interface NativePlace {
  /** `'shm'`: processes of this host. `'mpi'`: ranks of the job's MPI. `'tcp'`: ranks without MPI. */
  readonly backend: 'shm' | 'mpi' | 'tcp';
  readonly job: string;
  readonly name: string;
  /** Workers first, then servers. */
  readonly rank: number;
  readonly size: number;
  /** Whether these are all processes of the job; otherwise its first ones. */
  readonly wholeJob: boolean;
  /** Milliseconds until all must have joined; Infinity waits forever. */
  readonly timeoutMs: number;
}

/** Common options of stores with several workers. */
interface NativeWorkerOptions {
  /** Arrays per push. */
  readonly devices: number;
  /** One per device; null for CPU devices. */
  readonly gpus: readonly number[] | null;
  /** Whether GPU arrays are summed in host memory instead of on a GPU. */
  readonly mergeOnHost: boolean;
  /** How GPUs sum: a number of nativeGpuMerges. */
  readonly merge: number;
  /** Milliseconds that an operation may wait for other workers. */
  readonly timeoutMs: number;
}

export interface NativeAllreduceOptions extends NativeWorkerOptions {
  /** Whether each worker updates a part of every key. */
  readonly shardOptimizer: boolean;
}

export interface NativeDistOptions extends NativeWorkerOptions {
  readonly workers: number;
  readonly servers: number;
  readonly asynchronous: boolean;
  /** Keys with at least this many elements are split over all servers. */
  readonly bigArrayBound: number;
}

/** Elements `first` to `first + count - 1` of a key are on this server; int keys are in decimal. */
export interface ShardPlace {
  /** The key, as given to `init`. */
  readonly key: string;
  /** The server's number, from 0. */
  readonly server: number;
  /** Index of its first element. */
  readonly first: number;
  /** Number of elements. */
  readonly count: number;
}

/** This worker's seconds and bytes. Some fields depend on servers. */
export interface WorkerReport {
  /** Seconds of copying to and from memory that others read. */
  readonly copy: number;
  /** Seconds of waiting for servers, or for other workers. */
  readonly wait: number;
  /** Seconds of summing. Absent with servers. */
  readonly reduce?: number;
  /** Seconds of storing sums, including optimizer steps. Absent with servers. */
  readonly update?: number;
  /** Bytes that this worker contributed to sums. Absent with servers. */
  readonly bytesReduced?: number;
  /** Bytes to each server. Absent without servers. */
  readonly bytesSent?: readonly number[];
  /** Bytes from each server. Absent without servers. */
  readonly bytesReceived?: readonly number[];
}

/** The calls of stores with several workers; other stores throw ERR_UNSUPPORTED. */
export interface NativeDistCalls {
  leave(): Promise<void> | undefined;
  /**
   * Resolves when every server has run its handler.
   *
   * @param op - the public call, for the error of a store without servers.
   */
  command(text: string, op: string): Promise<void> | undefined;
  /** Zeroed memory that servers of this host read in place; null if the store has none. */
  allocShared(bytes: number): ArrayBuffer | null;
  deadNodes(): number;
  /** Handles arrived answers on this thread; returns whether to call again in the next turn of the event loop. */
  look(): boolean;
  placement(): ShardPlace[];
  workerReport(): WorkerReport;
  /** Each server's counters as JSON text. */
  serverReports(): Promise<string[]> | string[];
  /** From now on, exiting without close() is reported to the others as a death. */
  drop(): void;
}

/** A server's work: `merge` and `update` are seconds of all its pipelines together, `wait` of its receiving thread. */
export interface ServerReport {
  /** Its number, from 0. */
  readonly server: number;
  /** Whole and partial keys that it holds. */
  readonly shards: number;
  /** Their elements. */
  readonly elements: number;
  /** Bytes from all workers. */
  readonly bytesReceived: number;
  /** Bytes to all workers. */
  readonly bytesSent: number;
  /** Parallel merge pipelines. */
  readonly pipelines: number;
  /** Seconds of summing, over all pipelines. */
  readonly merge: number;
  /** Seconds of the optimizer, over all pipelines. */
  readonly update: number;
  /** Seconds that its receiving thread waited. */
  readonly wait: number;
}

/** Leaves the new value in `stored`, which starts at element `first`. */
export type NativeServerUpdater = (
  key: string,
  received: StorageArray,
  stored: StorageArray,
  first: number,
) => void;

export interface NativeServerOptions {
  /** Merge pipelines; 0: one per core. */
  readonly threads: number;
  readonly tolerateWorkerLoss: boolean;
}

/** One server's part in one store. Call meet() and serve() once each, in this order. */
export interface NativeServer {
  /** Resolves when all workers and servers have joined. */
  meet(): Promise<void>;
  /** Resolves when all workers have left. */
  serve(): Promise<ServerReport>;
  /** Instead of the other two: resolves when the workers of this MPI job exit. */
  waitForExit(): Promise<void>;
  /** Makes pending calls reject with ERR_CLOSED soon. */
  stop(): void;
  /** Starts or stops recording; starting drops earlier records. */
  trace(on: boolean): void;
  /** Records since the last call. */
  takeTrace(): NativeServerTrace;
}

/** The fields of a trace event, in the order of a {@link NativeServerTrace}. */
export const nativeTraceFields = [
  'name', // of NativeServerTrace.names
  'lane', // 0: the receiving thread, else the pipeline, from 1
  'key', // of NativeServerTrace.keys; -1: none
  'worker', // -1: several or none
  'pushes', // merged pushes
  'bytes',
  'begin', // seconds of the monotonic clock
  'end',
] as const;

export interface NativeServerTrace {
  /** Events, concatenated. */
  readonly events: Float64Array;
  /** The first three are merge, update and answer, the others are received messages. */
  readonly names: readonly string[];
  readonly keys: readonly string[];
  /** Events dropped for lack of space. */
  readonly lost: number;
  readonly pipelines: number;
}

export interface NativeServerClass {
  readonly prototype: NativeServer;
  new (
    place: NativePlace,
    options: NativeServerOptions,
    /** Returns why the command failed, if it did. */
    onCommand: ((worker: number, command: string) => string | undefined) | null,
    updater: NativeServerUpdater | null,
  ): NativeServer;
}

export interface DistNatives {
  readonly NativeServer: NativeServerClass;
}
