// What a comparison of data parallelism makes of its samples: figures, differences, what was hidden, verdicts.
import { describe, expect, it } from 'vitest';

import { ddpCases, hiddenText, type DdpContext } from '../../../lib/measure/ddp/cases.js';
import type { DdpRow } from '../../../lib/measure/ddp/compare.js';
import { hasMeasurement } from '../../../lib/results/result.js';
import { ddpTool } from '../../../lib/report/index.js';

const context: DdpContext = {
  model: 'resnet50',
  synthetic: true,
  ranks: 2,
  gradientBytes: 100e6,
  gradients: 161,
  warmupSteps: 1,
  originalUnits: false,
};

function row(mode: DdpRow['mode'], backward: readonly (readonly number[])[]): DdpRow {
  return {
    mode,
    bucketMebibytes: 10,
    buckets: 9,
    bucketBytes: 12e6,
    forwardSeconds: backward.map((samples) => samples.map(() => 0.02)),
    backwardSeconds: backward,
    computeSeconds: 0.1,
    communicationSeconds: 0.05,
    computeSpreadSeconds: 0,
    wrong: 0,
  };
}

const overlap = row('overlap', [
  [0.1, 0.102],
  [0.104, 0.114],
]);
const sync = row('sync', [
  [0.15, 0.153],
  [0.156, 0.171],
]);

function backwardOf(rows: readonly DdpRow[], mode: string) {
  return ddpCases(rows, context)
    .filter(hasMeasurement)
    .find(({ parameters: { phase, mode: own } }) => phase === 'backward' && own === mode)!;
}

describe('cases of gradlink ddp', () => {
  it('take all ranks samples together, and tell the ranks apart', () => {
    const { samplesSeconds, values, statistics } = backwardOf([overlap, sync], 'overlap');
    expect(samplesSeconds).toEqual([0.1, 0.102, 0.104, 0.114]);
    expect(statistics.samples).toBe(4);
    expect(values?.['meanSeconds']).toBeCloseTo(0.105, 12);
    expect(values?.['p50Seconds']).toBe(0.102);
    expect(values?.['p90Seconds']).toBe(0.114);
    expect(values?.['rank0MeanSeconds']).toBeCloseTo(0.101, 12);
    expect(values?.['rank1MeanSeconds']).toBeCloseTo(0.109, 12);
  });

  it('are held against overlap, where there is one', () => {
    const { values } = backwardOf([overlap, sync], 'sync');
    expect(values?.['meanDeltaPercent']).toBeCloseTo(50, 9);
    expect(values?.['p99DeltaPercent']).toBeCloseTo(50, 9);
    expect(backwardOf([overlap, sync], 'overlap').values?.['meanDeltaPercent']).toBe(0);
    expect(backwardOf([sync], 'sync').values?.['meanDeltaPercent']).toBeNull();
  });

  it('say how much of the communication was hidden', () => {
    // 3 of 50 ms are left; all of it and more where nothing is hidden.
    const percentOf = (one: DdpRow) => backwardOf([one], one.mode).values?.['hiddenPercent'];
    expect(percentOf(overlap)).toBeCloseTo(94, 9);
    expect(percentOf(sync)).toBeCloseTo(-9, 9);
    expect([0.94, -0.09, 1.2].map(hiddenText)).toEqual(['94 %', 'nothing', '100 %']);
    expect(backwardOf([overlap, sync], 'overlap').verdict.level).toBe('good');
    expect(backwardOf([overlap, sync], 'sync').verdict.level).toBe('none');
    const less = { ...overlap, communicationSeconds: 0.015 };
    expect(backwardOf([less], 'overlap').verdict).toMatchObject({ level: 'fair' });
    const tooMuch = { ...overlap, communicationSeconds: 0.2 };
    expect(backwardOf([tooMuch], 'overlap').verdict.likelyCause).toMatch(/longer than/);
    const few = { ...row('overlap', [[0.104, 0.104]]), communicationSeconds: 0.006, buckets: 2 };
    expect(backwardOf([few], 'overlap').verdict).toMatchObject({ level: 'poor' });
    expect(backwardOf([few], 'overlap').verdict.likelyCause).toMatch(/few buckets/);
  });

  it('do not say it where the passes scatter by more than that', () => {
    // The median lies within 7 ms.
    for (const scattered of [
      { ...overlap, communicationSeconds: 0.006 },
      { ...overlap, computeSpreadSeconds: 0.044 },
    ]) {
      const { values, verdict } = backwardOf([scattered], 'overlap');
      expect(values?.['hiddenPercent']).toBeNull();
      expect(verdict).toMatchObject({ level: 'none', reason: 'scatter' });
    }
  });

  it('fail where sums are wrong', () => {
    const cases = ddpCases([{ ...overlap, wrong: 3 }], context);
    const failed = cases.filter(({ status }) => status === 'error');
    expect(failed).toHaveLength(1);
    expect(failed[0]).toMatchObject({
      parameters: { phase: 'backward' },
      check: { kind: 'exact', wrong: 3, passed: false },
      reason: '3 elements of reduced gradients are wrong',
    });
    const unknown = backwardOf([{ ...overlap, wrong: null }], 'overlap');
    expect(unknown.check).toMatchObject({ kind: 'none', wrong: null, passed: true });
  });

  it('are told in a table for each phase, with the means of the ranks', () => {
    const lines = ddpTool.rows(ddpCases([overlap, sync], context));
    expect(lines).toContain('Bucket size 10 MiB');
    const of = (mode: string) => lines.filter((line) => line.startsWith(mode));
    expect(of('sync')[0]).toMatch(/^sync +20\.00 +\+0\.0 % /);
    expect(of('overlap')[1]).toMatch(/^overlap +105\.00 +\+0\.0 % +102\.00 +\+0\.0 % +114\.00 /);
    expect(of('sync')[1]).toMatch(/^sync +157\.50 +\+50\.0 % +153\.00 +\+50\.0 % +171\.00 /);
    const words = lines.find((line) => line.startsWith('# overlap'));
    expect(words).toMatch(/\b9 buckets, .*\b11\.44 MiB; 4 samples; .*\b101\.00, 109\.00 ms/);
    expect(words).toMatch(/\bbackward .*\b100\.0 ms .*\b50\.00 ms, .*\b94 % .*hidden/);
    expect(lines.find((line) => line.startsWith('# sync'))).toMatch(/nothing .*hidden/);
  });
});
