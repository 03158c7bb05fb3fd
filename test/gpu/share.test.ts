import { expect, it } from 'vitest';

import { gpuDevices } from '../../lib/index.js';
import { gpuShares } from '../../lib/measure/machine/gpu-share.js';

it('gpuShares is the mean of what the GPUs tell', () => {
  const known = gpuDevices().flatMap(({ health }) => health?.utilizationPercent ?? []);
  const share = gpuShares()?.();
  if (known.length === 0) expect(share).toBeUndefined();
  else {
    expect(share).toBeGreaterThanOrEqual(0);
    expect(share).toBeLessThanOrEqual(1);
  }
  // The stand-ins' GPUs are busy in 37 of 100 moments.
  if (process.env.GRADLINK_GPU_TESTS !== 'real') expect(share).toBeCloseTo(0.37, 10);
});
