import { describe, expect, it } from 'vitest';

import type { Limit } from '../../lib/results/result.js';
import { describe as summarize } from '../../lib/results/statistics.js';
import { judge, type VerdictContext } from '../../lib/results/verdict.js';

/** A run at `ratio` of its limit whose times are steady. */
function run(ratio: number, context: Partial<VerdictContext> = {}): VerdictContext {
  const boundSeconds = 0.01;
  const seconds = boundSeconds / ratio;
  const limit: Limit = {
    mustMoveBytes: 1e8,
    formula: 'n S + n S',
    copyBytesPerSecond: 1e10,
    boundSeconds,
    ratio,
  };
  const statistics = summarize([
    seconds,
    seconds * 1.01,
    seconds * 0.99,
    seconds,
    seconds,
    seconds,
  ]);
  return { statistics, limit, bytes: 1e7, threads: 2, availableCores: 2, ...context };
}

const scattered = summarize([0.01, 0.01, 0.01, 0.01, 0.02, 0.03]);

describe('level', () => {
  it.each([
    [0.9, 'good'],
    [0.75, 'good'],
    [0.74, 'fair'],
    [0.5, 'fair'],
    [0.49, 'poor'],
    [0.02, 'poor'],
  ])('%d of the limit is %s', (ratio, level) => {
    const verdict = judge(run(ratio));
    expect(verdict.level).toBe(level);
    expect(verdict.likelyCause === null).toBe(level === 'good');
  });

  it('says the share of the limit', () => {
    expect(judge(run(0.82)).text).toContain('82 %');
    expect(judge(run(0.034)).text).toContain('3.4 %');
  });

  it('is good at the loop of its size, and says why it is far above', () => {
    const at = (ratio: number) => {
      const context = run(ratio);
      return judge({ ...context, limit: { ...context.limit!, loopBytes: 1e8 } });
    };
    expect(at(1.04)).toMatchObject({ level: 'good', likelyCause: null });
    expect(at(1.2)).toMatchObject({ level: 'good' });
    expect(at(1.2).likelyCause).toContain('disturbed');
  });

  it('judges nothing without a limit, and nothing that a fixed cost decides', () => {
    expect(judge(run(0.9, { limit: null }))).toMatchObject({ level: 'none', reason: 'no limit' });
    const limit: Limit = {
      mustMoveBytes: 64,
      formula: 'n S + n S',
      copyBytesPerSecond: 1e10,
      boundSeconds: 6.4e-9,
      ratio: 0.005,
    };
    expect(judge(run(0.005, { limit }))).toMatchObject({
      level: 'none',
      reason: 'fixed cost',
      likelyCause: null,
    });
  });

  it('takes more than the limit for a cache', () => {
    const verdict = judge(run(3, { lastLevelCacheBytes: 6e7 }));
    expect(verdict.level).toBe('good');
    expect(verdict.likelyCause).toContain('cache level');
    expect(judge(run(3, { lastLevelCacheBytes: 1e6 })).likelyCause).toContain('part of');
    const small: Limit = {
      mustMoveBytes: 131072,
      formula: 'n S + n S',
      copyBytesPerSecond: 1e10,
      boundSeconds: 1.3e-5,
      ratio: 9.4,
    };
    expect(judge(run(9.4, { limit: small })).level).toBe('good');
  });
});

const updating = { copy: 0.1, wire: 0.2, merge: 0, update: 0.6 };

describe('likely cause', () => {
  it.each<[string, Partial<VerdictContext>]>([
    ['compression', { compressed: true, processes: 4, statistics: scattered }],
    ['4 processes share 2 cores', { processes: 4, threads: 1 }],
    ['GRADLINK_NUM_THREADS', { threads: 1, statistics: scattered }],
    ['scatter', { statistics: scattered, bytes: 100 }],
    ['5000 bytes', { arrays: 200, bytes: 1e6 }],
    ['small (1000 bytes)', { bytes: 1000 }],
    ['optimizer adam', { optimizer: 'adam' }],
    ['simpler optimizer', { optimizer: 'adam', shares: updating }],
    ['storing the sums', { optimizer: null, shares: updating }],
    ['allocShared', { processes: 2 }],
    ['NUMA', { processes: 2, sharedMemory: true }],
    ['NUMA', {}],
  ])('%s: %o', (words, context) => {
    expect(judge(run(0.3, context)).likelyCause).toContain(words);
  });

  it('takes a run that was sometimes much faster for disturbed', () => {
    const seconds = [0.067, 0.05, 0.073, 0.08, 0.034];
    expect(judge(run(0.6, { statistics: summarize(seconds) })).likelyCause).toContain('scatter');
  });

  it('mentions scattered times of a good run too', () => {
    expect(judge(run(0.9, { statistics: scattered })).likelyCause).toContain('scatter');
  });
});

describe('on both sides of a threshold', () => {
  const cause = (context: Partial<VerdictContext>, ratio = 0.3) =>
    judge(run(ratio, context)).likelyCause;

  it('64 KiB an array are not small', () => {
    expect(cause({ bytes: 65_535 })).toMatch(/65535 bytes/);
    expect(cause({ bytes: 65_536 })).not.toMatch(/65536 bytes/);
  });

  it('times that spread by 35 % are steady', () => {
    const spread = (by: number) => ({
      ...scattered,
      samples: 9,
      minSeconds: 0,
      medianSeconds: 1,
      p95Seconds: by,
    });
    expect(cause({ statistics: spread(0.35) }, 0.9)).toBeNull();
    expect(cause({ statistics: spread(0.36) }, 0.9)).toContain('36 %');
  });

  it('a call of 20 us is judged, and 102 % of an estimate is not above it', () => {
    const limit = (more: Partial<Limit>): Partial<VerdictContext> => ({
      limit: { ...run(0.3).limit!, ...more },
    });
    const level = (more: Partial<Limit>) => judge(run(0.3, limit(more))).level;
    expect([20e-6, 19.9e-6].map((boundSeconds) => level({ boundSeconds }))).toEqual([
      'poor',
      'none',
    ]);
    const short = { boundSeconds: 1e-6 };
    expect([0.75, 0.749].map((ratio) => level({ ...short, ratio }))).toEqual(['good', 'none']);
    const basis = 'links';
    expect(level({ basis, boundSeconds: 20e-6 })).toBe('poor');
    expect(cause(limit({ basis, ratio: 1.02 }))).toBeNull();
    expect(cause(limit({ basis, ratio: 1.021 }))).not.toBeNull();
  });
});
