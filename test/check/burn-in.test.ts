import { describe, expect, it } from 'vitest';

import { BurnIn, burnIn } from '../../lib/check/burn-in.js';
import { partOf } from '../../lib/check/part.js';
import type { RunEvents } from '../../lib/measure/common-run.js';
import { checkAnswer } from '../../lib/report/check-lines.js';
import { completeCase, exactCheck, failedCase, waivedCase } from '../../lib/results/case.js';
import { collectiveVolume } from '../../lib/results/bandwidth.js';
import {
  hasMeasurement,
  type CaseIdentity,
  type CaseResult,
  type FirstWrong,
  type Report,
  type VerdictLevel,
} from '../../lib/results/result.js';

const startedAt = new Date(0);
const at = (round: number): Date => new Date(round * 1000);

/** All rounds of a burn-in; the first is round 1. */
function after(rounds: number, casesOf: (round: number) => readonly CaseResult[]): CaseResult[] {
  const whole = new BurnIn(startedAt);
  for (let round = 1; round <= rounds; round += 1) whole.add(casesOf(round), at(round));
  return whole.cases();
}

function measuredOf(result: CaseResult | undefined) {
  if (result === undefined || !hasMeasurement(result)) throw new Error('it was not measured');
  return result;
}

/** The memory's part. */
function memory(
  samplesSeconds: readonly number[],
  level: VerdictLevel = 'good',
  bytes = 2 ** 26,
): CaseResult {
  const verdict = { level, text: 'so and so', likelyCause: null };
  return partOf({ name: 'memory', parameters: {} }, { samplesSeconds, bytes, verdict });
}

function cores(leastFreeShare: number): CaseResult {
  const verdict = { level: 'good', text: '', likelyCause: null } as const;
  const values = { leastFreeShare };
  return partOf({ name: 'cores', parameters: {} }, { samplesSeconds: [1], verdict, values });
}

function health(errors: number): CaseResult {
  const level = errors > 0 ? 'poor' : 'good';
  const verdict = { level, text: '', likelyCause: null } as const;
  const identity = { name: 'health', parameters: { gpu: 'gpu:3' } };
  return partOf(identity, { samplesSeconds: [1], verdict, values: { errors } });
}

function sum(wrong: number, firstWrong?: FirstWrong): CaseResult {
  return completeCase({
    name: 'all_reduce',
    parameters: { between: 'threads' },
    samplesSeconds: [1],
    volume: collectiveVolume('all_reduce', {
      countPerRank: 2 ** 20,
      elementBytes: 4,
      ranks: 2,
      placement: 'in-place',
    }),
    copyBytesPerSecond: 1e7,
    check: exactCheck(wrong, firstWrong),
  });
}

describe('a part over rounds', () => {
  it('has the figures of all of them', () => {
    const [part] = after(3, (round) => [memory([round, round + 10])]);
    const { status, samplesSeconds, statistics, busBandwidth, values } = measuredOf(part);
    expect(status).toBe('ok');
    expect(samplesSeconds).toEqual([1, 11, 2, 12, 3, 13]);
    expect(statistics.medianSeconds).toBe(7);
    expect(busBandwidth.bytesPerSecond).toBe(2 ** 26 / 7);
    expect(values).toEqual({ rounds: 3 });
  });

  it('keeps some hundred samples of any number of rounds, from all of the time', () => {
    const [part] = after(10_000, (round) => [memory([round, round])]);
    const { samplesSeconds, values } = measuredOf(part);
    expect(samplesSeconds.length).toBeGreaterThan(60);
    expect(samplesSeconds.length).toBeLessThanOrEqual(128);
    const rounds = [...new Set(samplesSeconds)];
    expect(rounds[0]).toBe(1);
    expect(rounds.at(-1)).toBeGreaterThan(9_500);
    // Evenly.
    expect(new Set(rounds.slice(1).map((round, before) => round - rounds[before]!)).size).toBe(1);
    expect(values?.rounds).toBe(10_000);
  });

  it('that is wrong once is bad, with the first wrong element, its round and its time', () => {
    const first = { rank: 1, index: 7, expected: '3', got: '3.5' };
    const [part] = after(50, (round) => {
      if (round === 20) return [sum(2, first)];
      return [round === 30 ? sum(1, { ...first, index: 9 }) : sum(0)];
    });
    expect(part).toMatchObject({
      status: 'error',
      code: 'ERR_WRONG_RESULT',
      check: { wrong: 3, passed: false, firstWrong: first },
      values: { rounds: 50, badRounds: 2, firstBadRound: 20, firstBadSeconds: 20 },
    });
  });

  it('is bad by what a counter counted in any round; counts add up', () => {
    const [part] = after(30, (round) => [health(round % 10 === 0 ? 2 : 0)]);
    expect(part).toMatchObject({ status: 'error', values: { errors: 6, firstBadRound: 10 } });
  });

  it.each([
    [1, 'ok', 'fair', 2 ** 26],
    [2, 'error', 'poor', 2 ** 26],
    // So small that its latency is judged.
    [1, 'ok', 'fair', 2 ** 14],
  ] as const)('that is slow in %s of 20 rounds is %s, %s', (slow, status, level, bytes) => {
    const [part] = after(20, (round) => [memory([1], round <= slow ? 'poor' : 'good', bytes)]);
    expect(part).toMatchObject({ status, verdict: { level } });
  });

  it('that throws once is bad, and has the figures of the other rounds', () => {
    const thrown = failedCase({ name: 'memory', parameters: {} }, new Error('no memory'));
    const [part] = after(3, (round) => [round === 2 ? thrown : memory([1])]);
    expect(part).toMatchObject({ status: 'error', values: { rounds: 3, firstBadRound: 2 } });
    expect(measuredOf(part).samplesSeconds).toEqual([1, 1]);
  });
});

describe('a part that is missing', () => {
  it('from a round is bad', () => {
    const [, part] = after(3, (round) => (round < 3 ? [memory([1]), health(0)] : [memory([1])]));
    expect(part).toMatchObject({ status: 'error', values: { firstBadRound: 3 } });
  });

  it('from a round that was ended is not', () => {
    const whole = new BurnIn(startedAt);
    whole.add([memory([1]), health(0)], at(1));
    whole.add([memory([1])], at(2), false);
    expect(whole.cases().map(({ status }) => status)).toEqual(['ok', 'ok']);
  });

  it.each([
    ['lost', (host: string) => failedCase({ name: 'host', parameters: { host } }, new Error('?'))],
    ['left out', (host: string) => waivedCase({ name: 'host', parameters: { host } }, '?')],
  ] as const)('because a host is %s, and comes back, is told of that host alone', (how, gone) => {
    const looked = (parameters: CaseIdentity['parameters'], name: string): CaseResult =>
      partOf(
        { name, parameters },
        { samplesSeconds: [1], verdict: { level: 'good', text: '', likelyCause: null } },
      );
    const cases = after(3, (round) => {
      const there = round === 2 ? ['a'] : ['a', 'b'];
      return [
        ...there.flatMap((host) => [looked({ host }, 'doctor'), looked({ host }, 'host')]),
        ...(round === 2
          ? [gone('b')]
          : [looked({}, 'hosts'), looked({ from: 'b', to: 'a' }, 'latency')]),
        looked({ between: 'hosts', ranks: there.length }, 'all_reduce'),
      ];
    });
    const bad = cases.filter(({ status }) => status === 'error');
    expect(bad).toMatchObject(
      how === 'lost' ? [{ parameters: { host: 'b' }, values: { firstBadRound: 2 } }] : [],
    );
  });

  it('because its measurement threw is told once', () => {
    const thrown = failedCase({ name: 'all_reduce', parameters: {} }, new Error('no process'));
    const cases = after(2, (round) => [round === 2 ? thrown : sum(0)]);
    expect(cases.map(({ status }) => status)).toEqual(['ok', 'error']);
  });
});

describe('drift', () => {
  /** The last third takes so many times as long in its fastest sample, and ten times in others. */
  const drifted = (rounds: number, times: number, free = 1): CaseResult[] =>
    after(rounds, (round) => {
      const isLast = round > (2 * rounds) / 3;
      return [memory(isLast ? [10, times] : [1, 1]), cores(isLast ? free : 1)];
    });

  it.each([
    [1.09, 'ok', 'good'],
    [1.1, 'ok', 'fair'],
    [1.24, 'ok', 'fair'],
    [1.25, 'error', 'poor'],
  ] as const)('to %s times is %s, %s', (times, status, level) => {
    const [part] = drifted(12, times);
    expect(part).toMatchObject({ status, verdict: { level }, values: { drift: times } });
  });

  it('is not told of few rounds, nor of those in which others were at work', () => {
    expect(measuredOf(drifted(8, 2)[0]).values).toEqual({ rounds: 8 });
    expect(measuredOf(drifted(9, 2)[0]).values?.drift).toBe(2);
    expect(measuredOf(drifted(30, 2, 0.5)[0]).verdict.level).toBe('good');
    // Nobody looked at the cores.
    const [unseen] = after(30, (round) => [memory([round])]);
    expect(measuredOf(unseen).values).toEqual({ rounds: 30 });
  });
});

describe('rounds', () => {
  const round = (cases: readonly CaseResult[]): Report => ({ cases }) as unknown as Report;

  it('end with the one in which the time is up', async () => {
    const { cases } = await burnIn(1e-9, () => Promise.resolve(round([health(0)])), {}, {});
    expect(cases).toMatchObject([{ values: { rounds: 1 } }]);
  });

  it('end with the first where nothing is here to be looked at', async () => {
    expect((await burnIn(3600, () => Promise.resolve(round([])), {}, {})).cases).toEqual([]);
  });

  it('that end before anything was measured say so', async () => {
    const stop = AbortSignal.abort();
    const thrown = failedCase({ name: 'all_reduce', parameters: {} }, new Error('ended'));
    const { cases } = await burnIn(3600, () => Promise.resolve(round([thrown])), {}, { stop });
    expect(checkAnswer(cases)).toMatch(/^bad: .*stopped/);
  });

  it('end when told to: what was measured stays, and what broke meanwhile does not count', async () => {
    const enough = new AbortController();
    let [looks, starts] = [0, 0];
    const thrown = failedCase({ name: 'all_reduce', parameters: {} }, new Error('ended'));
    const look = (events: RunEvents): Promise<Report> => {
      events.onStart?.({} as never, []);
      looks += 1;
      const run = { startedAt: String(looks) } as Report['run'];
      if (looks < 3) return Promise.resolve({ ...round([memory([1]), health(0)]), run });
      enough.abort();
      return Promise.resolve({ ...round([memory([1]), thrown]), run });
    };
    const told: number[] = [];
    const onRound = (number: number): void => void told.push(number);
    const given = { onStart: () => void (starts += 1) };
    const { cases, run } = await burnIn(3600, look, given, { stop: enough.signal, onRound });
    expect(run.startedAt).toBe('1');
    expect(cases.map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect(cases.map((one) => measuredOf(one).values?.rounds)).toEqual([3, 2]);
    expect(told).toEqual([1, 2, 3]);
    expect(starts).toBe(1);
  });
});
