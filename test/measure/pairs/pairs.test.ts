// Messages between pairs of ranks: units and formulas on times that are given, and who is called slow.
import { afterEach, describe, expect, it, vi } from 'vitest';

import { roundsFor, run } from '../../../lib/measure/pairs/pairs-run.js';
import {
  pairCases,
  rateCase,
  samplesOf,
  type PairSamples,
  type Point,
} from '../../../lib/measure/pairs/cases.js';
import { iterationsOf } from '../../../lib/measure/pairs/pairs-options.js';
import type { Segments } from '../../../lib/measure/pairs/segments.js';
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
  check: true,
  eachWay: kind === 'bandwidth',
});
const found = (...seconds: readonly number[]) =>
  seconds.map((one) => ({ seconds: [one, one, one], wrong: 0 }));

afterEach(() => {
  vi.restoreAllMocks();
});

describe('figures', () => {
  const only = (kind: Point['kind'], ...seconds: readonly number[]): Measured => {
    const samples = samplesOf(point(kind), [0, 1], found(...seconds), 1);
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
    ).map((pair) => samplesOf(point('message_rate'), pair, found(64e-6, 128e-6, 0, 0), 1));
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
    expect(roundsFor('bandwidth', 2, true)).toEqual([[[0, 1]], [[1, 0]]]);
    expect(new Set(roundsFor('bandwidth', 5, true).flat().map(String)).size).toBe(20);
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
    const pairs = roundsFor(kind, hosts.length, kind === 'bandwidth')
      .flat()
      .sort(([a, b], [c, d]) => a - c || b - d);
    const samples = pairs.map((pair) => ({
      pair,
      seconds: [slow(...pair), slow(...pair)],
      warmup: 1,
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

  it('name the one direction that is slow, and all those out of a host or into it', () => {
    const named =
      /^(?:(?:all ways (out of|into)|the (way) between|the way (from)|all pairs of (rank)) (\w))/;
    const causes = (hosts: readonly string[], slow: (a: number, b: number) => boolean) =>
      judged(hosts, (a, b) => (slow(a, b) ? 3e-6 : 1e-6), 64, 'bandwidth')
        .filter(({ verdict }) => verdict.level === 'poor')
        .map(({ parameters, verdict }) =>
          [parameters.hosts, ...named.exec(verdict.likelyCause!)!.slice(1)]
            .filter((part) => part !== undefined)
            .join(' '),
        );
    const hosts = ['a', 'b', 'c'];
    expect(causes(['a', 'b'], (from) => from === 1)).toEqual(['b - a from b']);
    expect(causes(hosts, (from, to) => from === 1 && to === 0)).toEqual(['b - a from b']);
    const both = ['a - b way a', 'b - a way b'];
    expect(causes(hosts, (from, to) => from + to === 1)).toEqual(both);
    const out = ['b - a out of b', 'b - c out of b'];
    expect(causes(hosts, (from) => from === 1)).toEqual(out);
    const into = ['a - c into c', 'b - c into c'];
    expect(causes(hosts, (_, to) => to === 2)).toEqual(into);
    const whole = ['a - c', 'b - c', 'c - a', 'c - b'].map((way) => `${way} rank 2`);
    expect(causes(hosts, (from, to) => from === 2 || to === 2)).toEqual(whole);
  });

  it('are none of a pair that took longer because it waited for a core', () => {
    const of = (seconds: number, first: number, second: number): Measured => {
      const samples = roundsFor('latency', 3)
        .flat()
        .map((pair): PairSamples => {
          const mine = pair.includes(0) && pair.includes(1);
          const waited = mine ? ([first, second] as const) : ([0, 0] as const);
          return { pair, seconds: [mine ? seconds : 1e-6], warmup: 1, wrong: 0, waited };
        });
      const cases = pairCases(point('latency'), place(['a', 'b', 'c']), samples) as Measured[];
      return cases.find(({ parameters: { hosts } }) => hosts === 'a - b')!;
    };
    const { level, reason, likelyCause } = of(4e-6, 0.6, 0.1).verdict;
    expect([level, reason]).toEqual(['none', 'host time']);
    expect(likelyCause).toMatch(/of a are/);
    expect(of(4e-6, 0.7, 0.8).verdict.likelyCause).toMatch(/of a and b are/);
    expect(of(4e-6, 0.5, 0.1).verdict.level).toBe('fair');
    expect(of(100e-6, 0.5, 0.3).verdict.level).toBe('poor');
    expect(of(1.2e-6, 0.9, 0.9).verdict.level).toBe('good');
  });

  describe('of pairs that lose packets', () => {
    const of = (
      hosts: readonly string[],
      first: Segments | undefined,
      second: Segments | undefined,
      seconds = 1e-6,
    ): Measured => {
      const pairs = roundsFor('latency', hosts.length).flat();
      const samples = pairs.map((pair): PairSamples => {
        const mine = pair[0] === 0 && pair[1] === 1;
        return {
          pair,
          seconds: [mine ? seconds : 1e-6],
          warmup: 1,
          wrong: 0,
          segments: mine ? [first, second] : [undefined, undefined],
        };
      });
      const cases = pairCases(point('latency'), place(hosts), samples) as Measured[];
      return cases.find(({ parameters: { from, to } }) => from !== 'rank 2' && to !== 'rank 2')!;
    };
    const three = ['a', 'b', 'c'];
    const lost = (again: number, sent = 10_000): Segments => ({ sent, again });

    it('are the share that is sent again, by the host that does most', () => {
      const levels = [4, 10, 49, 50].map((again) => {
        const { verdict, values } = of(three, lost(again), lost(0));
        expect(values?.retransmittedShare).toBe(again / 10_000);
        return [verdict.level, verdict.reason];
      });
      expect(levels).toEqual([
        ['good', 'others'],
        ['fair', 'faults'],
        ['fair', 'faults'],
        ['poor', 'faults'],
      ]);
      const { text, likelyCause } = of(three, lost(0), lost(110)).verdict;
      expect(text).toMatch(/^1\.0 .*; 1\.1 % .* from b /);
      expect(likelyCause).toMatch(/^packets .* a and b: /);
    });

    it('are both causes where they are slow too, and the worse level', () => {
      const { level, reason, text, likelyCause } = of(three, lost(20), lost(0), 3e-6).verdict;
      expect([level, reason]).toEqual(['poor', 'others']);
      expect(text).toMatch(/^3\.0 .*; 0\.2 % .* from a /);
      expect(likelyCause).toMatch(/ a and b; packets /);
      expect(of(three, lost(90), lost(0), 1.7e-6).verdict.level).toBe('poor');
    });

    it('are none of few segments, and of a host with more ranks, which it counts together', () => {
      expect(of(three, lost(9, 999), undefined).values?.retransmittedShare).toBeUndefined();
      expect(of(['a', 'b', 'b'], lost(900), lost(900)).values?.retransmittedShare).toBeUndefined();
    });

    it('are told of the only pair, too', () => {
      expect(of(['a', 'b'], undefined, lost(300)).verdict.level).toBe('poor');
    });
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
      [8, 2 ** 20].flatMap((bytes) => [
        ...Array<string>(3).fill(`latency ${bytes}`),
        ...Array<string>(6).fill(`bandwidth ${bytes}`),
      ]),
    );
    const text = textLines(pairsTool, report);
    expect(text.filter((line) => /^\d/.test(line))).toHaveLength(2);
    expect(text.filter((line) => /^# {3}rank \d/.test(line))).toHaveLength(5);
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

  it('takes fewer samples of slow messages, where no number is given', async () => {
    const secondsEach = 0.7;
    vi.spyOn(native(), 'timeMessages').mockImplementation((_, { first, samples }) =>
      Promise.resolve({
        seconds: new Float64Array(first ? samples : 0).fill(secondsEach),
        wrong: 0,
      }),
    );
    const counts = async (more: object): Promise<number[]> => {
      const { cases } = await run({ kinds: ['latency'], sizes: [16], ...more });
      const [{ statistics, warmupIterations }] = cases as [Measured];
      return [statistics.samples, warmupIterations];
    };
    expect(await counts({})).toEqual([4, 2]);
    expect(await counts({ iterations: 50 })).toEqual([50, 10]);
  });

  it('measures bandwidth each way of two ranks where that is asked for', async () => {
    const argv = [...words('pairs osu_latency osu_bw --each-way -b 64 -e 64'), ...quick];
    const { stdout } = await gradlink([...argv, '--format', 'json']);
    const { cases } = parseReport(stdout);
    expect(cases.map(({ name, parameters: { from } }) => `${name} ${String(from)}`)).toEqual([
      'latency undefined',
      'bandwidth rank 0',
      'bandwidth rank 1',
    ]);
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
