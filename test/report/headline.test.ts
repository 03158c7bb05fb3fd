// The answer is the median of its group, whatever the runs.
import { median } from 'simple-statistics';
import { describe, expect, it, vi } from 'vitest';

import { compareRuns } from '../../lib/compare/compare.js';
import { headline } from '../../lib/report/page/headline.js';
import { remarks } from '../../lib/report/page/words.js';
import { chartsOf } from '../../lib/report/charts/index.js';
import { completeCase, exactCheck } from '../../lib/results/case.js';
import { mergedRepeats, middleOf } from '../../lib/report/repeats.js';
import { smallBounds } from '../../lib/report/verdict-words.js';
import { bandwidthText, percentText, sizeText, timeText } from '../../lib/results/units.js';
import type { CaseResult, MeasuredCase, Report } from '../../lib/results/result.js';
import { ddpRun, matrixRun } from '../support/page-runs.js';
import { report } from '../support/reports.js';

vi.mock('../../lib/compare/compare.js', { spy: true });

/** The same numbers from 0 to 1 for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Shape {
  readonly cycles: number;
  readonly placements: readonly string[];
  readonly types: readonly string[];
  readonly ops: readonly string[];
  readonly sizes: readonly number[];
}

function some<T>(random: () => number, all: readonly T[]): T[] {
  return all.slice(0, 1 + Math.floor(random() * all.length));
}

function shapeOf(random: () => number): Shape {
  return {
    cycles: 1 + Math.floor(random() * 8),
    placements: some(random, ['out-of-place', 'in-place']),
    types: some(random, ['float32', 'bfloat16', 'int8']),
    ops: some(random, ['sum', 'max']),
    sizes: some(random, [2 ** 24, 2 ** 20, 2 ** 12]),
  };
}

function timed(parameters: CaseResult['parameters'], bytes: number, seconds: number): MeasuredCase {
  return completeCase({
    name: 'all_reduce',
    parameters,
    samplesSeconds: [seconds, seconds, seconds],
    volume: {
      bytes,
      algorithmFormula: 'bytes / t',
      busFactor: 1,
      busFormula: 'bytes / t',
      mustMoveBytes: 2 * bytes,
      mustMoveFormula: '2 * bytes',
    },
    copyBytesPerSecond: 60e9,
    check: exactCheck(0),
  }) as MeasuredCase;
}

function generated(random: () => number, shape: Shape): Report {
  const cases = Array.from({ length: shape.cycles }).flatMap(() =>
    shape.types.flatMap((dtype) =>
      shape.ops.flatMap((op) =>
        shape.sizes.flatMap((bytes) =>
          shape.placements.map((placement) =>
            timed(
              { bytes, count: bytes / 4, dtype, op, placement },
              bytes,
              (bytes / 40e9) * (1 + 3 * random()),
            ),
          ),
        ),
      ),
    ),
  );
  return report('collectives', cases);
}

function measured({ cases }: Report): MeasuredCase[] {
  return cases.filter((one) => one.status === 'ok');
}

/** Of each placement, type and op the median over the cycles at the largest size, in order. */
function mediansOf(run: Report, shape: Shape): string[] {
  const largest = Math.max(...shape.sizes);
  const groups = new Map<string, number[]>();
  for (const { parameters, bytes, busBandwidth } of measured(run)) {
    if (bytes !== largest) continue;
    const key = [parameters.dtype, parameters.op, parameters.placement].join();
    groups.set(key, [...(groups.get(key) ?? []), busBandwidth.bytesPerSecond]);
  }
  return [...groups.values()].map((values) => bandwidthText(median(values)));
}

/** The texts of a column. */
function column(runs: readonly Report[], title: string): string[] {
  const table = headline(
    runs.map((one, index) => ({ label: `run ${String(index)}`, report: one })),
  );
  const at = table.columns.findIndex((one) => one.title === title);
  return table.rows.map((row) => row[at]?.text ?? '');
}

const seeds = Array.from({ length: 30 }, (_, index) => index + 1);

describe('the answer', () => {
  it('is nothing but the median of its group, a line for each placement, type and op', () => {
    for (const seed of seeds) {
      const random = generator(seed);
      const shape = shapeOf(random);
      const run = generated(random, shape);
      const told = { seed, lines: column([run], 'median').toSorted() };
      expect(told).toEqual({ seed, lines: mediansOf(run, shape).toSorted() });
      expect(new Set(column([run], 'what')).size).toBe(told.lines.length);
      const count = `${String(shape.cycles)} runs`;
      for (const range of column([run], 'range')) {
        expect(shape.cycles === 1 ? range === '' : range.endsWith(count)).toBe(true);
      }
    }
  });

  it('and its verdict are those of one run, so that the share and the level agree', () => {
    for (const seed of seeds) {
      const random = generator(seed);
      const run = generated(random, shapeOf(random));
      const pairs = new Set(
        measured(run).map(({ limit, verdict }) => `${percentText(limit!.ratio)} ${verdict.level}`),
      );
      const shares = column([run], 'of its limit');
      const levels = column([run], 'verdict').map((text) =>
        text.startsWith('too small') ? 'none' : text.split(':')[0]!,
      );
      shares.forEach((share, at) => {
        expect(pairs).toContain(`${share} ${levels[at]!}`);
      });
    }
  });

  const ofSizes = (sizes: readonly number[], factors: readonly number[]): Report =>
    report(
      'collectives',
      sizes.flatMap((bytes) =>
        factors.map((factor) => timed({ bytes, placement: 'in-place' }, bytes, factor * 1e-3)),
      ),
    );

  it('of two runs is the ratio of their figures', () => {
    const cycles = (factor: number): Report =>
      ofSizes(
        [2 ** 24],
        [1, 2, 4].map((slower) => slower * factor),
      );
    const [ratio] = column([cycles(1), cycles(2)], 'new / base');
    expect(Number.parseFloat(ratio!)).toBe(0.5);
  });

  it('of two runs is coloured as the change is', () => {
    const [quick, slow] = [1, 2].map((factor) =>
      ofSizes(
        [2 ** 24, 2 ** 20, 2 ** 16],
        [1, 1.001, 1.002, 1.003, 1.004].map((one) => one * factor),
      ),
    );
    const levelOf = (base: Report, next: Report) => {
      const runs = [base, next].map((one, index) => ({ label: String(index), report: one }));
      const { columns, rows } = headline(runs);
      const cell = rows[0]?.[columns.findIndex(({ title }) => title === 'new / base')];
      return [cell?.text.split(' ')[1], cell?.level];
    };
    expect(levelOf(quick!, slow!)).toEqual(['worse', 'poor']);
    expect(levelOf(slow!, quick!)).toEqual(['better', 'good']);
    // Of three sizes one is asked for.
    const confidence = expect.closeTo(1 - 0.05 / 3, 12) as number;
    expect(vi.mocked(compareRuns).mock.lastCall?.[2]).toEqual({ confidence });
  });

  it('of two runs is at the largest size that both have', () => {
    const [large, small] = [ofSizes([2 ** 24, 2 ** 20], [1]), ofSizes([2 ** 20, 2 ** 16], [1])];
    const rate = bandwidthText(2 ** 20 / 1e-3);
    for (const runs of [
      [large, small],
      [small, large],
    ]) {
      for (const title of ['base: run 0', 'new: run 1']) {
        expect(column(runs, title)[0]).toContain(rate);
      }
    }
  });

  it('between places names the way that is nearest to none of its limit', () => {
    // All ways from gpu:0 are slow.
    expect(column([matrixRun()], 'of its limit')).toEqual([
      expect.stringMatching(/ from gpu:0 to gpu:\d$/),
    ]);
    expect(column([matrixRun()], 'verdict')[0]).toMatch(/^poor: .* \(gpu:0 to gpu:\d\)/);
  });

  it('between ranks takes pairs within a host and between hosts apart', () => {
    const places = ['a', 'a', 'b', 'b'];
    const pairs = places.flatMap((one, from) =>
      places.flatMap((other, to) => {
        if (from >= to) return [];
        const hosts = `${one} - ${other}`;
        const parameters = { quantity: 'latency', from: `rank ${from}`, to: `rank ${to}`, hosts };
        return [timed(parameters, 8, one === other ? 1e-6 : 20e-6)];
      }),
    );
    const run = report('pairs', pairs);
    expect(column([run], 'median')).toEqual([timeText(1e-6), timeText(20e-6)]);
    expect(column([run], 'range')).toEqual([
      expect.stringMatching(/, 2 ways$/),
      expect.stringMatching(/, 4 ways$/),
    ]);
  });

  it('of messages is latency and rate at the smallest size, bandwidth at the largest', () => {
    const ways = [8, 2 ** 20].flatMap((bytes) =>
      [
        ['latency', 'latency', 1],
        ['bandwidth', 'bandwidth', 2],
        ['message_rate', 'bandwidth', 3],
      ].map(([name, quantity, seconds]): MeasuredCase => {
        const way = name === 'message_rate' ? {} : { from: 'rank 0', to: 'rank 1' };
        const one = timed(
          { quantity: quantity!, bytes, ...way },
          bytes,
          Number(seconds) * 1e-9 * bytes,
        );
        return {
          ...one,
          name: String(name),
          limit: null,
          values: { messagesPerSecond: 5e6 / bytes },
        };
      }),
    );
    const run = report('pairs', ways);
    expect(column([run], 'median')).toEqual([
      timeText(8e-9),
      bandwidthText(1e9 / 2),
      `${String(5e6 / 8)} messages/s`,
    ]);
    // Cases of two sizes are never taken together.
    expect(column([run], 'what').map((text) => text.split(', ').at(-1))).toEqual([
      sizeText(8),
      sizeText(2 ** 20),
      sizeText(8),
    ]);
  });

  it('of buckets is the backward pass with its best bucket and what is hidden', () => {
    const run = ddpRun();
    const cases = run.cases.map((one): CaseResult => {
      if (one.parameters.phase !== 'backward' || one.status !== 'ok') return one;
      const hiddenPercent = one.parameters.mode === 'sync' ? -5 : 87;
      return { ...one, values: { ...one.values, hiddenPercent } };
    });
    const told = { ...run, cases };
    expect(column([told], 'what')).toEqual(
      ['overlap', 'async', 'sync'].map(
        (mode) => `ddp, ${mode}, backward, resnet50, best bucket 25 MiB`,
      ),
    );
    expect(column([told], 'median')).toEqual([0.075, 0.075, 0.075].map(timeText));
    expect(column([told], 'communication hidden')).toEqual(['87 %', '87 %', 'nothing']);
  });

  it('of two in the middle is the one that promises less', () => {
    const [quick, slow] = [1, 2].map((factor) => timed({}, 2 ** 24, factor * 1e-3));
    for (const both of [
      [quick!, slow!],
      [slow!, quick!],
    ]) {
      expect(middleOf(both)).toBe(slow);
    }
    const with3 = (one: MeasuredCase, from: number): MeasuredCase => {
      const seconds = { minSeconds: from, medianSeconds: from + 1, p95Seconds: from + 2 };
      return { ...one, statistics: { ...one.statistics, ...seconds } };
    };
    const seconds = { minSeconds: 2, medianSeconds: 3, p95Seconds: 4 };
    expect(mergedRepeats([with3(quick!, 1), with3(slow!, 3)]).statistics).toMatchObject(seconds);
  });

  it('says of what is too small the longest time that is', () => {
    const cases = [2 ** 12, 2 ** 14].map((bytes) => timed({}, bytes, 1e-3));
    const [, longest] = cases.map(({ limit }) => timeText(limit!.boundSeconds));
    expect(smallBounds(cases)).toContain(longest);
  });
});

describe('the rest of the page', () => {
  const shape: Shape = {
    cycles: 8,
    placements: ['out-of-place', 'in-place'],
    types: ['float32'],
    ops: ['sum'],
    sizes: [2 ** 24, 2 ** 20, 2 ** 12],
  };
  const run = generated(generator(7), shape);
  const other = generated(generator(8), shape);
  const charts = (...reports: readonly Report[]) =>
    chartsOf(reports.map((one, index) => ({ label: `run ${String(index)}`, report: one })));

  it('says each case once in words', () => {
    const titles = remarks(run).map(({ text }) => text.split(': ')[0]);
    expect(titles).toHaveLength(6);
    expect(new Set(titles).size).toBe(6);
  });

  it('draws a line with one point for each size', () => {
    const line = charts(run).find(({ id }) => id === 'bandwidth-all-reduce')!;
    const points = line.table.rows.map(([series, size]) => `${series!} ${size!}`);
    expect(points).toHaveLength(6);
    expect(new Set(points).size).toBe(6);
  });

  it('draws samples of both runs, names their cycles and counts what is not drawn', () => {
    const chart = charts(run, other).find(({ id }) => id === 'samples')!;
    expect(chart.note).toContain('16 of 32 ');
    expect(chart.table.rows).toHaveLength(32);
    const spec = JSON.stringify(chart.spec(860));
    for (const label of ['run 0', 'run 1']) {
      for (const placement of shape.placements) {
        expect(spec).toContain(`${label}, ${placement}, cycle 1`);
      }
    }
  });
});
