// The common part of all communicators, with one rank or all: size, memory, shared arrays, fusion.
import { GradlinkError } from '../errors.js';
import type { Timeline } from '../files/timeline.js';
import type { NativeCommunicator } from '../native/communicator.js';
import { wrapBuffer } from '../tensor/device-buffer.js';
import type { DeviceBuffer } from '../tensor/device-buffer.js';
import {
  allocate,
  arrayOver,
  elementBytes,
  parseDType,
  parseDeviceDType,
} from '../tensor/dtype.js';
import type { ArrayOf, DType, DeviceDType } from '../tensor/dtype.js';
import { shownElements } from '../tensor/memory.js';
import { aString, integer, milliseconds, optionNames, optionsObject } from '../checks.js';
import type { Executor } from './executor.js';
import { callNames } from './calls/option-names.js';
import { CallTrace, startTimeline } from './call-trace.js';
import type { CallOptions, FusionOptions, Memory } from './calls/types.js';

const fusionNames = optionNames<FusionOptions>({ thresholdBytes: true, cycleMs: true });

/** For other parts of this package. */
export let executorOf: (communicator: CommunicatorBase<Memory>) => Executor;

/** The common part of {@link Communicator} and {@link LocalGroup}, besides the collectives. */
export abstract class CommunicatorBase<M extends Memory> {
  /** The number of ranks. */
  readonly size: number;
  /**
   * `'shm'`: the embedded engine over host memory. `'mpi'`: processes of an MPI job. `'tcp'`: processes connected
   * without MPI. `'nccl'`: ranks are GPUs.
   */
  readonly backend: 'shm' | 'mpi' | 'tcp' | 'nccl';
  /** Where the arrays of calls are: `'gpu'` means {@link DeviceBuffer}s on {@link gpus}. */
  readonly memory: M;
  /** The GPU of each rank held here; empty for host memory. */
  readonly gpus: readonly number[];
  /** @internal */
  protected readonly executor: Executor;

  static {
    executorOf = (communicator) => communicator.executor;
  }

  /** @internal */
  protected constructor(executor: Executor, memory: M) {
    this.executor = executor;
    this.size = executor.size;
    this.gpus = executor.gpus;
    this.memory = memory;
    this.backend = executor.native.backend as 'shm' | 'mpi' | 'tcp' | 'nccl';
  }

  /**
   * Fuses small arrays from now on: consecutive allReduce and neighborAllReduce calls of one type, operation and
   * weights are packed, moved together and unpacked. Ranks agree on the number, which costs a small call per group. Off
   * by default. Blocking calls and other operations are not fused and keep their order.
   *
   * All ranks set the same. For ranks in host memory.
   */
  setFusion(this: CommunicatorBase<'host'>, options?: FusionOptions): void {
    const given = optionsObject(options, fusionNames, 'setFusion');
    const bytes = integer(given.thresholdBytes ?? 8 * 2 ** 20, 'thresholdBytes', 0, 2 ** 31);
    const waitMs = given.cycleMs === 0 ? 0 : milliseconds(given.cycleMs, 'cycleMs', 0);
    if (this.executor.gpus.length > 0) {
      const message = 'setFusion: for ranks in the memory of the host';
      throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'setFusion', usable: true });
    }
    this.executor.native.setFusion(bytes, waitMs);
  }

  /**
   * A zeroed array in memory that every rank of the host maps, so that collectives need no staging. A local call. The
   * array is freed by garbage collection or by closing the communicator, and is empty after that.
   *
   * @param count - number of elements; Node 20 limits an array of native memory to 4 GiB.
   */
  allocShared<K extends DType>(
    this: CommunicatorBase<'host'>,
    dtype: K,
    count: number,
  ): ArrayOf[K] {
    const number = parseDType(dtype);
    const elements = shownElements(count, 'count', elementBytes[number]!);
    if (elements === 0) return allocate(number, 0) as ArrayOf[K];
    const buffer = this.executor.native.allocShared(elements * elementBytes[number]!);
    return arrayOver(number, buffer, elements) as ArrayOf[K];
  }

  /**
   * Records when each operation ran, as a Chrome trace (chrome://tracing, Perfetto) that is valid JSON at any time.
   * Rank 3 writes `trace.json` to `trace.rank-3.json`; `mergeTimelines` of `gradlink/tfjs` combines ranks.
   * GRADLINK_TIMELINE names a file for {@link Communicator.world}.
   *
   * @throws GradlinkError ERR_SYSTEM if the file cannot be written; ERR_UNSUPPORTED while another timeline is open.
   */
  startTimeline(file: string): void {
    startTimeline(this.executor, file);
  }
  /** Completes the timeline and stops recording; so does closing. Idempotent. */
  stopTimeline(): void {
    this.executor.stopTrace();
  }

  /**
   * Ends pending and later operations on all ranks with ERR_ABORTED and this reason. Callable at any time; afterwards
   * the communicator can only be closed.
   */
  abort(reason = 'abort() was called'): void {
    this.executor.native.abort(aString(reason, 'reason'));
  }
}

/** Records a communicator's operations on a shared timeline, whose owner closes it. */
export function traceInto(communicator: CommunicatorBase<Memory>, timeline: Timeline): void {
  executorOf(communicator).trace = new CallTrace(timeline, false);
}

export function nativeOf(communicator: CommunicatorBase<Memory>): NativeCommunicator {
  return executorOf(communicator).native;
}

/** One for each rank held here. See {@link Communicator.allocRegistered}. */
export async function allocRegistered<K extends DeviceDType>(
  executor: Executor,
  dtype: K,
  count: number,
  options: CallOptions | undefined,
): Promise<DeviceBuffer<K>[]> {
  const op = 'allocRegistered';
  const number = parseDeviceDType(dtype);
  const elements = integer(count, 'count', 0, Number.MAX_SAFE_INTEGER);
  const given = optionsObject(options, callNames, op);
  const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
  if (executor.gpus.length === 0) {
    const message = `${op}: for ranks on GPUs; allocShared gives memory of the host that ranks share`;
    throw new GradlinkError('ERR_UNSUPPORTED', message, { op, usable: true });
  }
  const start = () => executor.native.allocRegistered(number, elements, timeoutMs);
  const made = await executor.submit({ op, reads: null, writes: null, start }, undefined);
  return made.map((one) => wrapBuffer(one) as DeviceBuffer<K>);
}
