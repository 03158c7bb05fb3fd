import { describe, expect, it } from 'vitest';

import { run } from '../../lib/check/index.js';
import { excused, hasPoor, partOf } from '../../lib/check/part.js';
import { boundOf, rankCountFor } from '../../lib/check/ranks.js';
import { sumParts } from '../../lib/check/sums.js';
import { checkAnswer, checkTool } from '../../lib/report/check-lines.js';
import { collectiveVolume } from '../../lib/results/bandwidth.js';
import { completeCase, exactCheck, waivedCase } from '../../lib/results/case.js';
import { hasMeasurement, type CaseResult, type VerdictLevel } from '../../lib/results/result.js';
import { report } from '../support/reports.js';

function part(level: VerdictLevel, text: string, parameters = {}, name = 'cores'): CaseResult {
  const verdict = { level, text, likelyCause: null };
  return partOf({ name, parameters }, { samplesSeconds: [1], verdict });
}

/** An all-reduce whose fastest call takes so many times its limit, and whose usual one ten times as long. */
function sum(times: number, bytes = 16 * 2 ** 20, wrong = 0): CaseResult {
  const volume = collectiveVolume('all_reduce', {
    countPerRank: bytes / 4,
    elementBytes: 4,
    ranks: 2,
    placement: 'in-place',
  });
  const bound = volume.mustMoveBytes / 1e10;
  return completeCase({
    name: 'all_reduce',
    parameters: { between: 'threads', ranks: 2, bytes },
    samplesSeconds: [10 * times * bound, times * bound, 10 * times * bound],
    volume,
    copyBytesPerSecond: 1e10,
    check: exactCheck(wrong),
  });
}

const judged = (one: CaseResult): CaseResult | undefined =>
  sumParts({ cases: [one] }, 'threads', 2, boundOf)[0];

const levelOf = (result: CaseResult | undefined) =>
  result !== undefined && hasMeasurement(result) ? result.verdict.level : undefined;

describe('a part', () => {
  it('is an error where it is poor, with its figures', () => {
    const poor = part('poor', 'cpu:1 is slow');
    expect(poor).toMatchObject({ status: 'error', reason: 'cpu:1 is slow' });
    expect(hasMeasurement(poor)).toBe(true);
    expect(part('fair', 'so so').status).toBe('ok');
  });

  it('that is poor is not judged beside what it needs, and one that is wrong is', () => {
    const poor = part('poor', 'slow');
    expect(hasPoor([part('good', ''), poor])).toBe(true);
    const told = excused(poor, 'a core is busy');
    expect(told).toMatchObject({ status: 'ok', verdict: { level: 'none', likelyCause: null } });
    expect(told).not.toHaveProperty('reason');
    const wrong = sum(1, 2 ** 24, 3);
    expect(hasPoor([wrong])).toBe(false);
    expect(excused(wrong, 'a core is busy')).toBe(wrong);
  });
});

describe('a check', () => {
  it('goes on where a part throws, which is named', async () => {
    let asked: readonly string[] = [];
    const asJob = (_: number, args: readonly string[]) => {
      asked = args;
      return Promise.reject(new Error('no process can be started'));
    };
    const { cases } = await run({ parts: ['memory', 'ranks'] }, { env: process.env, asJob });
    expect(cases.map(({ parameters: { between = '' } }) => between)).toEqual([
      '',
      ...Array.from({ length: 4 }, () => 'threads'),
      'processes',
    ]);
    expect(cases.at(-1)).toMatchObject({ status: 'error', reason: 'no process can be started' });
    // In seconds.
    expect(asked.slice(-2)).toEqual(['-T', '30']);
  });

  it('goes on for its hours and minutes together', async () => {
    const [begin, stop] = [performance.now(), AbortSignal.abort()];
    let left = 0;
    const onRound = (_: number, seconds: number): void => void (left = seconds);
    const asJob = () => Promise.reject(new Error('nothing is started'));
    const whole = { parts: ['cores'], hours: 1, minutes: 30 } as const;
    await run(whole, { env: process.env, asJob, stop, onRound });
    expect(5400 - left).toBeGreaterThanOrEqual(0);
    expect(5400 - left).toBeLessThanOrEqual((performance.now() - begin) / 1000);
  });
});

describe('a sum', () => {
  it.each([
    [2, 'good'],
    [2.1, 'fair'],
    [1 / 0.15, 'fair'],
    [6.7, 'poor'],
  ] as const)('whose fastest call takes %s times its limit is %s', (times, level) => {
    expect(levelOf(judged(sum(times)))).toBe(level);
  });

  it('that is small is judged by its result alone', () => {
    expect(levelOf(judged(sum(100, 2 ** 20 - 4)))).toBe('none');
    const wrong = sum(1, 2 ** 10, 1);
    expect(judged(wrong)).toMatchObject({ status: 'error', code: 'ERR_WRONG_RESULT' });
  });

  it('has a rank for each core, two at least and sixteen at most', () => {
    expect([1, 2, 5, 16, 128].map(rankCountFor)).toEqual([2, 2, 5, 16, 16]);
  });
});

describe('the answer', () => {
  const good = part('good', 'all well');
  const waived = waivedCase({ name: 'all_reduce', parameters: {} }, 'no NCCL');

  it('counts what ran, and says how much of it is fair', () => {
    expect(checkAnswer([good, good, waived])).toBe('good: 2 of 2');
    expect(checkAnswer([good, part('fair', 'so so')])).toBe('good: 2 of 2, 1 of them fair');
  });

  it('has on a page what is bad first', () => {
    const cases = [good, part('fair', 'so so'), part('poor', 'cpu:1 is slow'), waived];
    const { level, parts } = checkTool.answer!(report('check', cases));
    expect(level).toBe('poor');
    expect(parts.map(({ word }) => word)).toEqual(['bad', 'fair', 'good', 'waived']);
  });

  it('has of ways that are good the slowest', () => {
    const way = (to: string, seconds: number) =>
      partOf(
        { name: 'bandwidth', parameters: { from: 'a', to } },
        {
          samplesSeconds: [seconds],
          bytes: 1e9,
          verdict: { level: 'good', text: '', likelyCause: null },
        },
      );
    const { parts } = checkTool.answer!(report('check', [way('b', 1), way('c', 2), way('d', 1)]));
    expect(parts).toMatchObject([{ figure: '0.50 GB/s', text: expect.stringContaining('a to c') }]);
  });

  it('is not good where nothing was looked at', () => {
    expect(checkAnswer([waived])).toMatch(/^bad: .*: no NCCL$/);
    expect(checkAnswer([])).toMatch(/^bad: .*: nothing /);
  });

  it('names what is bad: a way once, its share without what follows, three at most', () => {
    const way = (from: number, to: number, name = 'device_to_device_memcpy_read_ce') =>
      part(
        'poor',
        '41 % of NVLink; 0.5 of the others',
        { from: `gpu:${from}`, to: `gpu:${to}` },
        name,
      );
    const both = way(3, 5, 'device_to_device_bidirectional_memcpy_read_ce');
    expect(checkAnswer([good, way(3, 5), both])).toBe(
      'bad: gpu:3 to gpu:5 at 41 % of NVLink; 1 of 3 good',
    );
    expect(checkAnswer([way(0, 1), way(1, 2), way(2, 3), way(3, 4), part('poor', 'slow')])).toBe(
      'bad: gpu:0 to gpu:1 at 41 % of NVLink; gpu:1 to gpu:2 at 41 % of NVLink; gpu:2 to gpu:3 at 41 % of NVLink; and 2 more; 0 of 5 good',
    );
    // What is wrong before what is slow.
    const wrong = judged(sum(1, 2 ** 24, 3))!;
    expect(checkAnswer([good, part('poor', 'cpu:1 is slow'), wrong])).toMatch(
      /^bad: all-reduce .* wrong .*; cores: cpu:1 is slow; 1 of 3 good$/,
    );
  });
});
