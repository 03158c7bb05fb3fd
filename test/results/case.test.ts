import { describe, expect, it } from 'vitest';

import { collectiveVolume } from '../../lib/results/bandwidth.js';
import {
  completeCase,
  errorCheck,
  exactCheck,
  failedCase,
  unchecked,
  type CaseInput,
} from '../../lib/results/case.js';
import { hasMeasurement } from '../../lib/results/result.js';

const call = { countPerRank: 1e6, elementBytes: 4, ranks: 4, placement: 'in-place' } as const;
const input: CaseInput = {
  name: 'all_reduce',
  parameters: { bytes: 4e6 },
  samplesSeconds: [0.004, 0.005, 0.004, 0.004, 0.006, 0.004],
  volume: collectiveVolume('all_reduce', call),
  copyBytesPerSecond: 1e10,
  check: exactCheck(0),
};

describe('completed case', () => {
  it('has bandwidths by the formulas and the ratio to the limit', () => {
    const result = completeCase(input);
    expect(result).toMatchObject({
      status: 'ok',
      iterationsPerSample: 1,
      statistics: { medianSeconds: 0.004 },
      algorithmBandwidth: { bytesPerSecond: 1e9 },
      busBandwidth: { bytesPerSecond: 1.5e9, formula: 'algbw * 2(n-1)/n' },
      limit: { mustMoveBytes: 32e6, boundSeconds: 0.0032, copyBytesPerSecond: 1e10 },
      verdict: { level: 'good' },
    });
    expect(hasMeasurement(result) && result.limit?.ratio).toBeCloseTo(0.8, 10);
  });

  it('keeps the samples of a typed array as plain numbers', () => {
    const result = completeCase({ ...input, samplesSeconds: new Float64Array([1, 2]) });
    expect(result.samplesSeconds).toEqual([1, 2]);
  });

  it('has no limit where nothing must move or no copy was measured', () => {
    const alone = collectiveVolume('all_reduce', { ...call, ranks: 1 });
    expect(completeCase({ ...input, volume: alone }).limit).toBeNull();
    expect(completeCase({ ...input, copyBytesPerSecond: null }).limit).toBeNull();
  });

  it('fails on a wrong result and keeps the figures', () => {
    const result = completeCase({ ...input, check: exactCheck(7) });
    expect(result).toMatchObject({ status: 'error', code: 'ERR_WRONG_RESULT' });
    expect(result.status === 'error' && result.reason).toContain('7 elements');
    expect(hasMeasurement(result)).toBe(true);
  });
});

describe('checks', () => {
  it.each([
    [0, true],
    [1e-4, true],
    [2e-4, false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
  ])('an error of %d passes: %s', (error, passed) => {
    expect(errorCheck(error, 1e-4)).toMatchObject({
      passed,
      error: Number.isFinite(error) ? error : null,
    });
  });

  it('passes when it was switched off', () => {
    expect(unchecked.passed).toBe(true);
  });
});

describe('failed case', () => {
  it('takes message and code of the error', () => {
    const error = Object.assign(new Error('rank 2 was killed'), { code: 'ERR_PEER_LOST' });
    expect(failedCase(input, error)).toEqual({
      status: 'error',
      name: 'all_reduce',
      parameters: { bytes: 4e6 },
      reason: 'rank 2 was killed',
      code: 'ERR_PEER_LOST',
    });
    expect(failedCase(input, 'thrown')).not.toHaveProperty('code');
  });
});
