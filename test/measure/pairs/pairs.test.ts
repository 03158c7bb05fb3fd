// Messages between pairs of ranks: units and formulas on times that are given, and who is called slow.
import { afterEach, describe, expect, it, vi } from 'vitest';

import { roundsFor, run } from '../../../lib/measure/pairs/pairs-run.js';
import { pairCases, rateCase, samplesOf, type Point } from '../../../lib/measure/pairs/cases.js';
import { iterationsOf } from '../../../lib/measure/pairs/pairs-options.js';
import { native } from '../../../lib/native/load.js';
import type { CaseResult, Measurement } from '../../../lib/results/result.js';
import { pairsTool } from '../../../lib/report/index.js';
import { textLines } from '../../../lib/report/tool.js';
import { gradlink } from '../../support/cli.js';
import { parseReport } from '../../support/measure.js';
import { words } from '../../support/words.js';
import { report } from '../../support/reports.js';

type Measured = CaseResult & Measurement;

const place = (hosts: readonly string[], cores = 64) => ({
  ranks: hosts.map((host, rank) => ({ rank, pid: 1, host })),
  cores: hosts.map(() => cores),
  backend: 'tcp',
});
const point = (kind: Point['kind']): Point => ({
  kind,
  bytes: 1000,
  window: kind === 'latency' ? 1 : 64,
  warmup: 1,
  check: true,
});
const found = (...seconds: readonly number[]) =>
  seconds.map((one) => ({ seconds: [one, one, one], wrong: 0 }));

afterEach(() => {
  vi.restoreAllMocks();
});

describe('figures', () => {
  const only = (kind: Point['kind'], ...seconds: readonly number[]): Measured => {
    const samples = samplesOf(point(kind), [0, 1], found(...seconds));
    const [one] = pairCases(point(kind), place(['a', 'a']), [samples]);
    return one as Measured;
  };

  it('of latency are half of there and back', () => {
    const { statistics, bytes, parameters } = only('latency', 4e-6, 0);
    expect([statistics.medianSeconds, bytes]).toEqual([2e-6, 1000]);
    expect(parameters).toEqual({
      quantity: 'latency',
      bytes: 1000,
      window: 1,
      ranks: 2,
      backend: 'tcp',
    });
  });

  it('of bandwidth are the bytes of a window over its time', () => {
    const { busBandwidth, values } = only('bandwidth', 64e-6, 0);
    expect(busBandwidth.bytesPerSecond).toBeCloseTo(1e9, 0);
    expect(values?.messagesPerSecond).toBeCloseTo(1e6, 6);
  });

  it('of both ways are those of two windows over the longer time', () => {
    const { busBandwidth, bytes } = only('bidirectional', 64e-6, 128e-6);
    expect(bytes).toBe(2000);
    expect(busBandwidth.bytesPerSecond).toBeCloseTo(1e9, 0);
  });

  it('of the message rate are those of all pairs over the time of the slowest', () => {
    const samples = (
      [
        [0, 2],
        [1, 3],
      ] as const
    ).map((pair) => samplesOf(point('message_rate'), pair, found(64e-6, 128e-6, 0, 0)));
    const rate = rateCase(point('message_rate'), place(['a', 'a', 'b', 'b']), samples) as Measured;
    expect(rate.values?.messagesPerSecond).toBeCloseTo(1e6, 6);
    expect(rate.bytes).toBe(2000);
  });

  it('are taken less often of large messages', () => {
    expect(iterationsOf('latency', 8192, {})).toEqual({ samples: 1000, warmup: 100 });
    expect(iterationsOf('latency', 8193, {})).toEqual({ samples: 100, warmup: 10 });
    expect(iterationsOf('bandwidth', 1, {})).toEqual({ samples: 100, warmup: 10 });
    expect(iterationsOf('bandwidth', 2 ** 20, {})).toEqual({ samples: 20, warmup: 2 });
    expect(iterationsOf('latency', 1, { iterations: 7, warmup: 0 })).toEqual({
      samples: 7,
      warmup: 0,
    });
  });
});

describe('rounds', () => {
  it('have each pair once, and of the message rate two halves', () => {
    const pairs = roundsFor('latency', 5).flat();
    expect(new Set(pairs.map(String)).size).toBe(10);
    for (const round of roundsFor('bandwidth', 6)) expect(new Set(round.flat()).size).toBe(6);
    expect(roundsFor('message_rate', 5)).toEqual([
      [
        [0, 2],
        [1, 3],
      ],
    ]);
  });
});

describe('verdicts', () => {
  const judged = (
    hosts: readonly string[],
    slow: (a: number, b: number) => number,
    cores?: number,
    kind: Point['kind'] = 'latency',
  ): Measured[] => {
    const pairs = roundsFor(kind, hosts.length)
      .flat()
      .sort(([a, b], [c, d]) => a - c || b - d);
    const samples = pairs.map((pair) => ({
      pair,
      seconds: [slow(...pair), slow(...pair)],
      wrong: 0,
    }));
    return pairCases(point(kind), place(hosts, cores), samples) as Measured[];
  };
  const slowOf = (cases: readonly Measured[]) =>
    cases
      .filter(({ verdict }) => verdict.level !== 'good')
      .map(({ parameters: { from, to }, verdict }) => [from, to, verdict.level]);

  it('name the one pair that is slow', () => {
    const cases = judged(['a', 'b', 'c', 'd'], (a, b) => (a === 1 && b === 3 ? 3e-6 : 1e-6));
    expect(slowOf(cases)).toEqual([['rank 1', 'rank 3', 'poor']]);
    const slow = cases.find(({ verdict }) => verdict.level === 'poor');
    expect(slow?.verdict.likelyCause).toContain('b and d');
    expect(slow?.parameters.hosts).toBe('b - d');
  });

  it('name the rank all of whose pairs are slow', () => {
    const cases = judged(['a', 'a', 'a', 'a', 'a'], (a, b) => (a === 2 || b === 2 ? 1.8e-6 : 1e-6));
    expect(slowOf(cases)).toHaveLength(4);
    for (const { verdict } of cases.filter((one) => one.verdict.level === 'fair')) {
      expect(verdict.likelyCause).toContain('rank 2');
    }
  });

  it('compare pairs within hosts and between them apart', () => {
    const hosts = ['a', 'a', 'a', 'b'];
    const cases = judged(hosts, (a, b) => (hosts[a] === hosts[b] ? 1e-6 : 50e-6));
    expect(slowOf(cases)).toEqual([]);
  });

  it('name no rank for its only pair that there is another to judge by', () => {
    const cases = judged(['a', 'a', 'b'], (a, b) => (a === 0 && b === 2 ? 9e-6 : 1e-6));
    const slow = cases.find(({ verdict }) => verdict.level === 'poor');
    expect(slow?.parameters).toMatchObject({ from: 'rank 0', to: 'rank 2' });
    expect(slow?.verdict.likelyCause).toContain('a and b');
  });

  it('name the cores where ranks, or their threads for both ways, are more than these', () => {
    const slow = (a: number, b: number): number => (a === 0 && b === 1 ? 3e-6 : 1e-6);
    const causes = (cores: number, kind: Point['kind'] = 'latency') =>
      judged(['a', 'a', 'a'], slow, cores, kind)
        .flatMap(({ verdict: { likelyCause } }) => likelyCause ?? [])
        .map((cause) => /(\S+) cores:/.exec(cause)?.[1]);
    expect(causes(2)).toEqual(['2']);
    expect(causes(2.5)).toEqual(['2.5']);
    expect(causes(3)).toEqual([undefined]);
    expect(causes(5, 'bidirectional')).toEqual(['5']);
    expect(causes(6, 'bidirectional')).toEqual([undefined]);
    // Three hosts, a core for each rank.
    expect(judged(['a', 'b', 'c'], slow, 1)[0]?.verdict.likelyCause).toContain('between a and b');
    const [only] = judged(['a', 'a'], slow, 1);
    expect(only?.verdict).toMatchObject({ level: 'none', reason: 'none alike' });
    const foot = pairsTool.foot(report('pairs', [only!]));
    expect(foot).toContain(`# Note: latency: ${only!.verdict.likelyCause!}`);
  });

  it('are none of the only pair', () => {
    expect(judged(['a', 'b'], () => 1e-6)[0]?.verdict.level).toBe('none');
  });
});

describe('gradlink pairs', () => {
  const quick = ['-i', '3', '-w', '1', '-W', '4'];

  it('prints a line for each size, with a column for each figure', async () => {
    const { code, stdout } = await gradlink([...words('pairs -b 1 -e 64K -f 256'), ...quick]);
    expect(code).toBe(0);
    const lines = stdout.split('\n');
    expect(lines.find((line) => line.startsWith('# Size'))).toMatch(
      /Latency \(us\) +p99 \(us\) +Bandwidth \(GB\/s\) +Both ways \(GB\/s\) +Messages\/s$/,
    );
    const rows = lines.filter((line) => /^\d/.test(line)).map((line) => line.split(/ +/));
    expect(rows.map(([size]) => size)).toEqual(['1', '256', '65536']);
    for (const row of rows) {
      expect(row).toHaveLength(6);
      for (const cell of row) expect(Number(cell)).toBeGreaterThanOrEqual(0);
    }
  });

  it('measures all pairs of more ranks at two sizes, and prints the same from its report', async () => {
    const argv = ['pairs', 'osu_latency', 'osu_bw', '-n', '3', '--format', 'json', ...quick];
    const { code, stdout } = await gradlink(argv);
    expect(code).toBe(0);
    const report = parseReport(stdout);
    expect(
      report.cases.map(({ name, parameters: { bytes } }) => `${name} ${String(bytes)}`),
    ).toEqual(
      [8, 2 ** 20].flatMap((bytes) =>
        ['latency', 'bandwidth'].flatMap((name) => Array<string>(3).fill(`${name} ${bytes}`)),
      ),
    );
    const text = textLines(pairsTool, report);
    expect(text.filter((line) => /^\d/.test(line))).toHaveLength(2);
    expect(text.filter((line) => /^# {3}rank \d/.test(line))).toHaveLength(4);
  });

  it('counts wrong bytes, and ends with 1', async () => {
    const addon = native();
    const timeMessages = addon.timeMessages.bind(addon);
    vi.spyOn(addon, 'timeMessages').mockImplementation(async (...args) => {
      const { seconds } = await timeMessages(...args);
      return { seconds, wrong: 2 };
    });
    const report = await run({ kinds: ['latency'], sizes: [16], iterations: 2 });
    expect(report.cases).toMatchObject([
      { status: 'error', code: 'ERR_WRONG_RESULT', check: { wrong: 4 } },
    ]);
    const unchecked = await run({ kinds: ['latency'], sizes: [16], iterations: 2, check: false });
    expect(unchecked.cases).toMatchObject([{ status: 'ok', check: { kind: 'none' } }]);
  });

  it('answers with as many bytes for latency, and with 4 for the rest', async () => {
    const timed = vi.spyOn(native(), 'timeMessages');
    await run({ kinds: ['latency', 'bandwidth'], sizes: [64], iterations: 2 });
    const answers = timed.mock.calls.map(([, { window, answerBytes }]) => [window, answerBytes]);
    expect(new Set(answers.map(String))).toEqual(new Set(['1,64', '64,4']));
  });

  it('refuses one rank, a backend between hosts without a job, and a kind that is none', async () => {
    await expect(run({ ranks: 1 })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    await expect(run({ backend: 'tcp' })).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' });
    for (const argv of [['-n', '1'], ['--backend', 'tcp'], ['latncy'], ['-b', '8', '-e', '4']]) {
      expect((await gradlink(['pairs', ...argv])).code).toBe(2);
    }
  });
});
