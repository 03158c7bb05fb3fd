// Gradient compression through a store, against the plain reference in test/support.
import { afterEach, describe, expect, it } from 'vitest';

import { createOptimizer } from '../../lib/optimizers/create.js';
import { compress, decompress } from '../support/compression-reference.js';
import { closeAll, filled, open, random } from './support.js';

afterEach(closeAll);

const devices = 3;

describe.each(['2bit', '1bit'] as const)('%s', (type) => {
  it.each([1, 33, 5000])('%i elements: each device has its own residual', async (count) => {
    const threshold = 0.3;
    const kv = await open('device', { devices });
    await kv.setGradientCompression({ type, threshold });
    await kv.init(0, filled(count, 7));
    const next = random(count);
    const residuals: Float32Array[] = Array.from(
      { length: devices },
      () => new Float32Array(count),
    );
    for (let push = 0; push < 4; push += 1) {
      const grads = residuals.map(() => Float32Array.from({ length: count }, () => next() * 2 - 1));
      const expected = new Float32Array(count);
      grads.forEach((grad, device) => {
        const { codes, residual } = compress(type, threshold, grad, residuals[device]!);
        residuals[device] = residual;
        decompress(type, threshold, codes, count).forEach((value, i) => {
          expected[i] = Math.fround(expected[i]! + value);
        });
      });
      await kv.push(0, grads);
      const out = new Float32Array(count);
      await kv.pull(0, out);
      expect(out).toEqual(expected);
    }
  });

  it('feeds the optimizer', async () => {
    const count = 5000;
    const kv = await open('device', { devices });
    await kv.setGradientCompression({ type });
    await kv.init('a', filled(count, 0));
    await kv.setOptimizer(createOptimizer('test'));
    const residuals: Float32Array[] = Array.from(
      { length: devices },
      () => new Float32Array(count),
    );
    const expected = filled(count, 0);
    const out = filled(count, 0);
    const next = random(3);
    for (let round = 0; round < 3; round++) {
      const grads = residuals.map(() => Float32Array.from({ length: count }, () => next() - 0.5));
      const sum = new Float32Array(count);
      grads.forEach((grad, device) => {
        const { codes, residual } = compress(type, 0.5, grad, residuals[device]!);
        residuals[device] = residual;
        decompress(type, 0.5, codes, count).forEach((x, i) => (sum[i] = sum[i]! + x));
      });
      sum.forEach((x, i) => (expected[i] = expected[i]! + x));
      await Promise.all([kv.push('a', grads), kv.pull('a', out)]);
      expect(out).toEqual(expected);
    }
  });
});

it('leaves other types than float32, first values and pulls as they are', async () => {
  const kv = await open('device');
  await kv.setGradientCompression({ type: '2bit' });
  await kv.init('a', Float64Array.of(0.1, 0.2));
  await kv.init('b', Float32Array.of(0.25, 0.125));
  const doubles = new Float64Array(2);
  await kv.pushPull('a', Float64Array.of(0.3, 7), doubles);
  expect([...doubles]).toEqual([0.3, 7]);
  const floats = new Float32Array(2);
  await kv.pull('b', floats);
  expect([...floats]).toEqual([0.25, 0.125]);
});

it('is refused where it does not belong', async () => {
  const local = await open('local');
  await expect(local.setGradientCompression({ type: '2bit' })).rejects.toMatchObject({
    code: 'ERR_UNSUPPORTED',
    message: expect.stringContaining("'device'") as string,
  });
  const kv = await open('device');
  await expect(kv.setGradientCompression({ type: '3bit' as '2bit' })).rejects.toThrow('2bit');
  const zero = kv.setGradientCompression({ type: '2bit', threshold: 0 });
  await expect(zero).rejects.toThrow('threshold');
  await kv.setGradientCompression({ type: '1bit', threshold: -1 });
  await expect(kv.setGradientCompression({ type: '2bit' })).rejects.toMatchObject({
    code: 'ERR_INVALID_ARG_VALUE',
  });
});

it('may be set after init, as in MXNet: it counts from the next push on', async () => {
  const kv = await open('device');
  await kv.init('a', filled(5000, 0));
  const [before, after] = [filled(5000, 0), filled(5000, 0)];
  // Nothing is awaited between.
  await Promise.all([
    kv.push('a', filled(5000, 0.75)),
    kv.pull('a', before),
    kv.setGradientCompression({ type: '2bit', threshold: 0.5 }),
    kv.push('a', filled(5000, 0.75)),
    kv.pull('a', after),
  ]);
  expect(before).toEqual(filled(5000, 0.75));
  expect(after).toEqual(filled(5000, 0.5));
});
