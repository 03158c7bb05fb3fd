import { describe, expect, it } from 'vitest';

import { collectiveVolume, collectives } from '../../lib/results/bandwidth.js';
import { completeCase, exactCheck } from '../../lib/results/case.js';
import { collectiveCrossing } from '../../lib/results/crossing.js';

const bytes = 1200;
const sizes = [2, 3, 4, 7];

describe('what a collective passes between processes', () => {
  it.each(sizes)('is read by %d ranks together no less than information must go', (n) => {
    const total = (name: (typeof collectives)[number], of: 'put' | 'get') =>
      collectiveCrossing(name, bytes, n).parts.reduce((sum, part) => sum + part[of], 0);
    expect(total('all_reduce', 'get')).toBeCloseTo(2 * (n - 1) * bytes);
    expect(total('all_reduce', 'put')).toBeCloseTo(n * bytes);
    expect(total('reduce_scatter', 'get')).toBeCloseTo((n - 1) * bytes);
    expect(total('all_gather', 'get')).toBeCloseTo((n - 1) * bytes);
    expect(total('all_gather', 'put')).toBeCloseTo(bytes);
    expect(total('alltoall', 'put')).toBeCloseTo(total('alltoall', 'get'));
    expect(total('broadcast', 'put')).toBe(bytes);
    expect(total('broadcast', 'get')).toBe((n - 1) * bytes);
    expect(total('sendrecv', 'put')).toBe(total('sendrecv', 'get'));
  });

  it('is the same from root to all as from all to root, turned round', () => {
    for (const n of sizes) {
      const scatter = collectiveCrossing('scatter', bytes, n).parts;
      const gather = collectiveCrossing('gather', bytes, n).parts;
      expect(gather.map(({ put, get }) => ({ put: get, get: put }))).toEqual(scatter);
      expect(scatter).toHaveLength(n);
    }
  });

  it.each(collectives)('%s passes nothing where there is one rank', (name) => {
    expect(collectiveCrossing(name, bytes, 1).parts).toEqual([]);
  });
});

describe('a case with a limit between cores', () => {
  const input = {
    name: 'all_reduce',
    parameters: { bytes: 4e6 },
    samplesSeconds: [0.01, 0.01, 0.01],
    volume: collectiveVolume('all_reduce', {
      countPerRank: 1e6,
      elementBytes: 4,
      ranks: 2,
      placement: 'in-place',
    }),
    check: exactCheck(0),
  } as const;
  const betweenCores = { bytes: 8e6, bytesPerSecond: 1e9, formula: 'put + get' };

  it('is judged by the one that takes longer', () => {
    const slow = completeCase({ ...input, copyBytesPerSecond: 1e10, betweenCores });
    expect(slow.limit).toEqual({
      kind: 'between cores',
      mustMoveBytes: 8e6,
      formula: 'put + get',
      copyBytesPerSecond: 1e9,
      boundSeconds: 0.008,
      ratio: 0.8,
    });
    const memory = completeCase({ ...input, copyBytesPerSecond: 1.7e9, betweenCores });
    expect(memory.limit).not.toHaveProperty('kind');
    expect(memory.limit?.ratio).toBeCloseTo(0.941, 3);
  });

  it('says so in its verdict, and why where it is faster', () => {
    const of = (bytesPerSecond: number) =>
      completeCase({
        ...input,
        copyBytesPerSecond: null,
        betweenCores: { ...betweenCores, bytesPerSecond },
      }).verdict;
    expect(of(1e9)).toEqual({
      level: 'good',
      text: '80 % of what passes between the cores: near what these cores can do',
      likelyCause: null,
    });
    expect(of(2e9)?.level).toBe('poor');
    expect(of(0.79e9)).toMatchObject({ level: 'good', likelyCause: null });
    expect(of(0.7e9)?.likelyCause).toContain('disturbed');
    expect(of(1e12)).toMatchObject({ level: 'none', likelyCause: null });
  });
});
