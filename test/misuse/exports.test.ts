// Every export of every entry refuses what it cannot take with an error that has a code, and never hangs: what is
// exported later is tried by itself.
import { rmSync } from 'node:fs';

import '@tensorflow/tfjs-backend-cpu';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import * as main from '../../lib/index.js';
import * as measure from '../../lib/measure/index.js';
import * as models from '../../lib/models/index.js';
import * as decentralised from '../../lib/optimizers/decentralised/index.js';
import * as topology from '../../lib/topology/index.js';
import * as tfjs from '../../lib/train/index.js';
import { instances, prepareFolder, without } from './instances.js';
import { callOf, isClass, methodsOf, settled, staticsOf, untyped, wrongs } from './probes.js';
import { errorWith } from '../support/errors.js';

const entries = {
  gradlink: main,
  'gradlink/decentralised': decentralised,
  'gradlink/measure': measure,
  'gradlink/models': models,
  'gradlink/tfjs': tfjs,
  'gradlink/topology': topology,
} as const;

/** With these it measures for seconds, as it should. */
const runs = new Set(['no argument', 'undefined', '{}', '[]']);
const benchmarks = /^run[A-Z]/;

/** Inherited from TensorFlow.js and not overridden: its errors. */
const foreign = new Set(['DistributedOptimizer#extractIterations']);

const before = process.cwd();
let folder: string;
beforeAll(() => {
  // Some would write a file of the name they are given.
  folder = prepareFolder();
  process.chdir(folder);
});
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true });
});

interface Found {
  calls: number;
  readonly wrong: string[];
}

async function probe(found: Found, name: string, call: () => unknown): Promise<void> {
  found.calls += 1;
  try {
    await settled(call);
  } catch (error) {
    const why = untyped(error);
    if (why !== undefined) found.wrong.push(`${name}: ${why}`);
  }
}

async function probeMethods(found: Found, of: string, given: readonly unknown[], wrong: string) {
  const make = instances[of];
  const value = Object.values(entries)
    .map((entry) => (entry as Record<string, unknown>)[of])
    .find(isClass);
  if (make === undefined || value === undefined) return;
  for (const method of methodsOf(value)) {
    const name = `${of}#${method}`;
    if (foreign.has(name)) continue;
    const { object, close } = await make();
    await probe(found, `${name} with ${wrong}`, () => callOf(object, method)(...given));
    await close?.();
  }
}

describe.each(Object.entries(entries))('%s', (_, entry) => {
  const exported = Object.entries(entry as Record<string, unknown>);
  const functions = exported.filter(([, value]) => typeof value === 'function');

  it('has an instance of each class for these tests, or a reason for none', () => {
    const classes = functions.filter(([, value]) => isClass(value)).map(([name]) => name);
    const missing = classes.filter((name) => !(name in instances) && !without.has(name));
    expect(missing, 'classes to add to test/misuse/instances.ts').toEqual([]);
  });

  it.each(wrongs)('refuses %s with a code, or takes it', async (wrong, given) => {
    const found: Found = { calls: 0, wrong: [] };
    for (const [name, value] of functions) {
      if (isClass(value)) {
        await probe(found, `new ${name} with ${wrong}`, () => new value(...given));
        for (const method of staticsOf(value)) {
          const full = `${name}.${method} with ${wrong}`;
          await probe(found, full, () => callOf(value, method)(...given));
        }
        await probeMethods(found, name, given, wrong);
      } else if (!(benchmarks.test(name) && runs.has(wrong))) {
        await probe(found, `${name} with ${wrong}`, () => callOf(entry, name)(...given));
      }
    }
    expect(found.wrong).toEqual([]);
    expect(found.calls).toBeGreaterThan(0);
  });
});

describe('a constructor that is no part of the interface', () => {
  const classes = { ...main, ...tfjs } as unknown as Record<string, new () => object>;
  it.each([
    ['Communicator', /Communicator\.join/],
    ['LocalGroup', /Communicator\.local/],
    ['WorldGroup', /Communicator\.world/],
    ['KVStore', /KVStore\.create/],
    ['DeviceBuffer', /DeviceBuffer\.alloc/],
    ['NeighborWindow', /createWindow/],
    ['Optimizer', /new SGD/],
    ['LRScheduler', /new CosineScheduler/],
    ['DistributedDataParallel', /DistributedDataParallel\.create/],
    ['KVStoreTrainer', /KVStoreTrainer\.create/],
  ])('of %s says what to call instead', (name, instead) => {
    const Class = classes[name]!;
    expect(() => new Class()).toThrow(errorWith('ERR_INVALID_ARG_VALUE', instead));
  });
});
