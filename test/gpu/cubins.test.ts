// The kernels' machine code where a package has it, in cubins/ beside the addon: GPUs load it, and compile nothing.
// @module-tag full
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { folderOfEachTest } from '../support/folders.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { well } from '../support/processes.js';
import { onRealGpus } from './setup/fakes.js';

interface Cubins {
  readonly makeCubins: () => {
    readonly reason?: string;
    readonly cubins?: readonly { readonly file: string }[];
  };
}

const root = join(import.meta.dirname, '../..');
const { makeCubins } = (await import(join(root, 'scripts/cubins.mjs'))) as Cubins;

/** ptxas takes half a minute for all of them, and longer beside other tests. */
const compilingMs = 300_000;

describe('cubins', () => {
  let folder: string;
  folderOfEachTest((made) => (folder = made));
  let scripts: GpuScripts;
  beforeEach((context) => {
    scripts = new GpuScripts();
    const { reason, cubins = [] } = makeCubins();
    if (reason !== undefined) context.skip(reason);
    const capability = gpuDevices()[0]?.computeCapability ?? '';
    if (!/^(8|9|10|12)\./.test(capability)) context.skip(`no cubin is for ${capability}`);
    mkdirSync(join(folder, 'cubins'));
    for (const { file } of cubins) copyFileSync(file, join(folder, 'cubins', basename(file)));
    copyFileSync(join(root, 'build/Release/gradlink.node'), join(folder, 'gradlink.node'));
  }, compilingMs);
  afterEach(() => scripts.remove());

  /** On the stand-in whatever is compiled fails; a real driver says the same. */
  const nothingCompiled = onRealGpus
    ? { CUDA_DISABLE_PTX_JIT: '1' }
    : { GRADLINK_FAKE_FAULTS: 'jit=223' };
  const summed = `
    const store = await KVStore.create('device', { devices: ['gpu:0', 'gpu:0'], merge: 'peers' });
    const arrays = [DeviceBuffer.alloc(0, 'float32', 5), DeviceBuffer.alloc(0, 'float32', 5)];
    await store.init('w', new Float32Array(5));
    for (const array of arrays) await array.copyFrom(Float32Array.of(1, 2, 3, 4, 5));
    await store.pushPull('w', arrays, arrays);
    report([...(await arrays[1].copyTo())]);
    await store.close();
    arrays.forEach((array) => array.dispose());
    report(gpuDevices()[0].kernels);`;

  it('are found beside the addon', async () => {
    const ended = await scripts.run(
      `import { createRequire } from 'node:module';
      const addon = createRequire(import.meta.url)(${JSON.stringify(join(folder, 'gradlink.node'))});
      report(addon.gpuInfo(0).kernels);`,
      scripts.env({ ...nothingCompiled }),
    );
    expect(existsSync(join(root, 'build/Release/cubins'))).toBe(false);
    expect(ended).toMatchObject({
      ...well,
      reports: [expect.stringMatching(/^cubin sm_\d+$/) as string],
    });
  });

  it('can be left out, for drivers that are to compile', async () => {
    const ended = await scripts.run(summed, scripts.env({ GRADLINK_CUBINS: '' }));
    expect(ended).toMatchObject({
      ...well,
      reports: [[2, 4, 6, 8, 10], expect.stringMatching(/PTX$/)],
    });
    scripts.expectNothingLeft();
  });
});
