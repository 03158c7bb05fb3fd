// How ranks that step separately synchronise: each algorithm's averaging of all weights.
import { adasumOf, adasumSyncOf } from '../communicator/collectives/adasum.js';
import { executorOf } from '../communicator/base.js';
import type { Communicator } from '../communicator/communicator.js';
import type { CallOptions } from '../communicator/calls/types.js';
import type { NeighborWindow } from '../communicator/windows/window.js';
import { GradlinkError, ruleError } from '../errors.js';
import { aFunction } from '../checks.js';
import type { FlatWeights } from './flat-weights.js';
import type { DistributedOptimizerOptions, StepNeighbors, TrainingAlgorithm } from './types.js';

export const algorithms: readonly TrainingAlgorithm[] = [
  'gradient-allreduce',
  'adapt-with-combine',
  'adapt-then-combine',
  'hierarchical',
  'local-sgd',
  'adasum',
  'window-put',
];

/** When an averaging runs within a step. */
export type AveragingPlace = 'before' | 'after' | 'of-change';

/** Averages the flat weights in place. */
export interface Averaging {
  readonly place: AveragingPlace;
  /** Collective setup before the first run. */
  prepare?(weights: FlatWeights): Promise<void>;
  run(weights: FlatWeights, step: number): Promise<void>;
  /** {@link run}, blocking. */
  runSync(weights: FlatWeights, step: number): void;
  close?(): Promise<void>;
}

/** @throws TypeError for neighbours that the algorithm does not use */
export function assertNeighbors(
  algorithm: TrainingAlgorithm,
  options: DistributedOptimizerOptions,
): void {
  const uses = {
    neighbors: ['adapt-with-combine', 'adapt-then-combine'],
    machineNeighbors: ['hierarchical'],
  } as const;
  for (const name of ['neighbors', 'machineNeighbors'] as const) {
    const given: unknown = options[name];
    if (given === undefined) continue;
    aFunction(given, name);
    if ((uses[name] as readonly TrainingAlgorithm[]).includes(algorithm)) continue;
    const fitting = uses[name].map((one) => `'${one}'`).join(' or ');
    const rule = `${name} needs algorithm ${fitting}, not '${algorithm}'`;
    throw ruleError('ERR_INVALID_ARG_VALUE', rule);
  }
}

/** The averaging of `algorithm`; undefined if it reduces gradients instead. */
export function averagingOf(
  algorithm: TrainingAlgorithm,
  comm: Communicator,
  options: DistributedOptimizerOptions,
): Averaging | undefined {
  const { timeoutMs, neighbors, machineNeighbors } = options;
  const calls: CallOptions = timeoutMs === undefined ? {} : { timeoutMs };
  switch (algorithm) {
    case 'gradient-allreduce':
      return undefined;
    case 'adapt-with-combine':
      return withNeighbors(comm, 'before', calls, neighbors);
    case 'adapt-then-combine':
      return withNeighbors(comm, 'after', calls, neighbors);
    case 'hierarchical':
      return {
        place: 'before',
        run: async ({ data }, step) => {
          await comm.hierarchicalNeighborAllReduce(data, { ...machineNeighbors?.(step), ...calls });
        },
        runSync: ({ data }, step) =>
          comm.hierarchicalNeighborAllReduceSync(data, { ...machineNeighbors?.(step), ...calls }),
      };
    case 'local-sgd':
      return {
        place: 'after',
        run: async ({ data }) => {
          await comm.allReduce(data, { op: 'avg', ...calls });
        },
        runSync: ({ data }) => comm.allReduceSync(data, { op: 'avg', ...calls }),
      };
    case 'adasum':
      return {
        place: 'of-change',
        run: async ({ data, offsets }) => {
          await adasumOf(executorOf(comm), data, calls, offsets);
        },
        runSync: ({ data, offsets }) => adasumSyncOf(executorOf(comm), data, calls, offsets),
      };
    case 'window-put':
      return new WindowPut(comm, calls);
  }
}

function withNeighbors(
  comm: Communicator,
  place: AveragingPlace,
  calls: CallOptions,
  neighbors: ((step: number) => StepNeighbors) | undefined,
): Averaging {
  // Neighbours chosen per step follow the same rule on all ranks; a check would cost as much as the exchange.
  const whom = (step: number) =>
    neighbors === undefined ? calls : { ...neighbors(step), checkTopology: false, ...calls };
  return {
    place,
    run: async ({ data }, step) => {
      await comm.neighborAllReduce(data, whom(step));
    },
    runSync: ({ data }, step) => comm.neighborAllReduceSync(data, whom(step)),
  };
}

/** Puts weights into the neighbors' windows and averages with what has arrived, without waiting. */
class WindowPut implements Averaging {
  readonly place = 'after';
  #window: NeighborWindow<Float32Array> | undefined;

  constructor(
    readonly comm: Communicator,
    readonly calls: CallOptions,
  ) {}

  async prepare({ data }: FlatWeights): Promise<void> {
    this.#window ??= await this.comm.createWindow(data, this.calls);
  }

  async run({ data }: FlatWeights): Promise<void> {
    const window = this.#prepared();
    window.array.set(data);
    await window.put(undefined, this.calls);
    data.set(await window.update(this.calls));
  }

  runSync({ data }: FlatWeights): void {
    const window = this.#prepared();
    window.array.set(data);
    window.putSync(undefined, this.calls);
    data.set(window.updateSync(this.calls));
  }

  async close(): Promise<void> {
    const window = this.#window;
    this.#window = undefined;
    await window?.free(this.calls);
  }

  #prepared(): NeighborWindow<Float32Array> {
    if (this.#window === undefined) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        "algorithm 'window-put': its window is made by all ranks together; await optimizer.prepare(model) on each first",
        { usable: true },
      );
    }
    return this.#window;
  }
}
