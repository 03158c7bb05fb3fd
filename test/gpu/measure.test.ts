// `gradlink measure` on GPUs: as processes, as it is run, and in this process where only words matter.
import { describe, expect, it, vi } from 'vitest';

import { hasMeasurement } from '../../lib/results/result.js';
import { gpuCount, spread } from '../support/gpu-arrays.js';
import { runScript } from '../support/gpu-commands.js';
import { iterations, measure, parseReport } from '../support/measure.js';
import { onRealGpus } from './setup/fakes.js';

// Copies of a quarter of a gigabyte: the process below makes the real ones.
vi.mock('../../lib/measure/machine/gpu-copy-limit.js', () => ({
  measureGpuCopyLimit: () => Promise.resolve({ copyBytesPerSecond: 3e12 }),
}));

const four = spread(4).join(',');
const quick = ['--num-batches', '2'];

describe('as a process', () => {
  it('without a driver: one clear message, status 2', async () => {
    const { code, stdout, stderr } = await runScript('measure.js', ['--gpus', '0,1,2'], {
      GRADLINK_CUDA_LIBRARY: '/nonexistent/libcuda.so.1',
    });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^gradlink: --gpus: .*\/nonexistent\/libcuda\.so\.1.* --cpus 3 .*\n$/);
  });

  it('without NCCL the GPUs sum by themselves, and nccl says what is missing', async () => {
    const env = { GRADLINK_NCCL_LIBRARY: '/nonexistent/libnccl.so.2' };
    const small = ['--network', 'mlp', '--image-shape', '1,28,28', '--gpus', four, ...quick];
    const { code, stderr } = await runScript('measure.js', small, env);
    expect(code).toBe(0);
    expect(iterations(stderr).map((line) => line[3])).toEqual([0, 0]);
    if (onRealGpus && gpuCount < 4) return; // A GPU twice is refused before NCCL is looked for.
    const nccl = await runScript('measure.js', [...small, '--kv-store', 'nccl'], env);
    expect(nccl.code).toBe(2);
    expect(nccl.stderr).toMatch(/^gradlink: --kv-store: .*\/nonexistent\/libnccl\.so\.2/);
  });
});

describe('no devices named', () => {
  const small = ['--network', 'mlp', '--image-shape', '1,28,28', ...quick, '--format', 'json'];

  it('the GPUs that are there', async () => {
    const { code, stdout, stderr } = await measure(...quick, '--format', 'json');
    expect(code, stderr).toBe(0);
    const gpus = gpuCount === 1 ? '0,0,0,0' : spread(gpuCount).join(',');
    expect(stderr).toMatch(/--gpus, --cpus.*--devices/);
    expect(stderr).toContain(`--gpus ${gpus}.\n`);
    expect(parseReport(stdout).run.options).toMatchObject({ gpus });
  });

  it.skipIf(onRealGpus)('one alone is four devices', async () => {
    const { code, stderr } = await runScript('measure.js', small, { GRADLINK_FAKE_GPUS: '1' });
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/4 devices.*--gpus 0,0,0,0/);
    expect(iterations(stderr)).toHaveLength(2);
  });

  it('CPU devices without a GPU, without a driver, and where the store wants them', async () => {
    for (const env of [
      { CUDA_VISIBLE_DEVICES: '', GRADLINK_FAKE_GPUS: '0' },
      { GRADLINK_CUDA_LIBRARY: '/nonexistent/libcuda.so.1' },
    ]) {
      const { code, stderr } = await runScript('measure.js', small, env);
      expect(code, stderr).toBe(0);
      expect(stderr).toMatch(/--cpus.*--devices.*4 CPU/);
    }
    const alone = await runScript('measure.js', [...small, '--kv-store', 'allreduce']);
    expect(alone.stderr).toContain('4 CPU devices.');
  });
});

describe('what is run', () => {
  it.each([
    ['device', four],
    ['device', '0,0,0,0'],
    ['local', four],
    ['nccl', spread(gpuCount).join(',')],
  ])('%s on %s, both modes', async (store, gpus) => {
    for (const mode of ['push-pull', 'pushpull']) {
      const argv = ['--kv-store', store, '--gpus', gpus, '--mode', mode, ...quick];
      const { code, stdout, stderr } = await measure(...argv, '--format', 'json');
      expect(code, stderr).toBe(0);
      expect(iterations(stderr).map((line) => line[3])).toEqual([0, 0]);
      const report = parseReport(stdout);
      expect(report.run.options).toMatchObject({ gpus, kvStore: store });
      expect(report.gpus?.devices.map(({ ordinal }) => ordinal)).toEqual(
        [...new Set(gpus.split(','))].map(Number),
      );
      expect(report.cases).toMatchObject([{ status: 'ok', arrays: 6, check: { wrong: 0 } }]);
    }
  });

  it.each([
    ['--optimizer', 'adam'],
    ['--optimizer', 'lamb'],
    ['--gc-type', '2bit'],
    ['--dtype', 'float16'],
    ['--dtype', 'float64'],
  ])('with %s %s', async (...options) => {
    const { code, stdout, stderr } = await measure('--gpus', four, ...options, ...quick);
    expect(stdout).toMatch(/check +relative error/);
    expect(code, stderr).toBe(0);
  });

  it('without direct access between the GPUs', async () => {
    const { code, stdout, stderr } = await measure(
      ...['--gpus', four, '--no-peer', '--optimizer', 'adam', ...quick, '--format', 'json'],
    );
    expect(code, stderr).toBe(0);
    expect(parseReport(stdout).cases).toMatchObject([
      { status: 'ok', parameters: { peer: false }, check: { wrong: 0 } },
    ]);
  });

  it('GPUs by name, and several stores', async () => {
    const { code, stdout } = await measure(
      ...['--devices', 'gpu:0,gpu:0', '--compare', 'device,local,nccl', ...quick],
      ...['--format', 'json'],
    );
    expect(code).toBe(0);
    const { cases } = parseReport(stdout);
    expect(cases.map(({ status }) => status)).toEqual(['ok', 'ok', 'waived']);
  });
});

describe('the limit', () => {
  async function limitOf(gpus: string, ...options: string[]) {
    const { stdout } = await measure('--gpus', gpus, ...options, ...quick, '--format', 'json');
    const [only] = parseReport(stdout).cases;
    if (only === undefined || !hasMeasurement(only)) throw new Error('nothing was measured');
    return only.limit;
  }

  it('within one GPU: its own copies, against all that must move', async () => {
    const limit = await limitOf('0,0,0,0');
    expect(limit).toMatchObject({ copyBytesPerSecond: 3e12, mustMoveBytes: 9 * 437544 });
    expect(limit?.basis).toBeUndefined();
  });

  it.skipIf(onRealGpus)('between GPUs: their links', async () => {
    const limit = await limitOf('0,1,2,3');
    expect(limit).toMatchObject({ mustMoveBytes: 437544 * 1.5 });
    expect(limit?.basis).toContain('NVLinks');
  });

  it.skipIf(onRealGpus)("through the host: a GPU's link to it", async () => {
    expect(await limitOf('0,1', '--kv-store', 'local')).toMatchObject({
      mustMoveBytes: 437544,
      basis: expect.stringContaining('75 % of PCIe') as string,
    });
    expect(await limitOf('0,0', '--kv-store', 'local')).toMatchObject({
      mustMoveBytes: 2 * 437544,
    });
    expect(await limitOf('0,1,2,3', '--no-peer')).toMatchObject({
      mustMoveBytes: 437544 * 1.5,
      basis: expect.stringContaining('75 % of PCIe') as string,
    });
  });
});

describe('refused, with 2', () => {
  it.each([
    [['--gpus', `0,${String(gpuCount)}`], new RegExp(`--gpus: .*got ${String(gpuCount)}`)],
    [['--gpus', '0,x'], /--gpus .*'0,x'.*whole number/],
    [['--gpus', '0', '--devices', 'gpu:0'], /--gpus.*--devices/],
    [['--gpus', '0,0', '--kv-store', 'nccl'], /--kv-store: .*each GPU/],
    [['--gpus', '0', '--kv-store', 'local', '--no-peer'], /--no-peer.*--kv-store device.*--gpus/],
    [['--gpus', '0', '--no-peer', '--merge', 'nccl'], /NCCL_P2P_DISABLE/],
  ])('%j', async (argv, message) => {
    const { code, stdout, stderr } = await measure(...argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('INFO:root');
  });
});
