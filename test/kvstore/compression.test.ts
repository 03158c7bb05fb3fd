// Gradient compression through a store. What the codes mean is tested natively, over every store that has them.
import { afterEach, expect, it } from 'vitest';

import { closeAll, open } from './support.js';
import { errorWith } from '../support/errors.js';

afterEach(closeAll);

it('is refused where it does not belong', async () => {
  const local = await open('local');
  await expect(local.setGradientCompression({ type: '2bit' })).rejects.toThrow(
    errorWith('ERR_UNSUPPORTED', /'device'/),
  );
  const kv = await open('device');
  await expect(kv.setGradientCompression({ type: '3bit' as '2bit' })).rejects.toThrow('2bit');
  const zero = kv.setGradientCompression({ type: '2bit', threshold: 0 });
  await expect(zero).rejects.toThrow('threshold');
  await kv.setGradientCompression({ type: '1bit', threshold: -1 });
  await expect(kv.setGradientCompression({ type: '2bit' })).rejects.toMatchObject({
    code: 'ERR_INVALID_ARG_VALUE',
  });
});

it('of two bits sends 0.5 where no threshold is given', async () => {
  const kv = await open('device');
  await kv.setGradientCompression({ type: '2bit' });
  await kv.init('a', new Float32Array(20));
  const out = new Float32Array(20);
  await Promise.all([kv.push('a', new Float32Array(20).fill(0.75)), kv.pull('a', out)]);
  expect(out).toEqual(new Float32Array(20).fill(0.5));
});
