// Every public function that takes options refuses those it does not know, and names the one that was meant.
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator, KVStore, createOptimizer, isStoreType, serveJob } from '../lib/index.js';
import { parseStoreType } from '../lib/kvstore/types.js';
import { isNetworkName, listNetworks, network, networkNames } from '../lib/models/index.js';
import * as methods from '../lib/optimizers/decentralised/index.js';
import { ringGraph, toDot, toMermaid } from '../lib/topology/index.js';
import * as tfjs from '../lib/train/index.js';
import { optionNames, optionsObject } from '../lib/checks.js';
import { folderOfAllTests } from './support/folders.js';

/** Past the types, as JavaScript would call. */
type Loose = Record<string, (...args: unknown[]) => unknown>;
const loose = (object: object) => object as Loose;

const group = Communicator.local(1);
let rank: Loose;
let window: Loose;
let kv: Loose;
let folder: string;
folderOfAllTests((made) => (folder = made));
beforeAll(async () => {
  const [one] = (await group.openRanks()) as [Communicator];
  rank = loose(one);
  window = loose(await one.createWindow(new Float32Array(2)));
  kv = loose(await KVStore.create('local'));
});
afterAll(async () => {
  await kv['close']?.();
  await group.close();
});

const data = () => new Float32Array(2);
/** Of a rank, and of its blocking twin: what takes data, and an option of it. */
const ofData =
  `allReduce op, reduce op, reduceScatter op, broadcast root, gather root, scatter root, allGather out,
allToAll out, allToAllV splits, allGatherV counts, gatherV root, scatterV counts, reduceScatterV op,
neighborAllReduce srcWeights, neighborAllGather srcRanks, hierarchicalNeighborAllReduce srcMachineWeights,
pairGossip peer, send tag, receive from`
    .split(/,\s/)
    .map((one) => one.split(' '));
/** Of each call, what is right about a misspelt option, and the call. */
const calls: readonly (readonly [string, string, (wrong: object) => unknown])[] = [
  ...ofData.flatMap(([op = '', option = '']) =>
    [op, `${op}Sync`].map(
      (name) => [name, option, (wrong: object) => rank[name]?.(data(), wrong)] as const,
    ),
  ),
  ['barrier', 'timeoutMs', (wrong) => rank['barrier']?.(wrong)],
  ['barrierSync', 'timeoutMs', (wrong) => rank['barrierSync']?.(wrong)],
  ['group.allReduce', 'op', (wrong) => loose(group)['allReduce']?.([data()], wrong)],
  ['setTopology', 'weighted', (wrong) => rank['setTopology']?.(ringGraph(1), wrong)],
  ['setMachineTopology', 'ranksPerNode', (wrong) => rank['setMachineTopology']?.(undefined, wrong)],
  ['setFusion', 'cycleMs', (wrong) => rank['setFusion']?.(wrong)],
  ['split', 'timeoutMs', (wrong) => rank['split']?.(0, 0, wrong)],
  ['createWindow', 'zeroInit', (wrong) => rank['createWindow']?.(data(), wrong)],
  ['window.put', 'dstWeights', (wrong) => window['put']?.(undefined, wrong)],
  ['window.accumulate', 'dstWeights', (wrong) => window['accumulate']?.(undefined, wrong)],
  ['window.get', 'srcWeights', (wrong) => window['get']?.(wrong)],
  ['window.update', 'reset', (wrong) => window['update']?.(wrong)],
  ['window.updateThenCollect', 'timeoutMs', (wrong) => window['updateThenCollect']?.(wrong)],
  ['window.withMutex', 'forSelf', (wrong) => window['withMutex']?.(() => 0, wrong)],
  ['window.free', 'timeoutMs', (wrong) => window['free']?.(wrong)],
  ['Communicator.join', 'threads', (wrong) => Communicator.join(wrong as never)],
  ['Communicator.world', 'backend', (wrong) => Communicator.world(wrong)],
  ['Communicator.nccl', 'gpus', (wrong) => Communicator.nccl(wrong)],
  ['KVStore.create', 'devices', (wrong) => KVStore.create('local', wrong)],
  ['kv.init', 'shape', (wrong) => kv['init']?.('w', data(), wrong)],
  ['kv.push', 'priority', (wrong) => kv['push']?.('w', data(), wrong)],
  ['kv.pull', 'priority', (wrong) => kv['pull']?.('w', data(), wrong)],
  ['kv.pushPull', 'priority', (wrong) => kv['pushPull']?.('w', data(), data(), wrong)],
  ['kv.broadcast', 'priority', (wrong) => kv['broadcast']?.('w', data(), data(), wrong)],
  ['kv.rowSparsePull', 'priority', (wrong) => kv['rowSparsePull']?.('w', data(), [0], wrong)],
  ['kv.setGradientCompression', 'type', (wrong) => kv['setGradientCompression']?.(wrong)],
  ['kv.saveOptimizerStates', 'dumpOptimizer', (wrong) => kv['saveOptimizerStates']?.('x', wrong)],
  ['serveJob', 'onCommand', (wrong) => serveJob(wrong)],
  ['toDot', 'selfEdges', (wrong) => toDot(ringGraph(2), wrong)],
  ['toMermaid', 'weights', (wrong) => toMermaid(ringGraph(2), wrong)],
  ['network', 'numLayers', (wrong) => network('resnet', wrong)],
  ...Object.entries(methods).map(
    ([name, method]) => [name, 'stepSize', (wrong: object) => method(wrong as never)] as const,
  ),
  [
    'DistributedDataParallel',
    'findUnused',
    (wrong) => tfjs.DistributedDataParallel.create([], rank as never, wrong),
  ],
  [
    'DistributedOptimizer',
    'groups',
    (wrong) => new tfjs.DistributedOptimizer({} as never, rank as never, wrong),
  ],
  [
    'KVStoreTrainer',
    'prefix',
    (wrong) => tfjs.KVStoreTrainer.create([], kv as never, wrong as never),
  ],
  ['broadcastVariables', 'root', (wrong) => tfjs.broadcastVariables([], rank as never, wrong)],
  [
    'broadcastOptimizerState',
    'root',
    (wrong) => tfjs.broadcastOptimizerState({} as never, rank as never, wrong),
  ],
  [
    'saveCheckpoint',
    'keep',
    (wrong) => tfjs.saveCheckpoint(folder, rank as never, {} as never, [], wrong),
  ],
  ['GradientReducer', 'mode', (wrong) => new tfjs.GradientReducer(rank as never, [], wrong)],
  ['Timeline', 'buffered', (wrong) => new tfjs.Timeline(join(folder, 'trace.json'), wrong)],
  ['Batches', 'batchSize', (wrong) => new tfjs.Batches({} as never, wrong as never)],
  ['openDataset', 'imageSize', (wrong) => tfjs.openDataset('mnist', wrong)],
  ['syntheticImages', 'samples', (wrong) => tfjs.syntheticImages('x', [1, 1, 1], wrong)],
  ['syntheticTokens', 'samples', (wrong) => tfjs.syntheticTokens(1, 2, wrong)],
  ['buildModel', 'classes', (wrong) => tfjs.buildModel({} as never, 'mlp', wrong)],
];

describe('an unknown option', () => {
  it.each(calls)('of %s is refused where %s was meant', async (_, right, call) => {
    const wrong = `${right}X`;
    const called = Promise.resolve().then(() => call({ [wrong]: undefined }));
    await expect(called).rejects.toMatchObject({
      name: 'TypeError',
      code: 'ERR_INVALID_ARG_VALUE',
      message: expect.stringMatching(
        new RegExp(`\\b${right}\\b.*, got '${wrong}' \\(did you mean ${right}\\?\\)$`),
      ) as string,
    });
  });

  it('is told apart from those that objects have of themselves', () => {
    const known = optionNames<{ op?: string }>({ op: true });
    for (const name of ['toString', 'constructor', '__proto__x', 'hasOwnProperty']) {
      expect(() => optionsObject({ [name]: 1 }, known, 'x'), name).toThrow(`got '${name}'`);
    }
    expect(optionsObject({ op: 'sum' }, known, 'x')).toEqual({ op: 'sum' });
    expect(optionsObject(undefined, known, 'x')).toEqual({});
    expect(() => optionsObject({ OP: 1 }, known, 'x')).toThrow(/'OP' .*mean op\?/);
  });
});

/** What is said to be meant; nothing where nothing is. */
function meantBy(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return /\(did you mean (.*)\?\)$/.exec((error as Error).message)?.[1];
  }
  throw new Error('nothing was refused');
}

describe('a name that other libraries have', () => {
  const optimizer = (name: string, option: string) => () => createOptimizer(name, { [option]: 1 });
  it.each([
    ['sgd', 'lr', 'learningRate'],
    ['sgd', 'weight_decay', 'wd'],
    ['sgd', 'weightDecay', 'wd'],
    ['sgd', 'mom', 'momentum'],
    ['adam', 'eps', 'epsilon'],
    ['adam', 'betas', 'beta1 and beta2'],
    ['adam', 'beta_1', 'beta1'],
    ['rmsprop', 'alpha', 'gamma1'],
    ['adadelta', 'alpha', 'rho'],
    ['adam', 'clipvalue', 'clipGradient'],
    // Nothing here is the same.
    ['adam', 'amsgrad', undefined],
    ['sgd', 'dampening', undefined],
    ['sgd', 'eps', undefined],
    ['adam', 'clipnorm', undefined],
  ])('of %s: %s', (name, option, meant) => {
    expect(meantBy(optimizer(name, option))).toBe(meant);
  });

  it.each([
    ['Adagrd', 'adagrad'],
    ['Adma', 'adam'],
    ['RAdam', undefined],
    ['ASGD', undefined],
    ['Lion', undefined],
  ])('as an optimizer: %s', (name, meant) => {
    expect(meantBy(() => createOptimizer(name))).toBe(meant);
  });

  const allReduce = (options: object) => () => rank['allReduceSync']?.(data(), options);
  it.each([
    [{ op: 'mean' }, 'avg'],
    [{ op: 'average' }, 'avg'],
    [{ op: 'band' }, undefined],
    [{ reduction: 'sum' }, 'op'],
    [{ timeout: 1 }, 'timeoutMs'],
    [{ dtype: 'float' }, 'float32'],
    [{ dtype: 'half' }, 'float16'],
    [{ dtype: 'fp64' }, 'float64'],
    [{ dtype: 'int' }, 'int32'],
    // No number is a misspelt other one.
    [{ dtype: 'uint16' }, undefined],
    [{ dtype: 'int4' }, undefined],
  ])('of a collective: %j', (options, meant) => {
    expect(meantBy(allReduce(options))).toBe(meant);
  });

  it.each([
    ['dist_synk', 'dist_sync'],
    ['dist-async', 'dist_async'],
    ['horovd', 'horovod'],
    ['p3store_dist', undefined],
  ])('as a store: %s', (type, meant) => {
    expect(meantBy(() => parseStoreType(type))).toBe(meant);
  });
});

describe('a name that is known when a program runs', () => {
  it('is checked by the guards', () => {
    const stores = ['local', 'dist_device_sync', 'horovod', 'dist_synk', 'LOCAL', 1];
    expect(stores.map(isStoreType)).toEqual([true, true, true, false, false, false]);
    const networks = ['resnet', 'resnetv1', 'resnet50', undefined];
    expect(networks.map(isNetworkName)).toEqual([true, true, false, false]);
    expect(listNetworks().map(({ name }) => name)).toEqual(networkNames);
  });
});
