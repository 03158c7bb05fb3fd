// What is closed is gone, of GPUs too: see test/process/closed.test.ts.
import { afterEach, describe, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { expectGone, script } from '../support/held.js';
import type { Kind } from '../support/held.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

const group = `const group = await Communicator.nccl({ gpus: [0, 1] });`;
const buffers = `
  const buffers = group.gpus.map((gpu) => DeviceBuffer.alloc(gpu, 'float32', n));
  await group.allReduce(buffers);`;
const dispose = `buffers.forEach((one) => one.dispose());`;

const kinds: Record<string, Kind> = {
  'a group of GPUs, while its registered memory is held': {
    before: `const kept = [];`,
    open: `
      ${group} ${buffers}
      kept.push(await group.allocRegistered('float32', n));
      return async () => { ${dispose} await group.close(); };`,
  },
  ...Object.fromEntries(
    ['device', 'nccl'].map((type) => [
      `a store of type ${type}`,
      {
        open: `
          const kv = await KVStore.create('${type}', { devices: ['gpu:0', 'gpu:1'] });
          const buffers = [0, 1].map((gpu) => DeviceBuffer.alloc(gpu, 'float32', n));
          await kv.init('w', buffers[0]);
          await kv.push('w', buffers);
          await kv.pull('w', buffers);
          return async () => { await kv.close(); ${dispose} };`,
      } satisfies Kind,
    ]),
  ),
};

describe('what is given back by', () => {
  it.each(Object.entries(kinds))('%s: all of it', async (_, kind) => {
    // The memory of the stand-ins' GPUs is the C library's.
    expectGone([await scripts.run(script(kind), scripts.env())], { heap: true });
    scripts.expectNothingLeft();
  });
});
