// An instance of each class that is exported, for the probes of its methods.
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as tf from '@tensorflow/tfjs-core';

import * as main from '../../lib/index.js';
import { Baselines } from '../../lib/measure/index.js';
import { ringGraph } from '../../lib/topology/index.js';
import * as tfjs from '../../lib/train/index.js';
import type { Instance, Maker } from './probes.js';

/** Where instances that need files have them; made by {@link prepareFolder}. */
let folder = '';
export function prepareFolder(): string {
  if (!existsSync(folder)) folder = mkdtempSync(join(tmpdir(), 'gradlink-misuse-'));
  return folder;
}

const plain = (make: () => object) => (): Promise<Instance> => Promise.resolve({ object: make() });

async function ofRank(
  make: (rank: main.Communicator) => object | Promise<object>,
): Promise<Instance> {
  const group = main.Communicator.local(1);
  const [rank] = await group.openRanks();
  return { object: await make(rank!), close: () => group.close() };
}

async function ofStore(make: (kv: main.KVStore) => object | Promise<object>): Promise<Instance> {
  const kv = await main.KVStore.create('local');
  return { object: await make(kv), close: () => kv.close() };
}

let variables = 0;
const variable = () => tf.variable(tf.tensor1d([1, 2]), true, `misuse-${String((variables += 1))}`);

/** Where a class of this name has no methods of its own to be tried, and why. */
export const without: ReadonlyMap<string, string> = new Map([
  ['DeviceBuffer', 'there is none without a GPU; test/gpu/buffers.test.ts'],
  ['WorldGroup', 'there is none without a GPU; test/gpu/groups.test.ts'],
  ['Optimizer', 'abstract: its methods are those of SGD'],
  ['LRScheduler', 'abstract: its methods are those of FactorScheduler'],
  ['GradlinkError', 'an error: it has no methods'],
  ['SyncBatchNormalization', 'its methods are those of a layer of TensorFlow.js: its errors'],
]);

const span = { maxUpdate: 10 };

export const instances: Readonly<Record<string, Maker>> = {
  LocalGroup: () => {
    const group = main.Communicator.local(1);
    return Promise.resolve({ object: group, close: () => group.close() });
  },
  Communicator: () => ofRank((rank) => rank),
  NeighborWindow: () => ofRank((rank) => rank.createWindow(new Float32Array(2))),
  KVStore: () => ofStore((kv) => kv),
  RowSparse: plain(
    () => new main.RowSparse({ indices: [0], data: new Float32Array(2), shape: [3, 2] }),
  ),
  ...Object.fromEntries(
    Object.entries(main as unknown as Record<string, new () => object>)
      .filter(([, value]) => value.prototype instanceof main.Optimizer)
      .map(([name, value]) => [name, plain(() => new value())]),
  ),
  FactorScheduler: plain(() => new main.FactorScheduler({ step: 1 })),
  FunctionScheduler: plain(() => new main.FunctionScheduler({ rate: () => 1, updates: 1 })),
  MultiFactorScheduler: plain(() => new main.MultiFactorScheduler({ steps: [1] })),
  CosineScheduler: plain(() => new main.CosineScheduler(span)),
  PolyScheduler: plain(() => new main.PolyScheduler(span)),
  Topology: plain(() => ringGraph(3)),
  Baselines: plain(() => new Baselines({ HOME: prepareFolder() })),
  Batches: plain(
    () => new tfjs.Batches(tfjs.syntheticImages('x', [2, 2, 1], { samples: 8 }), { batchSize: 2 }),
  ),
  Timeline: () => {
    const timeline = new tfjs.Timeline(join(prepareFolder(), 'trace.json'));
    return Promise.resolve({ object: timeline, close: () => timeline.close() });
  },
  GradientReducer: () =>
    ofRank((rank) => new tfjs.GradientReducer(rank, [{ name: 'a', shape: [2] }])),
  DistributedDataParallel: () =>
    ofRank((rank) => tfjs.DistributedDataParallel.create([variable()], rank)),
  DistributedOptimizer: () =>
    ofRank((rank) => new tfjs.DistributedOptimizer(tf.train.sgd(0.1), rank)),
  KVStoreTrainer: () =>
    ofStore((kv) => tfjs.KVStoreTrainer.create([variable()], kv, { optimizer: new main.SGD() })),
};
