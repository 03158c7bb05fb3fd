import { describe, expect, it } from 'vitest';

import { partOf } from '../../lib/check/part.js';
import { ratioOfMedians } from '../../lib/compare/bootstrap.js';
import { compareRuns } from '../../lib/compare/compare.js';
import { environmentChanges } from '../../lib/compare/environment.js';
import { countChanges, hasRegressed, type Comparison } from '../../lib/compare/result.js';
import { meanRatio } from '../../lib/compare/mean-ratio.js';
import { failedCase, waivedCase } from '../../lib/results/case.js';
import type { CaseResult, Report } from '../../lib/results/result.js';
import { madeCase, madeRun, uniform } from '../support/comparing.js';
import { report } from '../support/reports.js';

function compare(base: Report, next: Report, options = {}): Comparison {
  return compareRuns({ name: 'base', reports: [base] }, { name: 'new', reports: [next] }, options);
}

function changesOf(comparison: Comparison): string[] {
  return comparison.cases.map(({ change }) => change);
}

describe('the ratio of medians', () => {
  it('is that of the samples, inside its interval', () => {
    const ratio = ratioOfMedians([[1, 2, 3]], [[2, 4, 6]], 0.95);
    expect(ratio.median).toBe(2);
    expect(ratio.lower).toBeLessThan(2);
    expect(ratio.upper).toBeGreaterThan(2);
  });

  it('of very many samples comes to an end', { tags: 'full' }, () => {
    const random = uniform(5);
    const samples = Array.from({ length: 500_000 }, () => 1 + random());
    const { lower, median, upper } = ratioOfMedians([samples], [samples], 0.95);
    expect(median).toBe(1);
    expect(upper - lower).toBeLessThan(0.1);
  });

  it('encloses 1 about as often as it says when both sides are alike', () => {
    const random = uniform(3);
    const draw = (): number[] => Array.from({ length: 30 }, () => 1 + 0.2 * random());
    let enclosed = 0;
    for (let i = 0; i < 100; i += 1) {
      const { lower, upper } = ratioOfMedians([draw()], [draw()], 0.9);
      if (lower <= 1 && upper >= 1) enclosed += 1;
    }
    expect(enclosed).toBeGreaterThanOrEqual(80);
    expect(enclosed).toBeLessThan(100);
  });

  const width = (base: readonly number[][], next: readonly number[] = [1, 1.01]): number => {
    const { lower, upper } = ratioOfMedians(base, [next], 0.95);
    return upper - lower;
  };
  const unlike = [1, 1.3, 0.8].map((seconds) => [seconds, seconds + 0.01]);

  it('is wider when runs differ among themselves', () => {
    const steady = Array.from({ length: 3 }, () => [1, 1.01]);
    expect(width(unlike)).toBeGreaterThan(5 * width(steady));
  });

  it('is wider when neighbouring samples are alike', () => {
    const rising = Array.from({ length: 64 }, (_, i) => 100 + i);
    const mixed = rising.map((_, i) => rising[(27 * i) % 64]!);
    expect(width([rising], [1])).toBeGreaterThan(1.3 * width([mixed], [1]));
  });

  it('takes a single run as uncertain as the several of the other side are', () => {
    const { lower, upper } = ratioOfMedians([unlike[0]!], [[1.2, 1.21]], 0.95);
    const wide = ratioOfMedians(unlike, [[1.2, 1.21]], 0.95);
    expect(lower).toBeGreaterThan(1.1);
    expect(wide.lower).toBeLessThan(0.9);
    expect(wide.upper).toBeGreaterThan(upper);
  });

  it('refuses a side without samples', () => {
    expect(() => ratioOfMedians([], [[1]], 0.95)).toThrow(/samples above\b/);
    expect(() => ratioOfMedians([[1]], [[]], 0.95)).toThrow(TypeError);
    expect(() => ratioOfMedians([[1]], [[0]], 0.95)).toThrow(TypeError);
  });
});

describe('compareRuns', () => {
  it('has the geometric mean of its cases, and of their bounds', () => {
    const ratio = (median: number, lower: number, upper: number) => ({
      ratio: { median, lower, upper, confidence: 0.98 },
    });
    const { median, lower, upper, confidence } = meanRatio([
      ratio(2, 1, 4),
      { ratio: null },
      ratio(8, 4, 9),
    ])!;
    expect([median, lower, upper]).toEqual([4, 2, 6].map((one) => expect.closeTo(one, 12)));
    expect(confidence).toBeCloseTo(0.96, 12);
    expect(meanRatio([{ ratio: null }])).toBeNull();
  });

  it.each([
    [{}, [1.05, 1.051, 1 / 1.05, 1 / 1.051]],
    [{ tolerance: 0.25 }, [1.25, 1.251, 0.8, 0.799]],
  ])(
    'with %j a tolerance is reached at it, and holds for two cases together',
    (options, factors) => {
      const run = (seconds: number) =>
        report(
          'collectives',
          [2 ** 10, 2 ** 20].map((size) => madeCase(size, [seconds, seconds, seconds])),
        );
      const found = factors.map((factor) => compare(run(1), run(factor), options));
      expect(found.map((one) => changesOf(one)[0])).toEqual(['same', 'worse', 'same', 'better']);
      expect(found[0]?.cases[0]?.ratio?.confidence).toBeCloseTo(0.975, 12);
    },
  );

  it('says nothing of samples that scatter more than they differ', () => {
    const comparison = compare(
      madeRun({ seed: 1, scatter: 2, samples: 6 }),
      madeRun({ seed: 2, scatter: 2, samples: 6 }),
    );
    expect(changesOf(comparison)).toContain('unclear');
    expect(hasRegressed(comparison)).toBe(false);
  });

  it('does not blame the program when only the slower samples moved', () => {
    const quiet = Array.from({ length: 20 }, () => 1e-3);
    const disturbed = quiet.map((seconds, i) => (i < 4 ? seconds : seconds * 1.5));
    const comparison = compare(
      report('collectives', [madeCase(1024, quiet)]),
      report('collectives', [madeCase(1024, disturbed)]),
    );
    expect(changesOf(comparison)).toEqual(['unclear']);
    expect(comparison.cases[0]?.text).toContain('overlap');
    // Beyond most samples of one run, not beyond nine in ten.
    const scattered = quiet.map((seconds, i) => (i < 3 ? seconds * 1.5 : seconds));
    const one = report('collectives', [madeCase(1024, scattered)]);
    const next = report('collectives', [madeCase(1024, Array(20).fill(1.4e-3) as number[])]);
    expect(changesOf(compare(one, next))).toEqual(['unclear']);
    const twice = { name: 'base', reports: [one, one] };
    const [both] = compareRuns(twice, { name: 'new', reports: [next] }).cases;
    expect(both).toMatchObject({ change: 'worse', base: { runs: 2, samples: 40 } });
  });

  const [first, second] = madeRun({ seed: 1 }).cases as [CaseResult, CaseResult];
  const failed = failedCase(first, Object.assign(new Error('lost'), { code: 'ERR_PEER_LOST' }));
  it.each([
    ['failed', first, failed, true],
    ['mended', failed, first, false],
    ['missing', first, waivedCase(first, 'no GPU'), false],
    ['added', waivedCase(first, 'no GPU'), first, false],
    ['same', failed, failed, false],
  ])('tells a case that is %s', (change, old, now, regressed) => {
    const comparison = compare(
      report('collectives', [old, second]),
      report('collectives', [now, second]),
    );
    expect(changesOf(comparison)).toEqual([change, 'same']);
    expect(hasRegressed(comparison)).toBe(regressed);
  });

  it('pairs by parameters, in whatever order they stand', () => {
    const turned = {
      ...first,
      parameters: Object.fromEntries(Object.entries(first.parameters).reverse()),
    };
    const other = { ...second, parameters: { ...second.parameters, ranks: 3 } };
    const comparison = compare(
      report('collectives', [first, second]),
      report('collectives', [turned, other]),
    );
    expect(changesOf(comparison)).toEqual(['same', 'added', 'missing']);
  });

  it('fails when no case is on both sides', () => {
    const comparison = compare(report('p2p', []), madeRun({ seed: 1 }));
    expect(changesOf(comparison)).toEqual(['added', 'added', 'added']);
    expect(hasRegressed(comparison)).toBe(true);
  });

  it('does not judge across machines unless told to', () => {
    const base = madeRun({ seed: 1 });
    const slow = madeRun({ seed: 2, factor: 2 });
    const next = { ...slow, environment: { ...slow.environment, cpuModel: 'Another CPU' } };
    const comparison = compare(base, next);
    expect(countChanges(comparison)).toMatchObject({ changed: 3, worse: 0 });
    expect(hasRegressed(comparison)).toBe(false);
    expect(comparison.environment).toEqual([
      { name: 'cpuModel', base: 'Example CPU', next: 'Another CPU', decisive: true },
    ]);
    expect(hasRegressed(compare(base, next, { ignoreEnvironment: true }))).toBe(true);
  });

  it('leaves out what a check only looks at', () => {
    const verdict = { level: 'good', text: '', likelyCause: null } as const;
    const looked = (seconds: number) =>
      ['doctor', 'cores'].map((name) =>
        partOf({ name, parameters: {} }, { samplesSeconds: [seconds], verdict }),
      );
    const comparison = compare(report('check', looked(1)), report('check', looked(9)));
    expect(comparison.cases.map(({ name }) => name)).toEqual(['cores']);
  });

  it('refuses what it cannot use', () => {
    const runs = { name: 'base', reports: [madeRun({ seed: 1 })] };
    expect(() => compareRuns({ name: 'none', reports: [] }, runs)).toThrow(/one report\b/);
    expect(() => compareRuns(runs, runs, { tolerance: -1 })).toThrow(RangeError);
    expect(() => compareRuns(runs, runs, { confidence: 1 })).toThrow(RangeError);
  });
});

describe('environmentChanges', () => {
  it('tells settings that matter from facts that do not decide, and leaves out a job’s own names', () => {
    const base = madeRun({ seed: 1 });
    const next = {
      ...base,
      environment: {
        ...base.environment,
        kernel: '6.2.0',
        freeMemoryBytes: 1,
        variables: { GRADLINK_NUM_THREADS: '1', GRADLINK_MEMBER: 'abc', NCCL_ALGO: 'Ring' },
      },
    };
    expect(environmentChanges([base], [next])).toEqual([
      { name: 'variables.GRADLINK_NUM_THREADS', base: '2', next: '1', decisive: true },
      { name: 'variables.NCCL_ALGO', base: 'not set', next: 'Ring', decisive: true },
      { name: 'kernel', base: '6.1.0', next: '6.2.0', decisive: false },
    ]);
    const cores = { cpuModel: 'x', availableCores: 9, onlineCores: 9, simdLevel: 'x', threads: 9 };
    const decisive = { ...cores, lastLevelCacheBytes: 9, architecture: 'x' };
    const other = { ...base, environment: { ...base.environment, ...decisive } };
    const names = environmentChanges([base], [other]).map((one) => one.decisive && one.name);
    expect(names).toEqual(Object.keys(decisive));
  });
});
