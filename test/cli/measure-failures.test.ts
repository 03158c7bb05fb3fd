import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import '../support/known-limits.js';
import { KVStore } from '../../lib/kvstore/kvstore.js';
import { folderOfAllTests } from '../support/folders.js';
import { iterations, measure, parseReport } from '../support/measure.js';
import { words } from '../support/words.js';

let scratch = '';
folderOfAllTests((made) => (scratch = made));
beforeAll(() => {
  // These tests are about machines without GPUs.
  vi.stubEnv('GRADLINK_CUDA_LIBRARY', '/nonexistent/libcuda.so.1');
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe('a wrong result', () => {
  /** Spoils what the first pull of this key gives in the first device's array. */
  function spoil(key: number, change: (out: Float32Array) => void): void {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its store below
    const original = KVStore.prototype.pull;
    vi.spyOn(KVStore.prototype, 'pull').mockImplementation(async function (
      this: KVStore,
      one,
      outs,
      options,
    ) {
      await original.call(this, one, outs as never, options);
      const [first] = outs as Float32Array[];
      if (one === key && first !== undefined) change(first);
    });
  }

  it('is exit status 1, even if it is one element of thousands', async () => {
    spoil(0, (out) => {
      out[77] = (out[77] ?? 0) + 1e-5;
    });
    const { code, stdout, stderr } = await measure('--cpus', '2', '--num-batches', '1');
    expect(code).toBe(1);
    // Far below what the original's error could show.
    expect(iterations(stderr).map((line) => line[3])).toEqual([0]);
    expect(stdout).toMatch(/wrong result: 2 elements/);
  });

  it('is found behind an optimizer too', async () => {
    spoil(5, (out) => out.fill(0));
    const { code, stdout } = await measure(...words('--cpus 2 --num-batches 1 --optimizer adam'));
    expect(code).toBe(1);
    expect(stdout).toContain('wrong result');
  });

  it('is found when it is NaN', async () => {
    spoil(3, (out) => {
      out[0] = NaN;
    });
    const { code, stderr } = await measure('--cpus', '2', '--num-batches', '1');
    expect(code).toBe(1);
    expect(stderr).toContain('error nan');
  });

  it('and so is a store that fails', async () => {
    vi.spyOn(KVStore.prototype, 'push').mockRejectedValue(new Error('the store broke'));
    const { code, stdout } = await measure('--cpus', '2', '--num-batches', '1', '--format', 'json');
    expect(code).toBe(1);
    expect(parseReport(stdout).cases).toMatchObject([
      { status: 'error', reason: 'the store broke' },
    ]);
  });
});

describe('bad usage is refused before anything is measured, with 2', () => {
  it.each([
    [['--gpus', '0,1'], '--gpus', 'Use --cpus 2'],
    [['--gpus', '0,,1'], '--gpus', 'empty'],
    [['--gpus', '0', '--cpus', '2'], '--gpus and --cpus', 'cannot be combined'],
    [['--cpus', '0'], '--cpus', 'from 1 to 1024'],
    [['--cpus', '2', '--devices', 'cpu:0'], '--devices', 'cannot be combined'],
    [['--devices', 'gpu:0'], '--devices', 'Use --cpus 1'],
    [['--devices', 'gpu:0,cpu:0'], '--devices', 'GPUs only'],
    [['--devices', 'tpu:0'], '--devices', "'gpu:'"],
    [['--devices', 'cpu:0,cpu:0'], '--devices', 'cpu:0 twice'],
    [['--kv-store', 'devise'], '--kv-store', 'store type (local, device'],
    [['--kv-store', 'nccl'], '--kv-store', 'here: local, device'],
    [['--kv-store', 'dist_sync'], '--kv-store', 'needs servers'],
    [['--compare', 'device,'], '--compare', 'empty'],
    [['--num-batches', '0'], '--num-batches', 'from 1'],
    [['--num-batches', '3', '--disp-batches', '4'], '--disp-batches', 'the 3 of --num-batches'],
    [['--warmup', '-1'], '--warmup', 'from 0'],
    [['--test-results', '2'], '--test-results', 'from 0 to 1'],
    [['--image-shape', '3,224'], '--image-shape', '3,224,224'],
    [['--num-classes', 'ten'], '--num-classes', 'whole number'],
    [['--network', 'alexnot'], '--network', 'mean alexnet?'],
    [['--network', 'vgg'], '--num-layers of vgg', 'got 152'],
    [['--network', 'inception-v3', '--image-shape', '3,224,224'], '--image-shape', '3,299,299'],
    [['--optimizer', 'sdg'], '--optimizer', ': None, adadelta'],
    [['--dtype', 'int8'], '--dtype', 'float32, float64, float16, bfloat16'],
    [['--gc-type', '4bit'], '--gc-type', 'none, 2bit, 1bit'],
    [['--gc-type', '2bit', '--kv-store', 'local'], '--gc-type', 'Use --kv-store device'],
    [
      ['--gc-type', '2bit', '--dtype', 'float64'],
      '--gc-type',
      '2bit cannot be combined with --dtype float64',
    ],
    [['--gc-threshold', '0'], '--gc-threshold', 'greater than 0'],
    [['--mode', 'pull'], '--mode', 'push-pull, pushpull'],
    [['--seed', '1.5'], '--seed', 'whole number'],
    [['--format', 'xml'], '--format', 'text, json, csv, markdown'],
    [['--output', '/nonexistent/run.json'], '--output', 'got /nonexistent/run.json'],
    [['--output', '/'], '--output', 'a directory'],
    [
      ['--cpus', '1024', '--network', 'alexnet', '--image-shape', '3,224,224'],
      '--cpus',
      'fit into',
    ],
  ])('%j', async (argv, option, message) => {
    const { code, stdout, stderr } = await measure(...argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^gradlink: /);
    expect(stderr).toContain(option);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('INFO:root');
  });

  it('leaves no file behind', async () => {
    const file = join(scratch, 'never.json');
    await measure('--gpus', '0', '--output', file);
    expect(existsSync(file)).toBe(false);
  });
});
