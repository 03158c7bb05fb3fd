import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, describe, expect, it, vi } from 'vitest';

import '../support/known-limits.js';
import type { Keys, StoreCallOptions } from '../../lib/kvstore/calls.js';
import { KVStore } from '../../lib/kvstore/kvstore.js';
import { optimizerNames } from '../../lib/optimizers/index.js';
import { gradlink } from '../support/cli.js';
import { iterations, measure, parseReport, small } from '../support/measure.js';
import { words } from '../support/words.js';
import { folderOfAllTests } from '../support/folders.js';

let scratch = '';
folderOfAllTests((made) => (scratch = made));
afterEach(() => {
  vi.restoreAllMocks();
});

describe('text output', () => {
  it("keeps the original's lines, then sums up", async () => {
    const { code, stdout, stderr } = await measure(
      ...words('--cpus 2 --num-batches 4 --disp-batches 2'),
    );
    expect(code).toBe(0);
    const [first, own, second, ...rest] = stderr.split('\n');
    // argparse's order is alphabetical; the original's options are all there, with its names, and no other.
    expect(first).toMatch(
      /^INFO:root:Namespace\(disp_batches=2, gc_threshold=0\.5, gc_type='none', gpus=None, image_shape='1,28,28', kv_store='device', network='mlp', num_batches=4, num_classes=10, num_layers=152, optimizer='None', test_results=1\)$/,
    );
    expect(own).toMatch(/^INFO:root:also cpus=2, .*dtype='float32'/);
    expect(second).toBe('INFO:root:num of arrays = 6, total size = 0.437544 MB');
    const lines = iterations(rest.join('\n'));
    expect(lines.map(([iteration]) => iteration)).toEqual([2, 4]);
    for (const [, seconds = 0, bandwidth = 0, error] of lines) {
      expect(error).toBe(0);
      // S 2(n-1)/n / t, within what six decimals of both allow: a slow machine's rate has few digits.
      const rounding = 0.51e-6 * (seconds + bandwidth);
      expect(Math.abs(seconds * bandwidth - 0.437544e-3)).toBeLessThan(rounding);
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
      expect(stdout).toContain(name);
      expect(stderr).not.toContain(`  ${name} `);
    }
    // `measure > out.txt` is the answer, and nothing but the answer.
    expect(stdout).toMatch(/^kvstore /);
    expect(stdout).not.toContain('INFO:root');
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
    const { code, stderr } = await measure(...words('--cpus 1 --test-results 0 --num-batches 1'));
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
    const shown = stderr.replace(/[^\n]*\u001b\[2K/g, '').replace(/\u001b\[[\d;?]*[A-Za-z]/g, '');
    expect(iterations(shown)).toHaveLength(2);
  });
});

describe('what is run', () => {
  it.each(['float32', 'float64', 'float16', 'bfloat16'])(
    'gradients of %s, in both modes',
    async (dtype) => {
      for (const mode of ['push-pull', 'pushpull']) {
        const { code, stdout } = await measure(
          ...words('--devices cpu:0,cpu:1,cpu:2 --dtype'),
          dtype,
          '--mode',
          mode,
          '--num-batches',
          '1',
        );
        expect(stdout).toMatch(/check +relative error/);
        expect(code).toBe(0);
      }
    },
  );

  it.each(optimizerNames)('the optimizer %s, against its own copy in float64', async (name) => {
    const { code, stderr } = await measure(
      ...words('--cpus 2 --optimizer'),
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
      ...words('--cpus 2 --optimizer adam --dtype float16 --num-batches 2'),
    );
    expect(code).toBe(0);
  });

  it.each(['2bit', '1bit'])(
    '%s compression, with the same compression in what is expected',
    async (type) => {
      for (const optimizer of ['None', 'sgd']) {
        const { code, stdout, stderr } = await measure(
          ...words('--cpus 2 --gc-type'),
          type,
          ...words('--gc-threshold 0.3 --optimizer'),
          optimizer,
        );
        expect(iterations(stderr).map((line) => line[3])).toEqual([0, 0, 0, 0, 0]);
        expect(stdout).toContain('residuals');
        expect(code).toBe(0);
      }
    },
  );

  it('more arrays with --all-params', async () => {
    const count = async (...argv: string[]) => {
      const { stderr } = await gradlink([
        ...words('measure --network mobilenet --multiplier 0.25 --cpus 1 --num-batches 1'),
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
        key: Keys,
        arrays: unknown,
        options?: StoreCallOptions,
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
    const { code, stdout, stderr } = await measure(...words('--cpus 3 --format json --seed 7'));
    expect(code).toBe(0);
    expect(iterations(stderr)).toHaveLength(5);
    expect(stderr).not.toContain('verdict');
    const report = parseReport(stdout);
    expect(report.run.tool).toBe('measure');
    expect(report.run.commandLine).toEqual([
      ...small.slice(1),
      ...words('--cpus 3 --format json --seed 7'),
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
      ...words('--cpus 1 --num-batches 1 --output'),
      file,
      ...argv,
    );
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('verdict');
    expect(readFileSync(file, 'utf8')).toMatch(pattern);
  });

  it('compares stores side by side and waives those that are not here', async () => {
    const { code, stdout } = await measure(
      ...words('--cpus 2 --num-batches 1 --compare device,local,nccl --format json'),
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
      ...words('--cpus 1 --num-batches 1 --kv-store local --compare device --format json'),
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
      await measure(...words('--cpus 1 --num-batches 1 --warmup 0 --test-results 0 --seed'), seed);
    }
    expect(drawn[1]).toEqual(drawn[0]);
    expect(drawn[2]).not.toEqual(drawn[0]);
  });
});
