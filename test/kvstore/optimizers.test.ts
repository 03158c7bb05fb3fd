// Optimizers in a store: their mathematics is tested in test/optimizers, what stores make of them natively over every
// store (native/test/kvstore/conformance); here that a store applies them, in every way there is to push, and its files.

import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, describe, expect, it } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { createOptimizer, optimizerNames } from '../../lib/optimizers/create.js';
import { Random } from '../attack/support/random.js';
import { errorWith } from '../support/errors.js';
import { folderOfEachTest } from '../support/folders.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { closeAll, filled, open } from './support.js';

const count = 10_001;
let folder = '';
let file = '';
folderOfEachTest((one) => {
  folder = one;
  file = join(one, 'states');
});
afterEach(closeAll);

function values(seed: number): Float32Array<ArrayBuffer> {
  const random = new Random(seed);
  return Float32Array.from({ length: count }, () => 2 * random.next() - 1);
}

async function pulled(kv: KVStore, key: string): Promise<Float32Array> {
  const out = filled(count, 0);
  await kv.pull(key, out);
  return out;
}

describe.each(optimizerNames)('%s', (name) => {
  it('steps as it does alone, pushed, pulled along or in place', async () => {
    const alone = createOptimizer(name);
    const weight = values(1);
    const kv = await open('device', { devices: 2 });
    await kv.init('w', weight);
    await kv.setOptimizer(createOptimizer(name));
    for (let step = 0; step < 4; step++) {
      const grads = [values(10 + step), values(20 + step)];
      alone.update('w', weight, grads);
      const outs = [filled(count, 0), filled(count, 0)];
      if (step === 0) await kv.push('w', grads);
      if (step === 1) await Promise.all([kv.push('w', grads), kv.pull('w', outs)]);
      if (step === 2) await kv.pushPull('w', grads, outs);
      if (step === 3) {
        await kv.pushPull('w', grads);
        outs.splice(0, 2, ...grads);
      }
      if (step > 0) for (const out of outs) expect(out).toEqual(weight);
      expect(await pulled(kv, 'w')).toEqual(weight);
    }
  });
});

describe('optimizer states', () => {
  async function trained(): Promise<KVStore> {
    const kv = await open('local');
    await kv.init('w', values(1));
    await kv.setOptimizer(createOptimizer('sgd', { momentum: 0.9 }));
    await kv.push('w', values(2));
    return kv;
  }

  it('that are none, or not there, are refused, naming the file', async () => {
    const kv = await trained();
    await writeFile(file, 'hello');
    await expect(kv.loadOptimizerStates(file)).rejects.toThrow(file);
    const absent = join(folder, 'absent');
    await expect(kv.loadOptimizerStates(absent)).rejects.toThrow(errorWith('ERR_SYSTEM', /absent/));
    // Without the optimizer, unless it is asked for.
    await kv.saveOptimizerStates(file);
    const other = await open('local');
    await other.init('w', values(1));
    await expect(other.loadOptimizerStates(file)).rejects.toThrow(file);
  });

  it.skipIf(noSmallDisk !== undefined)('stay as they were on a full disk', async () => {
    const kv = await trained();
    const disk = new SmallDisk(256 * 1024);
    try {
      const full = join(disk.folder, 'states');
      await kv.saveOptimizerStates(full);
      disk.fill(4096);
      await expect(kv.saveOptimizerStates(full)).rejects.toMatchObject({ code: 'ERR_SYSTEM' });
      expect((await readdir(disk.folder)).sort()).toEqual(['ballast', 'states']);
      await kv.loadOptimizerStates(full);
    } finally {
      disk.remove();
    }
  });
});

describe('setOptimizer', () => {
  it('takes a new learning rate without losing states', async () => {
    const alone = createOptimizer('sgd', { momentum: 0.9, learningRate: 0.1 });
    const weight = values(1);
    const kv = await open('local');
    await expect(kv.setLearningRate(1)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /learning rate.*optimizer/),
    );
    await kv.init('w', weight);
    await kv.setOptimizer(createOptimizer('sgd', { momentum: 0.9, learningRate: 0.1 }));
    for (const rate of [0.1, 0.05, 0.01]) {
      alone.learningRate = rate;
      alone.update('w', weight, values(9));
      await Promise.all([kv.setLearningRate(rate), kv.push('w', values(9))]);
    }
    expect(await pulled(kv, 'w')).toEqual(weight);
  });
});
