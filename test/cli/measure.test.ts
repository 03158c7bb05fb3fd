import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Ajv } from 'ajv';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { KVStore } from '../../lib/kvstore/kvstore.js';
import { reportSchema, type Report } from '../../lib/measure/index.js';
import { optimizerNames } from '../../lib/optimizers/index.js';
import { gradlink } from '../support/cli.js';

// Takes a third of a second each time; the acceptance runs measure the real one.
vi.mock('../../lib/measure/memory-limit.js', () => ({
  measureMemoryLimit: () => Promise.resolve({ copyBytesPerSecond: 2e10, threads: 2 }),
}));

// 109,386 elements in 6 arrays: small enough for dozens of runs.
const small = ['measure', '--network', 'mlp', '--image-shape', '1,28,28', '--num-classes', '10'];
const measure = (...argv: string[]) => gradlink([...small, ...argv]);

let scratch = '';
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'gradlink-measure-'));
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});
afterEach(() => {
  vi.restoreAllMocks();
});

function parseReport(text: string): Report {
  const value: unknown = JSON.parse(text);
  const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(reportSchema);
  expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
  return value as Report;
}

/** The lines of the original, as a script that reads it would find them. */
function iterations(stderr: string) {
  const pattern =
    /^INFO:root:iter (\d+), (\d+\.\d{6}) sec, (\d+\.\d{6}) GB\/sec per gpu, error (-?\d+\.\d{6})$/gm;
  return [...stderr.matchAll(pattern)].map((match) => match.slice(1).map(Number));
}

describe('text output', () => {
  it("keeps the original's lines, then sums up", async () => {
    const { code, stdout, stderr } = await measure(
      '--cpus',
      '2',
      '--num-batches',
      '4',
      '--disp-batches',
      '2',
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    const [first, second, ...rest] = stderr.split('\n');
    // argparse's order is alphabetical; the original's options are all there, with its names.
    expect(first).toMatch(
      /^INFO:root:Namespace\(.*disp_batches=2, .*gc_type='none', gpus=None, image_shape='1,28,28', kv_store='device', .*network='mlp', num_batches=4, num_classes=10, num_layers=152, optimizer='None', .*test_results=1.*\)$/,
    );
    expect(second).toBe('INFO:root:num of arrays = 6, total size = 0.437544 MB');
    const lines = iterations(rest.join('\n'));
    expect(lines.map(([iteration]) => iteration)).toEqual([2, 4]);
    for (const [, seconds = 0, bandwidth = 0, error] of lines) {
      expect(error).toBe(0);
      // S 2(n-1)/n / t, within what six decimals of the time allow.
      expect(Math.abs(0.437544 / 1e3 / bandwidth - seconds)).toBeLessThan(1e-6 + seconds * 1e-3);
    }
    for (const name of [
      'median',
      'min',
      'p95',
      'interval',
      'must move',
      'copy',
      'ratio',
      'verdict',
    ]) {
      expect(stderr).toContain(name);
    }
  });

  it('says on the first line that four CPU devices stand in for GPUs', async () => {
    const { code, stderr } = await measure('--num-batches', '1');
    expect(code).toBe(0);
    expect(stderr.split('\n')[0]).toBe(
      'No GPU is used and neither --cpus nor --devices was given: 4 CPU devices.',
    );
    expect(stderr).toContain("devices='cpu:0,cpu:1,cpu:2,cpu:3'");
  });

  it('prints -1 for the error when results are not checked', async () => {
    const { code, stderr } = await measure(
      '--cpus',
      '1',
      '--test-results',
      '0',
      '--num-batches',
      '1',
    );
    expect(code).toBe(0);
    // One device: the original's formula gives 0 GB/s.
    expect(iterations(stderr)).toEqual([[1, expect.any(Number), 0, -1]]);
  });

  it('draws its bar on a terminal only, and never into the lines', async () => {
    const argv = [...small, '--cpus', '2', '--num-batches', '2', '--progress'];
    const bar = /batches, .* s left/;
    expect((await gradlink(argv)).stderr).not.toMatch(bar);
    const { stderr } = await gradlink(argv, { terminal: true });
    expect(stderr).toMatch(bar);
    const shown = stderr.replace(/[^\n]*\r/g, '').replace(/\u001b\[[\d;?]*[A-Za-z]/g, '');
    expect(iterations(shown)).toHaveLength(2);
  });
});

describe('what is run', () => {
  it.each(['float32', 'float64', 'float16', 'bfloat16'])(
    'gradients of %s, in both modes',
    async (dtype) => {
      for (const mode of ['push-pull', 'pushpull']) {
        const { code, stderr } = await measure(
          '--devices',
          'cpu:0,cpu:1,cpu:2',
          '--dtype',
          dtype,
          '--mode',
          mode,
          '--num-batches',
          '1',
        );
        expect(stderr).toMatch(/check +relative error/);
        expect(code).toBe(0);
      }
    },
  );

  it.each(optimizerNames)('the optimizer %s, against its own copy in float64', async (name) => {
    const { code, stderr } = await measure(
      '--cpus',
      '2',
      '--optimizer',
      name,
      '--num-batches',
      '2',
    );
    expect(stderr).toContain(`optimizer='${name}'`);
    expect(iterations(stderr).map((line) => line[3])).toEqual([0, 0]);
    expect(code).toBe(0);
  });

  it('half precision steps on float32 weights', async () => {
    const { code } = await measure(
      '--cpus',
      '2',
      '--optimizer',
      'adam',
      '--dtype',
      'float16',
      '--num-batches',
      '2',
    );
    expect(code).toBe(0);
  });

  it('takes None for no optimizer, as the original does', async () => {
    const { code, stderr } = await measure(
      '--cpus',
      '2',
      '--optimizer',
      'None',
      '--num-batches',
      '1',
    );
    expect(code).toBe(0);
    expect(stderr).toContain("optimizer='None'");
  });

  it.each(['2bit', '1bit'])(
    '%s compression, with the same compression in what is expected',
    async (type) => {
      for (const optimizer of ['None', 'sgd']) {
        const { code, stderr } = await measure(
          '--cpus',
          '2',
          '--gc-type',
          type,
          '--gc-threshold',
          '0.3',
          '--optimizer',
          optimizer,
        );
        expect(iterations(stderr).map((line) => line[3])).toEqual([0, 0, 0, 0, 0]);
        expect(stderr).toContain('residuals read and written');
        expect(code).toBe(0);
      }
    },
  );

  it('more arrays with --all-params', async () => {
    const count = async (...argv: string[]) => {
      const { stderr } = await gradlink([
        'measure',
        '--network',
        'mobilenet',
        '--multiplier',
        '0.25',
        '--cpus',
        '1',
        '--num-batches',
        '1',
        ...argv,
      ]);
      return Number(/num of arrays = (\d+)/.exec(stderr)?.[1]);
    };
    expect(await count()).toBe(29);
    expect(await count('--all-params')).toBe(29 + 2 * 27);
  });

  it('no warm-up, or several', async () => {
    for (const [warmup, pulls] of [
      ['0', 2],
      ['3', 5],
    ] as const) {
      const pull = vi.spyOn(KVStore.prototype, 'pull');
      expect((await measure('--cpus', '1', '--num-batches', '2', '--warmup', warmup)).code).toBe(0);
      expect(pull).toHaveBeenCalledTimes(6 * pulls);
      vi.restoreAllMocks();
    }
  });

  it('pushes in order with rising priorities, then pulls', async () => {
    const order: unknown[] = [];
    for (const name of ['push', 'pull'] as const) {
      // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its store below
      const original = KVStore.prototype[name];
      vi.spyOn(KVStore.prototype, name).mockImplementation(function (
        this: KVStore,
        key,
        arrays,
        options,
      ) {
        order.push([name, key, options?.priority, (arrays as unknown[]).length]);
        return original.call(this, key, arrays as never, options);
      });
    }
    await measure('--cpus', '2', '--num-batches', '1', '--warmup', '0');
    const expected = (name: string) => [0, 1, 2, 3, 4, 5].map((key) => [name, key, key, 2]);
    expect(order).toEqual([...expected('push'), ...expected('pull')]);
  });
});

describe('reports', () => {
  it('JSON on standard output follows the schema, beside the lines', async () => {
    const { code, stdout, stderr } = await measure(
      '--cpus',
      '3',
      '--format',
      'json',
      '--seed',
      '7',
    );
    expect(code).toBe(0);
    expect(iterations(stderr)).toHaveLength(5);
    expect(stderr).not.toContain('verdict');
    const report = parseReport(stdout);
    expect(report.run.tool).toBe('measure');
    expect(report.run.commandLine).toEqual([
      ...small.slice(1),
      '--cpus',
      '3',
      '--format',
      'json',
      '--seed',
      '7',
    ]);
    expect(report.run.options).toMatchObject({ seed: 7, kvStore: 'device', numBatches: 5 });
    expect(report.cases).toMatchObject([
      {
        status: 'ok',
        arrays: 6,
        bytes: 437544,
        warmupIterations: 1,
        check: { kind: 'error', wrong: 0, passed: true },
        // Three gradients in, three weights out, one value stored.
        limit: { mustMoveBytes: 7 * 437544 },
      },
    ]);
  });

  it.each([
    ['run.json', [], /^\{\n {2}"schemaVersion": 1/],
    ['run.csv', [], /^name,status,.*\r?\nkvstore,ok,/],
    ['run.md', [], /^## gradlink measure\n/],
    ['run.txt', [], /^INFO:root:Namespace/],
    ['run.data', ['--format', 'csv'], /^name,status,/],
  ])('writes %s with the format %j or by its ending', async (name, argv, pattern) => {
    const file = join(scratch, name);
    const { code, stdout, stderr } = await measure(
      '--cpus',
      '1',
      '--num-batches',
      '1',
      '--output',
      file,
      ...argv,
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain('verdict');
    expect(readFileSync(file, 'utf8')).toMatch(pattern);
  });

  it('compares stores side by side and waives those that are not here', async () => {
    const { code, stdout } = await measure(
      '--cpus',
      '2',
      '--num-batches',
      '1',
      '--compare',
      'device,local,nccl',
      '--format',
      'json',
    );
    expect(code).toBe(0);
    const { cases } = parseReport(stdout);
    expect(cases.map(({ status, parameters }) => [parameters['kvStore'], status])).toEqual([
      ['device', 'ok'],
      ['local', 'ok'],
      ['nccl', 'waived'],
    ]);
  });

  it('puts the store of --kv-store first', async () => {
    const { stdout } = await measure(
      '--cpus',
      '1',
      '--num-batches',
      '1',
      '--kv-store',
      'local',
      '--compare',
      'device',
      '--format',
      'json',
    );
    expect(parseReport(stdout).cases.map(({ parameters }) => parameters['kvStore'])).toEqual([
      'local',
      'device',
    ]);
  });

  it('the same seed draws the same gradients, another one others', async () => {
    const drawn: Float32Array[] = [];
    vi.spyOn(KVStore.prototype, 'push').mockImplementation((key, arrays) => {
      if (key === 0) drawn.push(...(arrays as Float32Array[]));
      return Promise.resolve();
    });
    for (const seed of ['5', '5', '6']) {
      await measure(
        '--cpus',
        '1',
        '--num-batches',
        '1',
        '--warmup',
        '0',
        '--test-results',
        '0',
        '--seed',
        seed,
      );
    }
    expect(drawn[1]).toEqual(drawn[0]);
    expect(drawn[2]).not.toEqual(drawn[0]);
  });
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
    const { code, stderr } = await measure('--cpus', '2', '--num-batches', '1');
    expect(code).toBe(1);
    // Far below what the original's error could show.
    expect(iterations(stderr).map((line) => line[3])).toEqual([0]);
    expect(stderr).toMatch(/wrong result: 2 elements/);
  });

  it('is found behind an optimizer too', async () => {
    spoil(5, (out) => out.fill(0));
    const { code, stderr } = await measure(
      '--cpus',
      '2',
      '--num-batches',
      '1',
      '--optimizer',
      'adam',
    );
    expect(code).toBe(1);
    expect(stderr).toContain('wrong result');
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
    [['--cpus', '0'], '--cpus', 'from 1 to 1024'],
    [['--cpus', '2', '--devices', 'cpu:0'], '--devices', 'one of the two'],
    [['--devices', 'gpu:0'], '--devices', '--cpus N'],
    [['--devices', 'cpu:0,cpu:0'], '--devices', 'repeated'],
    [['--kv-store', 'devise'], '--kv-store', 'Expected a store type (local, device'],
    [['--kv-store', 'nccl'], '--kv-store', 'available here: local and device'],
    [['--kv-store', 'dist_sync'], '--kv-store', 'available here: local and device'],
    [['--compare', 'device,'], '--compare', 'empty'],
    [['--num-batches', '0'], '--num-batches', 'from 1'],
    [['--num-batches', '3', '--disp-batches', '4'], '--disp-batches', 'at most the 3'],
    [['--warmup', '-1'], '--warmup', 'from 0'],
    [['--test-results', '2'], '--test-results', 'from 0 to 1'],
    [['--image-shape', '3,224'], '--image-shape', '3,224,224'],
    [['--num-classes', 'ten'], '--num-classes', 'whole number'],
    [['--network', 'alexnot'], 'network', 'one of resnet,'],
    [['--network', 'vgg'], '--num-layers of vgg', 'got 152'],
    [['--network', 'inception-v3', '--image-shape', '3,224,224'], '--image-shape', '3,299,299'],
    [['--optimizer', 'sdg'], '--optimizer', 'None or one of: adadelta'],
    [['--dtype', 'int8'], '--dtype', 'float32, float64, float16, bfloat16'],
    [['--gc-type', '4bit'], '--gc-type', 'none, 2bit, 1bit'],
    [['--gc-type', '2bit', '--kv-store', 'local'], '--gc-type', 'Use --kv-store device'],
    [
      ['--gc-type', '2bit', '--dtype', 'float64'],
      '--gc-type',
      'none with a --dtype other than float32',
    ],
    [['--gc-threshold', '0'], '--gc-threshold', 'greater than 0'],
    [['--mode', 'pull'], '--mode', 'push-pull, pushpull'],
    [['--seed', '1.5'], '--seed', 'whole number'],
    [['--format', 'xml'], '--format', 'text, json, csv, markdown'],
    [['--output', '/nonexistent/run.json'], '--output', 'a file that can be written'],
    [['--output', '/'], '--output', 'it is a directory'],
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
