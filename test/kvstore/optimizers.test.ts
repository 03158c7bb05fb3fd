// Optimizers in a store: their mathematics is tested in test/optimizers, here that a store applies them, in every
// way there is to push, and that states survive a file bit for bit.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterEach, describe, expect, it } from 'vitest';

import type { KVStore } from '../../lib/kvstore/kvstore.js';
import { createOptimizer, optimizerNames } from '../../lib/optimizers/create.js';
import { FactorScheduler } from '../../lib/optimizers/schedulers.js';
import { errorWith } from '../support/errors.js';
import { folderOfEachTest } from '../support/folders.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { closeAll, filled, open, random } from './support.js';

const count = 10_001;
let folder = '';
let file = '';
folderOfEachTest((one) => {
  folder = one;
  file = join(one, 'states');
});
afterEach(closeAll);

function values(seed: number): Float32Array<ArrayBuffer> {
  const next = random(seed);
  return Float32Array.from({ length: count }, () => 2 * next() - 1);
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

  it('goes on from a file as if nothing had been', async () => {
    const first = await open('local');
    await first.init(['w', 'v'], [values(1), values(2)]);
    await first.setOptimizer(createOptimizer(name));
    for (let step = 0; step < 3; step++)
      await first.push(['w', 'v'], [values(step), values(-step)]);
    await first.saveOptimizerStates(file, { dumpOptimizer: true });
    const second = await open('device');
    await second.init('v', await pulled(first, 'v'));
    await second.init('w', await pulled(first, 'w'));
    await second.loadOptimizerStates(file);
    for (const kv of [first, second]) {
      await kv.push('w', values(7));
      await kv.push('v', values(8));
    }
    for (const key of ['w', 'v'])
      expect(await pulled(second, key)).toEqual(await pulled(first, key));
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

  it('without the optimizer need the same one set', async () => {
    const kv = await trained();
    await kv.saveOptimizerStates(file);
    const other = await open('local');
    await other.init('w', await pulled(kv, 'w'));
    await expect(other.loadOptimizerStates(file)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /states.* sgd without/),
    );
    await other.setOptimizer(createOptimizer('adam'));
    await expect(other.loadOptimizerStates(file)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /states.* sgd,.*adam/),
    );
    await other.setOptimizer(createOptimizer('sgd', { momentum: 0.9 }));
    await other.loadOptimizerStates(file);
    for (const store of [kv, other]) await store.push('w', values(3));
    expect(await pulled(other, 'w')).toEqual(await pulled(kv, 'w'));
  });

  it('of other keys or lengths change nothing', async () => {
    const kv = await trained();
    await kv.saveOptimizerStates(file, { dumpOptimizer: true });
    const other = await open('local');
    await other.init('x', filled(3, 0));
    await expect(other.loadOptimizerStates(file)).rejects.toThrow('key w');
    await other.init('w', filled(3, 1));
    await expect(other.loadOptimizerStates(file)).rejects.toThrow('10001 float32');
    await other.push('w', filled(3, 5));
    const out = filled(3, 0);
    await other.pull('w', out);
    expect(out).toEqual(filled(3, 5));
  });

  it('that are damaged, cut short or none are refused, naming the file', async () => {
    const kv = await trained();
    await kv.saveOptimizerStates(file);
    const whole = await readFile(file);
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(whole.length >> 1) ^ 4, whole.length >> 1);
    for (const bytes of [flipped, whole.subarray(0, -1), Buffer.from('hello'), Buffer.alloc(0)]) {
      await writeFile(file, bytes);
      await expect(kv.loadOptimizerStates(file)).rejects.toThrow(file);
    }
    await expect(kv.loadOptimizerStates(join(folder, 'absent'))).rejects.toMatchObject({
      code: 'ERR_SYSTEM',
      message: expect.stringContaining('absent') as string,
    });
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

  it('need an optimizer', async () => {
    const kv = await open('local');
    await expect(kv.saveOptimizerStates(file)).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /optimizer states/),
    );
  });
});

describe('setOptimizer', () => {
  it('is in force from the next push on, whatever is pending', async () => {
    const kv = await open('local');
    await kv.init('w', filled(count, 1));
    const pushes = [kv.push('w', filled(count, 2))];
    const set = kv.setOptimizer(createOptimizer('test', { rescaleGrad: 10 }));
    pushes.push(kv.push('w', filled(count, 3)));
    const unset = kv.setOptimizer(null);
    await Promise.all([...pushes, set, unset]);
    expect(await pulled(kv, 'w')).toEqual(filled(count, 32));
    await kv.push('w', filled(count, 3));
    expect(await pulled(kv, 'w')).toEqual(filled(count, 3));
  });

  it('refuses pushes of integers', async () => {
    const kv = await open('local');
    await kv.init('n', Int32Array.of(1, 2));
    await kv.setOptimizer(createOptimizer('sgd'));
    await expect(kv.push('n', Int32Array.of(1, 1))).rejects.toThrow('float');
    const out = new Int32Array(2);
    await kv.pull('n', out);
    expect([...out]).toEqual([1, 2]);
  });

  it('counts updates in the order of the pushes, so that a schedule is the same in every run', async () => {
    const run = async () => {
      const kv = await open('device', { devices: 2 });
      const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
      await kv.init(
        keys,
        keys.map(() => values(3)),
      );
      const lrScheduler = new FactorScheduler({ step: 1, factor: 0.5, baseLr: 0.1 });
      await kv.setOptimizer(createOptimizer('sgd', { lrScheduler }));
      const pending = keys.map((key, i) => {
        const pushes = Array.from({ length: (i % 3) + 1 }, () => kv.push(key, values(i)));
        return Promise.all(pushes);
      });
      await Promise.all(pending);
      return Promise.all(keys.map((key) => pulled(kv, key)));
    };
    expect(await run()).toEqual(await run());
  });

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
