// Numbers from callers that memory is made by have bounds, and the error says them.
import { constants } from 'node:buffer';

import { describe, expect, it } from 'vitest';

import { Communicator, KVStore } from '../../lib/index.js';
import { network } from '../../lib/models/index.js';
import * as topology from '../../lib/topology/index.js';
import { Batches, syntheticImages, syntheticTokens, Timeline } from '../../lib/train/index.js';
import { errorWith } from '../support/errors.js';

type Made = new (...args: unknown[]) => object;
const Topology = topology.Topology as unknown as Made;
const place = (size: number) => ({ size, ranksPerNode: 1, rank: 0 });
const images = (options: object, shape: number[] = [1, 1, 1]) =>
  syntheticImages('x', shape, options);

/** What is made of a number, and the largest number that there is room for. */
const makers: readonly (readonly [string, number, (n: number) => unknown])[] = [
  ['new Topology', 65_536, (n) => new Topology(n, [])],
  ['Topology.fromEdges', 65_536, (n) => topology.Topology.fromEdges(n, [])],
  ['exponentialGraph', 65_536, (n) => topology.exponentialGraph(n)],
  ['exponentialTwoGraph', 65_536, (n) => topology.exponentialTwoGraph(n)],
  ['symmetricExponentialGraph', 65_536, (n) => topology.symmetricExponentialGraph(n)],
  ['meshGrid2DGraph', 65_536, (n) => topology.meshGrid2DGraph(n)],
  ['starGraph', 65_536, (n) => topology.starGraph(n)],
  ['ringGraph', 65_536, (n) => topology.ringGraph(n)],
  ['fullyConnectedGraph', 2048, (n) => topology.fullyConnectedGraph(n)],
  ['exponentialMachineSchedule', 65_536, (n) => topology.exponentialMachineSchedule(place(n))],
  ['innerOuterRingSchedule', 65_536, (n) => topology.innerOuterRingSchedule(place(n))],
  ['Communicator.local', 65_536, (n) => Communicator.local(n)],
  ['devices of KVStore.create', 4096, (n) => KVStore.create('local', { devices: n })],
  ['numLayers of network', 10_000, (n) => network('resnet', { numLayers: n })],
  ['classes of syntheticImages', 2 ** 20, (n) => images({ classes: n })],
  ['samples of syntheticImages', 2 ** 27, (n) => images({ samples: n })],
  ['sampleShape of syntheticImages', 2 ** 27, (n) => images({}, [n, 1, 1])],
  ['length of syntheticTokens', 2 ** 27, (n) => syntheticTokens(n, 10)],
  ['size of Batches', 65_536, (n) => new Batches(images({}), { batchSize: 1, size: n })],
  ['buffered of Timeline', 2 ** 20, (n) => new Timeline('/nowhere/x.json', { buffered: n })],
];

const tooLarge = [1e9, 2 ** 31, 2 ** 53, 1e300] as const;

describe.each(makers)('%s', (_, most, make) => {
  it.each(tooLarge)('refuses %d and says the bound', async (n) => {
    const made = Promise.resolve().then(() => make(n));
    await expect(made).rejects.toMatchObject({
      name: 'RangeError',
      code: 'ERR_OUT_OF_RANGE',
      message: expect.stringContaining(String(most)) as string,
    });
  });
});

describe('what grows with the square of the ranks', () => {
  const ring = topology.ringGraph(5000);
  it.each(['matrix', 'secondEigenvalue', 'spectralGap'] as const)('%s has a bound', (name) => {
    expect(() => ring[name]()).toThrow(
      expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }) as Error,
    );
  });

  it('edges have a bound', () => {
    function* endless() {
      for (;;) yield { from: 0, to: 0, weight: 1 };
    }
    expect(() => topology.Topology.fromEdges(1, endless())).toThrow(
      expect.objectContaining({
        code: 'ERR_OUT_OF_RANGE',
        message: 'expected at most 4194304 for edges, got more',
      }) as Error,
    );
  });
});

describe('memory that JavaScript shows', () => {
  const refused = (code: unknown) => expect.objectContaining({ code }) as Error;

  // By what Node shows as one array, or by the memory that there is.
  it.each([2 ** 40, 2 ** 53])('allocShared refuses %d of 8 bytes', async (count) => {
    await using group = Communicator.local(1);
    const either = expect.stringMatching(/^ERR_OUT_OF_(RANGE|MEMORY)$/) as string;
    expect(() => group.allocShared('float64', count)).toThrow(refused(either));
  });

  it('allocShared refuses a byte too many', async (context) => {
    if (constants.MAX_LENGTH > 2 ** 40) context.skip('this Node shows more than any machine has');
    await using group = Communicator.local(1);
    expect(() => group.allocShared('uint8', constants.MAX_LENGTH + 1)).toThrow(
      refused('ERR_OUT_OF_RANGE'),
    );
  });
});

it('a group of more ranks than can have threads opens none', async () => {
  await using group = Communicator.local(5000);
  await expect(group.openRanks()).rejects.toThrow(errorWith('ERR_OUT_OF_RANGE', /4096/));
});
