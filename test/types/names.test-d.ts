// What does not compile of names: stores, networks, dtypes, and ranks taken for nodes. Checked by `tsc --noEmit`, to which
// an unused mark is an error; never run.
import { expectTypeOf } from 'vitest';

import { isStoreType, KVStore } from '../../lib/index.js';
import type { Communicator, DType, KVStoreOptions, StoreTypeName } from '../../lib/index.js';
import { isNetworkName, network } from '../../lib/models/index.js';
import {
  exponentialMachineSchedule,
  onePeerSchedule,
  ringGraph,
  uniformWeights,
} from '../../lib/topology/index.js';
import type { Node, Rank } from '../../lib/topology/index.js';

declare const word: string;
declare const comm: Communicator;
declare const data: Float32Array;
declare const node: Node;
declare const options: KVStoreOptions;

export async function stores(): Promise<void> {
  await KVStore.create();
  await KVStore.create('dist_device_sync', options);
  // In upper case too, as MXNet takes them.
  await KVStore.create('DEVICE');
  await KVStore.create('Dist_Sync');
  // @ts-expect-error -- a misspelt one
  await KVStore.create('dist_synk');
  // @ts-expect-error -- nobody knows what it is
  await KVStore.create(word);
  if (isStoreType(word)) {
    expectTypeOf(word).toEqualTypeOf<StoreTypeName>();
    await KVStore.create(word);
  }
  // @ts-expect-error -- it is called devices
  await KVStore.create('local', { device: 2 });
  const kv = await KVStore.create('local');
  // @ts-expect-error -- there is no such compression
  await kv.setGradientCompression({ type: '3bit' });
  // @ts-expect-error -- it is called priority
  await kv.push('w', data, { prio: 1 });
  expectTypeOf(kv.type).toEqualTypeOf<StoreTypeName>();
}

export function networks(): void {
  network('resnet', { numLayers: 50 });
  // @ts-expect-error -- a depth is an option
  network('resnet50');
  // @ts-expect-error -- nobody knows what it is
  network(word);
  if (isNetworkName(word)) network(word);
  // @ts-expect-error -- it is called numLayers
  network('resnet', { layers: 50 });
}

export function dtypes(): void {
  expectTypeOf<'bfloat16'>().toExtend<DType>();
  // @ts-expect-error -- there is no such dtype
  comm.allocShared('float', 1);
  // @ts-expect-error -- nobody knows what it is
  comm.allocShared(word, 1);
}

/** Any number passes for a rank or a node; a rank does not pass for a node. */
export async function ranksAndNodes(): Promise<void> {
  const number: number = comm.rank + 1;
  await comm.send(data, { to: 1 });
  await comm.send(data, { to: number });
  await comm.broadcast(data, { root: 0 });
  await comm.split(comm.rank % 2, 0 - comm.rank);
  // @ts-expect-error -- a node, and no rank
  await comm.send(data, { to: node });
  // @ts-expect-error -- a node, and no rank
  await comm.broadcast(data, { root: node });
  // @ts-expect-error -- a node, and no rank
  await comm.pairGossip(data, { peer: node });
  await comm.hierarchicalNeighborAllReduce(data, {
    selfWeight: 1,
    srcMachineWeights: { 1: 0.5 },
    dstMachineWeights: [node],
  });
  await comm.hierarchicalNeighborAllReduce(data, {
    selfWeight: 1,
    srcMachineWeights: { 1: 0.5 },
    // @ts-expect-error -- a rank, and no node
    dstMachineWeights: [comm.rank],
  });
  const byRank = uniformWeights(onePeerSchedule(ringGraph(4), comm.rank).next().value);
  const place = { size: 4, ranksPerNode: 2, rank: comm.rank };
  const byNode = uniformWeights(exponentialMachineSchedule(place).next().value);
  await comm.neighborAllReduce(data, byRank);
  // @ts-expect-error -- weights by node
  await comm.neighborAllReduce(data, byNode);
  const { selfWeight, srcWeights, dstWeights } = byRank;
  await comm.hierarchicalNeighborAllReduce(data, {
    selfWeight,
    // @ts-expect-error -- weights by rank
    srcMachineWeights: srcWeights,
    // @ts-expect-error -- weights by rank
    dstMachineWeights: dstWeights,
  });
  await comm.hierarchicalNeighborAllReduce(data, {
    selfWeight,
    srcMachineWeights: byNode.srcWeights,
    dstMachineWeights: byNode.dstWeights,
  });
  expectTypeOf(comm.rank).toEqualTypeOf<Rank>();
  expectTypeOf<number>().toExtend<Rank>();
  expectTypeOf<number>().toExtend<Node>();
  expectTypeOf<Rank>().not.toExtend<Node>();
}
