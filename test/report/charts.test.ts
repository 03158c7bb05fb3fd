// What the lines of charts run over, what limits them, and what their parameters are called.
import { describe, expect, it } from 'vitest';

import { sizeAxis, timeAxis, timeScale } from '../../lib/report/charts/axes.js';
import { chartsOf } from '../../lib/report/charts/index.js';
import { limitPoints } from '../../lib/report/charts/limits.js';
import { parameterTitle, parameterWords } from '../../lib/report/charts/parameters.js';
import { hasMeasurement, type Limit, type Measurement } from '../../lib/results/result.js';
import { aboveRun, ddpRun } from '../support/page-runs.js';

const measured = aboveRun().cases.find(hasMeasurement)!;

function point(series: string, size: number, limit: Partial<Limit>) {
  const measurement: Measurement = { ...measured, limit: { ...measured.limit!, ...limit } };
  return { series, size, measurement };
}

describe('lines of limits', () => {
  const sizesOf = (...points: ReturnType<typeof point>[]): number[] =>
    limitPoints(points).points.map(({ size }) => size);

  it('begin at the smallest loop that was measured', () => {
    const small = point('a', 1, { mustMoveBytes: 16, loopBytes: 4096 });
    expect(sizesOf(small, point('a', 2, { mustMoveBytes: 4096, loopBytes: 4096 }))).toEqual([2]);
  });

  it('between cores too', () => {
    const small = point('a', 1, { mustMoveBytes: 16, kind: 'between cores' });
    expect(sizesOf(small, point('a', 2, { mustMoveBytes: 8192, kind: 'between cores' }))).toEqual([
      2,
    ]);
  });

  it('of memory leave out what a cache beat', () => {
    const memory: Limit = { ...measured.limit! };
    delete memory.loopBytes;
    const of = (size: number, ratio: number) => ({
      ...point('a', size, {}),
      measurement: { ...measured, limit: { ...memory, ratio } },
    });
    expect(limitPoints([of(1, 9.68), of(2, 0.9)]).points.map(({ size }) => size)).toEqual([2]);
  });

  it('are one line where they are alike', () => {
    const all = (ratio: number) =>
      limitPoints([point('a', 1, { ratio: 0.5 }), point('b', 1, { ratio })]);
    expect(all(0.5).shared).toBe(true);
    expect(all(0.5).points).toHaveLength(1);
    expect(all(0.6).shared).toBe(false);
    expect(all(0.6).points).toHaveLength(2);
  });
});

describe('axes', () => {
  it('of times end at round figures around what they show', () => {
    expect(timeScale([7.3e-6, 36.5e-6])).toEqual({ least: 5e-6, most: 50e-6 });
    expect(timeScale([1e-3])).toEqual({ least: 1e-3, most: 2e-3 });
  });

  it('of times have few lines: powers of ten over many of them', () => {
    const values = (least: number, most: number) => timeAxis({ least, most }).axis.values;
    expect(values(5e-6, 50e-6)).toEqual([5e-6, 1e-5, 2e-5, 5e-5]);
    expect(values(5e-8, 2e-2)).toEqual([1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2]);
  });

  it('of sizes name the last, and no more than there is room for', () => {
    const sizes = Array.from({ length: 20 }, (_, index) => 2 ** (index + 3));
    const wide = sizeAxis('size', sizes, 860).axis.values;
    const narrow = sizeAxis('size', sizes, 240).axis.values;
    for (const values of [wide, narrow]) expect(values.at(-1)).toBe(2 ** 22);
    expect(wide.length).toBeLessThanOrEqual(15);
    expect(wide.length).toBeGreaterThan(8);
    expect(narrow.length).toBeLessThanOrEqual(4);
    expect(narrow.length).toBeGreaterThanOrEqual(3);
  });
});

it('parameters have words', () => {
  expect(parameterTitle('batchSize')).toBe('batch size');
  expect(parameterTitle('bytes')).toBe('size');
  expect(parameterWords('workers', 1)).toBe('1 worker');
  expect(parameterWords('processes', 2)).toBe('2 processes');
  expect(parameterWords('bucketBytes', 3 * 2 ** 20)).toBe('bucket 3 MiB');
  expect(parameterWords('shared', false)).toBe('not shared');
  expect(parameterWords('ranksPerNode', 2)).toBe('ranks per node 2');
  expect(parameterWords('placement', 'in-place')).toBe('in-place');
  expect(parameterWords('optimizer', null)).toBe('no optimizer');
});

it('samples of buckets are those of the largest', () => {
  const charts = chartsOf([{ label: 'run', report: ddpRun() }]);
  const samples = charts.find(({ id }) => id === 'samples');
  expect(samples?.title).toBe('Samples at the largest bucket');
  expect(samples?.table.rows.map(([name]) => name)).toEqual([
    'overlap, forward',
    'overlap, backward',
    'async, forward',
    'async, backward',
    'sync, forward',
    'sync, backward',
  ]);
});

it('of a step what came out below nothing has no bar', () => {
  const run = ddpRun();
  const cases = run.cases.map((one) =>
    hasMeasurement(one) && one.values !== undefined
      ? { ...one, values: { ...one.values, exposedSeconds: -1e-3 } }
      : one,
  );
  const charts = chartsOf([{ label: 'run', report: { ...run, cases } }]);
  const rows = charts.flatMap(({ table }) =>
    table.rows.filter(([, part]) => part === 'not hidden'),
  );
  expect(rows.length).toBeGreaterThan(0);
  expect(new Set(rows.map(([, , text]) => text))).toEqual(new Set(['nothing']));
});

it('parameters may be called as what every object has', () => {
  expect(parameterTitle('constructor')).toBe('constructor');
  expect(parameterWords('toString', 2)).toBe('to string 2');
});
