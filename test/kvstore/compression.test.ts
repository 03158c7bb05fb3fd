// Gradient compression through a store. What the codes mean is tested natively, over every store that has them.
import { afterEach, expect, it } from 'vitest';

import { closeAll, filled, open } from './support.js';

afterEach(closeAll);

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
    kv.setGradientCompression({ type: '2bit' }),
    kv.push('a', filled(5000, 0.75)),
    kv.pull('a', after),
  ]);
  expect(before).toEqual(filled(5000, 0.75));
  expect(after).toEqual(filled(5000, 0.5));
});
