import { describe, expect, it } from 'vitest';

import { useBackend } from '../../lib/train/backends.js';

describe('useBackend', () => {
  it('says what computes', async () => {
    const backend = await useBackend('cpu');
    expect(backend).toMatchObject({ name: 'cpu', engine: 'cpu', device: 'CPU' });
    expect(backend).not.toHaveProperty('gpu');
  });

  it.each([
    ['gpu', undefined, 'ERR_INVALID_ARG_VALUE', "name, got 'gpu'"],
    ['cpu', { alowCpu: true }, 'ERR_INVALID_ARG_VALUE', 'mean allowCpu'],
    ['cpu', { allowCpu: 1 }, 'ERR_INVALID_ARG_TYPE', 'allowCpu, got 1'],
    ['cpu', 'allowCpu', 'ERR_INVALID_ARG_TYPE', "options, got 'allowCpu'"],
  ])('refuses %j with %j', async (name, options, code, message) => {
    const call = useBackend(name as never, options as never);
    await expect(call).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });
});
