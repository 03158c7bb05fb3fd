// Gradient compression through a store.
import { afterEach, expect, it } from 'vitest';

import { createOptimizer } from '../../lib/optimizers/create.js';
import { closeAll, filled, open } from './support.js';

afterEach(closeAll);

// Two devices, in full words of codes and one more: what a device does not send it keeps for itself alone.
it.each([
  ['2bit', [0, 0.5, 1, 0.5]],
  ['1bit', [-2, 2, 0, 0]],
] as const)(
  '%s: each device has its own residual, and an optimizer gets what was sent',
  async (type, sums) => {
    const pushed = [0.4, type === '2bit' ? 0.2 : -0.2];
    for (const optimizer of [false, true]) {
      const kv = await open('device', { devices: 2 });
      await kv.setGradientCompression({ type, threshold: 0.5 });
      await kv.init(0, filled(33, 0));
      if (optimizer) await kv.setOptimizer(createOptimizer('test'));
      let all = 0;
      for (const sum of sums) {
        all += sum;
        await kv.push(
          0,
          pushed.map((value) => filled(33, value)),
        );
        const out = filled(33, -1);
        await kv.pull(0, out);
        expect(out).toEqual(filled(33, optimizer ? all : sum));
      }
    }
  },
);

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
