// The declared native surface and the addon's exports are the same. The tables are held complete by the compiler
// (each must name every member of its interface, and no other), the addon by the test.
import { describe, expect, it } from 'vitest';

import { native, nativePath } from '../../lib/native/load.js';
import type { NativeAddon } from '../../lib/native/load.js';
import { nativeCalls, nativeCollectives } from '../../lib/collectives.js';
import type { NativeCommunicator, NativeCommunicatorClass } from '../../lib/native/communicator.js';
import type { NativeServer } from '../../lib/native/dist.js';
import type { NativeDeviceBuffer, NativeDeviceBufferClass } from '../../lib/native/gpu.js';
import type { NativeKVStore, NativeKVStoreClass } from '../../lib/native/kvstore.js';
import type { NativeOptimizer } from '../../lib/native/optimizer.js';

type Members<T> = Readonly<Record<keyof T, 'property' | 'method'>>;

const exported: Readonly<Record<keyof NativeAddon, 'class' | 'function' | 'object'>> = {
  setErrorClass: 'function',
  calls: 'object',
  checkCalls: 'function',
  abortMpiJob: 'function',
  mpiLibrary: 'function',
  useTcp: 'function',
  NativeBuckets: 'class',
  NativeCommunicator: 'class',
  NativeDeviceBuffer: 'class',
  NativeKVStore: 'class',
  NativeOptimizer: 'class',
  NativeServer: 'class',
  NativeWindow: 'class',
  gpuCount: 'function',
  gpuInfo: 'function',
  gpuHealth: 'function',
  gpuXids: 'function',
  gpuPeer: 'function',
  gpuLibraries: 'function',
  installedGpus: 'function',
  allocPinned: 'function',
  optimizerDefinitions: 'function',
  rateAt: 'function',
  simdLevel: 'function',
  numThreads: 'function',
  wakeUpSeconds: 'function',
  coreRates: 'function',
  memoryBandwidth: 'function',
  timeCollective: 'function',
  gpuCopies: 'function',
  gpuLatency: 'function',
  gpuLoop: 'function',
  fillPattern: 'function',
  countWrong: 'function',
  drawUniform: 'function',
  touchMemory: 'function',
  sumPushed: 'function',
  checkOuts: 'function',
  estimateCollectives: 'function',
  timeBetweenCores: 'function',
  timeMessages: 'function',
};

const communicator: Members<NativeCommunicator> = {
  size: 'property',
  heldRanks: 'property',
  backend: 'property',
  gpus: 'property',
  run: 'method',
  runSync: 'method',
  setFusion: 'method',
  follow: 'method',
  split: 'method',
  splitHeld: 'method',
  allocShared: 'method',
  allocRegistered: 'method',
  cancel: 'method',
  setJoinable: 'method',
  joinOthers: 'method',
  abort: 'method',
  close: 'method',
};

const communicatorStatics: Members<Omit<NativeCommunicatorClass, 'prototype'>> = {
  local: 'method',
  join: 'method',
  joinAll: 'method',
  openNccl: 'method',
  joinNccl: 'method',
  joinMpi: 'method',
};

/** Its other members are values of each object: test/gpu/buffers.test.ts looks at one. */
type NativeBufferMembers = Omit<
  NativeDeviceBuffer,
  'device' | 'dtype' | 'length' | 'buffer' | 'byteOffset' | 'byteLength' | 'registration'
>;
const deviceBuffer: Members<NativeBufferMembers> = {
  disposed: 'property',
  slice: 'method',
  copyFrom: 'method',
  copyTo: 'method',
  fill: 'method',
  dispose: 'method',
};

const deviceBufferStatics: Members<Omit<NativeDeviceBufferClass, 'prototype'>> = {
  alloc: 'method',
};

const kvstore: Members<NativeKVStore> = {
  define: 'method',
  submit: 'method',
  prepare: 'method',
  submitPrepared: 'method',
  rowSparsePull: 'method',
  pushRows: 'method',
  setOptimizer: 'method',
  setLearningRate: 'method',
  setUpdater: 'method',
  setCompression: 'method',
  barrier: 'method',
  saveStates: 'method',
  loadStates: 'method',
  close: 'method',
  allocShared: 'method',
  leave: 'method',
  command: 'method',
  deadNodes: 'method',
  look: 'method',
  placement: 'method',
  workerReport: 'method',
  serverReports: 'method',
  drop: 'method',
};

const kvstoreStatics: Members<Omit<NativeKVStoreClass, 'prototype'>> = {
  onGpus: 'method',
  openDist: 'method',
  openAllreduce: 'method',
};

const server: Members<NativeServer> = {
  meet: 'method',
  serve: 'method',
  waitForExit: 'method',
  stop: 'method',
  trace: 'method',
  takeTrace: 'method',
};

const optimizer: Members<NativeOptimizer> = {
  update: 'method',
  learningRate: 'method',
  setLearningRate: 'method',
  setRescaleGrad: 'method',
  numUpdate: 'method',
  saveStates: 'method',
  loadStates: 'method',
};

/** What a class gives its instances. */
function membersOf(owner: object): Record<string, 'property' | 'method'> {
  const all = Object.entries(Object.getOwnPropertyDescriptors(owner));
  return Object.fromEntries(
    all
      .filter(([name]) => name !== 'constructor')
      .map(([name, { value }]) => [name, typeof value === 'function' ? 'method' : 'property']),
  );
}

describe('the native surface', () => {
  it('is exported and declared alike', () => {
    const found = Object.entries(native()).map(([name, value]) => [
      name,
      /^[A-Z]/.test(name) && typeof value === 'function' ? 'class' : typeof value,
    ]);
    expect(Object.fromEntries(found)).toEqual(exported);
  });

  it.each([
    ['NativeCommunicator', native().NativeCommunicator.prototype, communicator],
    ['NativeDeviceBuffer', native().NativeDeviceBuffer.prototype, deviceBuffer],
    ['NativeKVStore', native().NativeKVStore.prototype, kvstore],
    ['NativeOptimizer', native().NativeOptimizer.prototype, optimizer],
    ['NativeServer', native().NativeServer.prototype, server],
  ])('of %s has the declared members', (_, prototype, declared) => {
    expect(membersOf(prototype)).toEqual(declared);
  });

  it.each([
    ['NativeCommunicator', native().NativeCommunicator, communicatorStatics],
    ['NativeDeviceBuffer', native().NativeDeviceBuffer, deviceBufferStatics],
    ['NativeKVStore', native().NativeKVStore, kvstoreStatics],
  ])('of %s has the declared static members', (_, of, declared) => {
    const builtIn = ['length', 'name', 'arguments', 'caller', 'prototype'];
    const found = Object.getOwnPropertyNames(of).filter((name) => !builtIn.includes(name));
    expect(found.sort()).toEqual(Object.keys(declared).sort());
  });

  it('has the declared collectives, in the declared order', () => {
    const { calls } = native();
    expect(calls.slice(0, nativeCollectives.length)).toEqual(nativeCollectives);
    expect(calls.map(({ name }) => name)).toEqual(nativeCalls);
  });

  it('comes from a file that can be told', () => {
    expect(nativePath()).toMatch(/\.node$/);
  });
});

// Past lib/, as a slip in it would reach the addon: an error, not a crash.
describe('native checks', () => {
  const { NativeCommunicator } = native();
  const one = NativeCommunicator.local(2);
  const data = [new Float32Array(4), new Float32Array(4)];
  const float32 = 8 << 8;
  const loose = one as unknown as Record<string, (...args: unknown[]) => unknown>;

  it.each<[string, unknown[], RegExp]>([
    ['an unknown operation', [nativeCalls.length, data, data, 4, 0, -1], /known operation/],
    ['an unknown dtype', [13 << 8, data, data, 4, 0, -1], /known operation/],
    ['an array that is too short', [float32, data, data, 5, 0, -1], /5 elements.*data.* 4$/],
    ['an out that is too short', [3 | float32, data, data, 4, 0, -1], /8 elements.*out.* 4$/],
    ['a count that no memory holds', [float32, data, data, 2 ** 60, 0, -1], /for count/],
    ['a negative count', [float32, data, data, -1, 0, -1], /for count/],
    ['a root that is none', [2 | float32, data, data, 4, 2, -1], /0 to 1 .*root/],
    ['a list too short', [float32, [data[0]], data, 4, 0, -1], /2 held ranks.*data.* 1$/],
    ['no list', [float32, data[0], data, 4, 0, -1], /array for data/],
    ['another element type', [float32, data, [new Int32Array(4), data[1]], 4, 0, -1], /for out/],
    ['nothing at all', [], /got undefined/],
  ])('refuse %s', (_, args, message) => {
    expect(() => loose['runSync']?.(...args)).toThrow(message);
    expect(() => loose['run']?.(...args, 0)).toThrow(message);
  });

  it.each(['pairGossip', 'sendReceive'] as const)('refuse an empty list of %s', (kind) => {
    const call = nativeCalls.indexOf(kind) | float32;
    const refused = expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }) as Error;
    expect(() => one.runSync(call, [], [], 0, 0, -1, [])).toThrow(refused);
    expect(() => one.run(call, [], [], 0, 0, -1, 0, [])).toThrow(refused);
  });

  it('refuse another object as communicator', () => {
    expect(() => loose['runSync']?.call({}, float32, data, data, 4, 0, -1)).toThrow();
    const impostor = Object.create(NativeCommunicator.prototype) as typeof one;
    expect(() => native().timeCollective(impostor, {} as never)).toThrow();
  });

  it('refuse calls after close', async () => {
    const closed = NativeCommunicator.local(1);
    const barrier = nativeCollectives.findIndex(({ name }) => name === 'barrier');
    await closed.close();
    await closed.close();
    expect(() => closed.runSync(barrier, null, null, 0, 0, -1)).toThrow(/closed/);
    expect(() => closed.run(barrier, null, null, 0, 0, -1, 0)).toThrow(/closed/);
  });
});
