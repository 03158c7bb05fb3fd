// A rank that has loaded the CUDA driver cannot be given a GPU of its own any more, and is told so.
import { expect, it } from 'vitest';

import { native } from '../../lib/native/load.js';
import { takeOwnGpu } from '../../lib/train/own-gpu.js';

it('a driver that is loaded is too late for a GPU of its own', async () => {
  native().gpuCount();
  const { env } = process;
  const kept = { ...env };
  const place = { GRADLINK_LOCAL_RANK: '1', GRADLINK_LOCAL_SIZE: '2', CUDA_VISIBLE_DEVICES: '0,1' };
  const warned = new Promise<Error & { code?: string }>((resolve) => {
    process.once('warning', resolve);
  });
  Object.assign(env, place);
  try {
    expect(takeOwnGpu()).toBeUndefined();
    expect(env['CUDA_VISIBLE_DEVICES']).toBe('0,1');
  } finally {
    for (const name of Object.keys({ ...place, TF_FORCE_GPU_ALLOW_GROWTH: '' })) {
      if (kept[name] === undefined) Reflect.deleteProperty(env, name);
      else env[name] = kept[name];
    }
  }
  const warning = await warned;
  expect(warning).toMatchObject({ name: 'GradlinkWarning', code: 'GRADLINK_GPU_LATE' });
  expect(warning.message).toContain('gradlink launch --gpu-per-worker');
});
