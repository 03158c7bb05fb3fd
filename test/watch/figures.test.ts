import { describe, expect, it } from 'vitest';

import { iterationLine } from '../../lib/report/mxnet-lines.js';
import { collectivesTool } from '../../lib/report/index.js';
import { Figures, figuresIn } from '../../lib/watch/figures.js';
import { collectiveCase } from '../support/reports.js';

describe('figures in lines', () => {
  it("knows the package's own lines", () => {
    const iteration = { iteration: 3, seconds: 0.02, bytesPerSecond: 11.1e9, error: 0 };
    expect(figuresIn(iterationLine(iteration))).toEqual([
      { name: 'bandwidth per device', value: 11.1, unit: 'GB/s' },
    ]);
    const [row = ''] = collectivesTool.rows([collectiveCase()]);
    expect(figuresIn(row)).toEqual([
      { name: 'bus bandwidth, out of place', value: 3.15, unit: 'GB/s' },
    ]);
    expect(figuresIn(`[0] ${row}`)).toHaveLength(1);
  });

  it.each([
    ['Iter #3: 123.4 img/sec per GPU', 123.4, 'images/s'],
    ['step 7/100, 12.5 ms, 456.7 images/s', 456.7, 'images/s'],
    ['batch 12: 1e3 samples per second', 1000, 'samples/s'],
    ['iteration 2 8192 tokens/s', 8192, 'tokens/s'],
  ])('knows %j', (line, value, unit) => {
    expect(figuresIn(line)).toEqual([{ name: 'throughput', value, unit }]);
  });

  it('knows a loss beside a rate', () => {
    expect(figuresIn('step 4: loss 0.25, 90 images/s').map(({ value }) => value)).toEqual([
      90, 0.25,
    ]);
    expect(figuresIn('epoch 1 loss=-1.5e-3')).toEqual([{ name: 'loss', value: -0.0015, unit: '' }]);
  });

  it.each(['', 'loss', 'waiting for 4 images/s', '# 4 ranks', '2026-01-01 12 34 started'])(
    'finds none in %j',
    (line) => {
      expect(figuresIn(line)).toEqual([]);
    },
  );

  // In squares of their length these would take minutes.
  it.each([
    ['of steps', 'step 1 '.repeat(50_000)],
    ['of digits', `step 1 ${'1'.repeat(500_000)}`],
    ['of steps and digits', 'step 1 '.repeat(50_000) + '1'.repeat(500_000)],
    ['of dots', `iter 1, 1 sec, ${'1.'.repeat(250_000)}`],
  ])('finds none in a long line %s', (_, line) => {
    expect(figuresIn(line)).toEqual([]);
  });

  it('keeps the points of each line apart, in order', () => {
    const figures = new Figures();
    for (const line of ['step 1 10 images/s', 'hello', 'loss 3', 'step 2 20 images/s']) {
      figures.add(line);
    }
    expect(figures.lines).toEqual([
      { name: 'throughput', unit: 'images/s', values: [10, 20] },
      { name: 'loss', unit: '', values: [3] },
    ]);
  });
});
