// Gradient compression through a store, against the plain reference in test/support.
import { afterEach, describe, expect, it } from 'vitest';

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
    const residuals = Array.from({ length: devices }, () => new Float32Array(count));
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
});
