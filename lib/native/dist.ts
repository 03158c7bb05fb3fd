// The native surface of stores of several processes: native/binding/store/dist_*.cc.
import type { StorageArray } from './arrays.js';

/** Where the processes of a store meet, and which this one is. */
export interface NativePlace {
  /** `'shm'`: processes of this host. `'mpi'`: ranks of the job's MPI. `'tcp'`: ranks that meet without one. */
  readonly backend: 'shm' | 'mpi' | 'tcp';
  readonly job: string;
  readonly name: string;
  /** Workers first, then servers. */
  readonly rank: number;
  readonly size: number;
  /** Whether these are all processes of the job; else they are its first. */
  readonly wholeJob: boolean;
  /** Milliseconds until all must have come; Infinity waits forever. */
  readonly timeoutMs: number;
}

/** What stores of several workers have in common. */
interface NativeWorkerOptions {
  /** Arrays a push brings. */
  readonly devices: number;
  /** One a device, where devices are GPUs. */
  readonly gpus: readonly number[] | null;
  /** GPUs: whether their arrays are summed in the host's memory; else on a GPU. */
  readonly mergeOnHost: boolean;
  /** What sums on GPUs: a number of nativeGpuMerges. */
  readonly merge: number;
  /** Milliseconds that an operation may wait for other workers. */
  readonly timeoutMs: number;
}

export interface NativeAllreduceOptions extends NativeWorkerOptions {
  /** Whether each worker steps a part of every key. */
  readonly shardOptimizer: boolean;
}

export interface NativeDistOptions extends NativeWorkerOptions {
  readonly workers: number;
  readonly servers: number;
  readonly asynchronous: boolean;
  /** Keys of at least so many elements are cut over all servers. */
  readonly bigArrayBound: number;
}

/** Elements `first` to `first + count - 1` of a key lie on this server; int keys are in decimal. */
export interface ShardPlace {
  /** As `init` was given it. */
  readonly key: string;
  /** From 0. */
  readonly server: number;
  /** Index of its first element. */
  readonly first: number;
  /** Elements. */
  readonly count: number;
}

/** What this worker's part did: seconds, and bytes by server. Of a store without servers some are missing. */
export interface WorkerReport {
  /** Seconds of copying to and from memory that others read. */
  readonly copy: number;
  /** Seconds of waiting for servers, or for other workers. */
  readonly wait: number;
  /** Seconds in the sums. Absent with servers. */
  readonly reduce?: number;
  /** Seconds of storing sums, the optimizer's steps included. Absent with servers. */
  readonly update?: number;
  /** Bytes that this worker brought to sums. Absent with servers. */
  readonly bytesReduced?: number;
  /** To each server. Absent without servers. */
  readonly bytesSent?: readonly number[];
  /** From each server. Absent without servers. */
  readonly bytesReceived?: readonly number[];
}

/** What NativeKVStore has for stores of several workers; other stores throw ERR_UNSUPPORTED. */
export interface NativeDistCalls {
  /** The other workers no longer wait for this one. */
  leave(): Promise<void> | undefined;
  /**
   * Resolves when every server has run its handler.
   *
   * @param op - the call that it is for: for the error of a store without servers.
   */
  command(text: string, op: string): Promise<void> | undefined;
  /** Zeroed memory that servers of this host read where it lies; null where the store has none such. */
  allocShared(bytes: number): ArrayBuffer | null;
  deadNodes(): number;
  /** Handles the answers that have come, on this thread; whether to call again in the next turn of the event loop. */
  look(): boolean;
  placement(): ShardPlace[];
  workerReport(): WorkerReport;
  /** Each server's counters as JSON text. */
  serverReports(): Promise<string[]> | string[];
  /** From now on, when the environment ends without close(), the others learn it as a death. */
  drop(): void;
}

/** What a server did: `merge` and `update` are seconds of all its pipelines together, `wait` of its receiving thread. */
export interface ServerReport {
  /** Its number, from 0. */
  readonly server: number;
  /** Keys, and parts of keys, that it holds. */
  readonly shards: number;
  /** Elements of all of these. */
  readonly elements: number;
  /** From all workers. */
  readonly bytesReceived: number;
  /** To all workers. */
  readonly bytesSent: number;
  /** What merges and updates side by side. */
  readonly pipelines: number;
  /** Seconds of summing, of all pipelines together. */
  readonly merge: number;
  /** Seconds of the optimizer, of all pipelines together. */
  readonly update: number;
  /** Seconds that its receiving thread waited. */
  readonly wait: number;
}

/** What it leaves in `stored` becomes the value of the elements from `first` on. */
export type NativeServerUpdater = (
  key: string,
  received: StorageArray,
  stored: StorageArray,
  first: number,
) => void;

export interface NativeServerOptions {
  /** Merge pipelines; 0: one a core. */
  readonly threads: number;
  readonly tolerateWorkerLoss: boolean;
}

/** One server's part in one store. Each of meet() and serve() once, in this order. */
export interface NativeServer {
  /** Resolves when all workers and servers have come. */
  meet(): Promise<void>;
  /** Resolves when all workers have left. */
  serve(): Promise<ServerReport>;
  /** Instead of the other two: resolves when the workers of this MPI job are exiting. */
  waitForExit(): Promise<void>;
  /** Makes what is pending reject with ERR_CLOSED soon. */
  stop(): void;
  /** Whether to note from now on what the server does; beginning drops what was noted before. */
  trace(on: boolean): void;
  /** What was noted since the last call. */
  takeTrace(): NativeServerTrace;
}

/** What an event of a server's trace is, in this order; the numbers of a {@link NativeServerTrace}. */
export const nativeTraceFields = [
  'name', // of NativeServerTrace.names
  'lane', // 0: the receiving thread, else the pipeline, from 1
  'key', // of NativeServerTrace.keys; -1: none
  'worker', // -1: several or none
  'pushes', // that were merged
  'bytes',
  'begin', // seconds of the monotonic clock
  'end',
] as const;

export interface NativeServerTrace {
  /** One event after the other. */
  readonly events: Float64Array;
  /** The first three are merge, update and answer, the others messages that were received. */
  readonly names: readonly string[];
  readonly keys: readonly string[];
  /** Events that there was no room for. */
  readonly lost: number;
  /** How many the server has. */
  readonly pipelines: number;
}

export interface NativeServerClass {
  readonly prototype: NativeServer;
  new (
    place: NativePlace,
    options: NativeServerOptions,
    /** A text that it returns is why the command failed. */
    onCommand: ((worker: number, command: string) => string | undefined) | null,
    updater: NativeServerUpdater | null,
  ): NativeServer;
}

export interface DistNatives {
  readonly NativeServer: NativeServerClass;
}
