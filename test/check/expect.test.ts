// What is expected of parts: what a file may say, and what a part is worth beside a file, a table and a good day.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { judgeByExpected, unmatched, type Expectations } from '../../lib/check/expect.js';
import { parseExpected } from '../../lib/check/expect-file.js';
import { excused, partOf } from '../../lib/check/part.js';
import {
  hasMeasurement,
  type CaseResult,
  type GpuDevice,
  type Scalar,
  type VerdictLevel,
} from '../../lib/results/result.js';
import { report } from '../support/reports.js';
import { root } from '../support/walks.js';

const mib = 2 ** 20;
const head = report('check', []);

interface Made {
  readonly name?: string;
  readonly parameters?: Readonly<Record<string, Scalar>>;
  /** Of a GB. */
  readonly seconds?: readonly number[];
  readonly bytes?: number;
  readonly level?: VerdictLevel;
}

/** A GB in a tenth of a second: 10 GB/s. */
function part(made: Made = {}): CaseResult {
  const { name = 'memory', parameters = {}, seconds = [0.1], bytes = 1e9, level = 'good' } = made;
  const verdict = { level, text: 'own', likelyCause: null };
  const samplesSeconds = seconds.map((one) => one * (bytes === 0 ? 1 : bytes / 1e9));
  return partOf(
    { name, parameters },
    { samplesSeconds, bytes, verdict, values: name === 'cores' ? { cores: 2 } : {} },
  );
}

const sum = (between: string, bytes: number, seconds = [0.1]): CaseResult =>
  part({ name: 'all_reduce', parameters: { between, ranks: 2, bytes }, bytes, seconds });

const ofFile = (text: string): Expectations => ({ figures: parseExpected(text, 'e.yaml') });

function levelsOf(
  cases: readonly CaseResult[],
  expected: Expectations,
  run = head,
  before: readonly CaseResult[] = [],
) {
  return judgeByExpected(cases, run, expected, before).map((one) =>
    hasMeasurement(one) ? one.verdict.level : one.status,
  );
}

describe('a file of what is expected', () => {
  it('is read as the guide shows it', () => {
    const guide = readFileSync(join(root, 'docs/check.md'), 'utf8');
    const [, example = ''] = /^```yaml\n(.*?)^```/ms.exec(guide) ?? [];
    expect(parseExpected(example, 'guide').length).toBeGreaterThan(8);
    const least = 'all_reduce: [{ between: threads, bytes: 1M, busGBps: 5 }]\ntolerance: 0';
    expect(parseExpected(`${least}\nmemory: { copyGBps: 100000 }`, 'bounds')).toHaveLength(2);
  });

  it.each([
    ['memory: { copyGbps: 40 }', 'copyGBps?'],
    ['memmory: { copyGBps: 40 }', 'memory?'],
    ['memory: 40', 'memory'],
    ['memory: { copyGBps: 40 GB/s }', 'memory.copyGBps'],
    ['memory: { copyGBps: 0 }', 'memory.copyGBps'],
    ['memory: { copyGBps: 100001 }', 'memory.copyGBps'],
    ['pairs: { latencyMs: 1 }', 'latencyUs?'],
    ['copiesGBps: { host_to_device_memcpy_cee: 20 }', 'host_to_device_memcpy_ce?'],
    ['tolerance: 1\nmemory: { copyGBps: 40 }', 'tolerance'],
    ['tolerance: 0.1', 'the file'],
    ['# nothing', 'the file'],
    ['all_reduce: { bytes: 16M }', 'all_reduce'],
    ['all_reduce: [{ between: thread, bytes: 16M, busGBps: 5 }]', 'all_reduce[0].between'],
    ['all_reduce: [{ between: threads, bytes: 16X, busGBps: 5 }]', 'all_reduce[0].bytes'],
    ['all_reduce: [{ between: threads, busGBps: 5 }]', 'all_reduce[0].bytes'],
    ['all_reduce: [{ between: threads, bytes: 16M }]', 'all_reduce[0]'],
    ['all_reduce: [{ between: threads, bytes: 1023K, busGBps: 5 }]', 'all_reduce[0].busGBps'],
    ['a: [', 'line 1'],
  ])('that says %j is refused by name', (text, where) => {
    expect(() => parseExpected(text, 'e.yaml')).toThrow(where);
  });
});

describe('a part beside a file', () => {
  it.each([
    [8, 'good'],
    [7.99, 'poor'],
  ])('with %s of 10 GB/s is %s', (rate, level) => {
    const memory = part({ seconds: [1 / rate, 1 / rate] });
    expect(levelsOf([memory], ofFile('memory: { copyGBps: 10 }'))).toEqual([level]);
  });

  it('is fair or poor still where its own limit says so, and keeps its reason', () => {
    const expected = ofFile('memory: { copyGBps: 1 }');
    expect(levelsOf([part({ level: 'fair' })], expected)).toEqual(['fair']);
    const [poor] = judgeByExpected(
      [part({ level: 'poor' })],
      head,
      ofFile('memory: { copyGBps: 99 }'),
    );
    expect(poor).toMatchObject({ status: 'error', reason: 'own' });
  });

  it('is an error that says what was expected, and by whom', () => {
    const [slow] = judgeByExpected([part()], head, ofFile('memory: { copyGBps: 40 }'));
    expect(slow).toMatchObject({ status: 'error', verdict: { reason: 'expected' } });
    expect(slow).toHaveProperty(
      'reason',
      expect.stringMatching(/^10\.00 GB\/s.* 0\.25 of 40 \(e\.yaml\)/),
    );
  });

  it('counts by its fastest in host memory, and by its median on GPUs', () => {
    const expected = ofFile(
      'all_reduce: [{ between: threads, bytes: 16M, busGBps: 10 }, { between: gpus, bytes: 16M, busGBps: 10 }]',
    );
    const both = ['threads', 'gpus'].map((between) => sum(between, 16 * mib, [0.1, 0.3, 0.3]));
    expect(levelsOf(both, expected)).toEqual(['good', 'poor']);
  });

  it('is judged by latency where it is small, and never by bandwidth', () => {
    const latency = part({ name: 'latency', bytes: 8, seconds: [11.9e-6 * (1e9 / 8)] });
    expect(levelsOf([latency], ofFile('pairs: { latencyUs: 10 }'))).toEqual(['good']);
    expect(levelsOf([latency], ofFile('pairs: { latencyUs: 9.8 }'))).toEqual(['poor']);
    const small = [part({ bytes: mib - 1 }), part({ bytes: mib })];
    expect(levelsOf(small, ofFile('memory: { copyGBps: 99 }'))).toEqual(['good', 'poor']);
  });

  it('lacks a core or a GPU where fewer are there', () => {
    const cores = part({ name: 'cores', bytes: 0 });
    const doctor = part({ name: 'doctor', bytes: 0 });
    const gpu = part({ name: 'doctor', bytes: 0, parameters: { gpu: 'gpu:0' } });
    const parts = [cores, doctor, gpu];
    const both = (count: number) =>
      ofFile(`cores: { count: ${count + 1} }\ngpus: { count: ${count} }`);
    expect(levelsOf(parts, both(1))).toEqual(['good', 'good', 'good']);
    expect(levelsOf(parts, both(2))).toEqual(['poor', 'poor', 'good']);
  });

  it('is not judged beside busy cores of its host, nor where it was excused', () => {
    const expected = ofFile('memory: { copyGBps: 40 }');
    const on = (host: string, level: VerdictLevel) => [
      part({ name: 'cores', bytes: 0, level, parameters: { host } }),
      part({ parameters: { host } }),
    ];
    expect(levelsOf([...on('a', 'good'), ...on('b', 'fair')], expected)).toEqual([
      ...['good', 'poor'],
      ...['fair', 'good'],
    ]);
    const [cores] = on('b', 'fair');
    expect(levelsOf([part({ parameters: { host: 'b' } })], expected, head, [cores!])).toEqual([
      'good',
    ]);
    const told = excused(part({ level: 'poor' }), 'a core is busy');
    expect(judgeByExpected([told], head, expected)).toEqual([told]);
  });

  it('that is not there is told', () => {
    const expected = ofFile('memory: { copyGBps: 1 }\npairs: { latencyUs: 1 }');
    expect(unmatched([part()], expected)).toMatchObject([
      {
        status: 'ok',
        verdict: { level: 'fair', text: expect.stringContaining('pairs.latencyUs') },
      },
    ]);
    expect(unmatched([part()], ofFile('memory: { copyGBps: 1 }'))).toEqual([]);
  });
});

describe('a sum of GPUs beside what was published of them', () => {
  const device = (name: string, links: number, activeLinks = links) =>
    ({ name, links, activeLinks }) as GpuDevice;
  const withGpus = (devices: readonly GpuDevice[]) => ({
    ...head,
    gpus: {
      cudaVersion: '13.0',
      driverRelease: null,
      ncclVersion: null,
      nvmlMissing: null,
      devices,
    },
  });
  const eight = (...of: Parameters<typeof device>) =>
    Array.from({ length: 8 }, () => device(...of));
  const h100s = eight('NVIDIA H100 80GB HBM3', 18, 12);
  const judged = (devices: readonly GpuDevice[], GBps: number, bytes = 256 * mib) =>
    levelsOf([sum('gpus', bytes, [1 / GBps])], {}, withGpus(devices))[0];

  it('is fair a fifth below it, and poor two fifths below', () => {
    expect([438, 369, 367, 277, 275].map((rate) => judged(h100s, rate))).toEqual([
      ...['good', 'good', 'fair', 'fair', 'poor'],
    ]);
  });

  it.each([
    ['7 of them', h100s.slice(1), 256],
    ['another model', eight('NVIDIA H200', 18), 256],
    ['other links', eight('NVIDIA H100 80GB HBM3', 12), 256],
    ['NVLink where PCIe was meant', eight('NVIDIA H100 PCIe', 12), 256],
    ['a smaller sum', h100s, 255],
  ])('is not expected anything of with %s', (_what, devices, size) => {
    expect(judged(devices, 1, size * mib)).toBe('good');
  });
});

describe('a part beside a good day', () => {
  const day = (...cases: CaseResult[]): Expectations => ({
    baseline: { name: 'good-day', reports: [report('check', cases)] },
  });
  const steady = (seconds: number) =>
    Array.from({ length: 20 }, (_, at) => seconds * (1 + at / 1000));

  it('is an error where it is worse, with both figures', () => {
    const then = day(part({ seconds: steady(0.1) }));
    const [slow] = judgeByExpected([part({ seconds: steady(0.2) })], head, then);
    expect(slow).toMatchObject({ status: 'error', verdict: { level: 'poor', reason: 'expected' } });
    const { startedAt } = head.run;
    expect(slow).toHaveProperty('reason', expect.stringContaining(startedAt.slice(0, 10)));
    expect(slow).toHaveProperty('reason', expect.stringMatching(/9\.9\d GB\/s.* 4\.9\d GB\/s/));
    expect(levelsOf([part({ seconds: steady(0.1) })], then)).toEqual(['good']);
    const disturbed = part({ seconds: [0.1, ...steady(0.2)] });
    expect(levelsOf([disturbed], then)).toEqual(['fair']);
  });

  it('is not judged by how long it was looked at', () => {
    const doctor = (seconds: number) =>
      part({ name: 'doctor', bytes: 0, seconds: steady(seconds) });
    expect(judgeByExpected([doctor(9)], head, day(doctor(1)))).toEqual([doctor(9)]);
  });

  it('on a machine that has changed has the change for its cause', () => {
    const run = { ...head, environment: { ...head.environment, availableCores: 1 } };
    const then = day(part({ seconds: steady(0.1) }));
    const [slow] = judgeByExpected([part({ seconds: steady(0.2) })], run, then);
    expect(slow).toMatchObject({
      verdict: { likelyCause: expect.stringMatching(/^availableCores .*\b2\b.*\b1$/) },
    });
  });

  it('is as surely worse alone as among all parts of that day', () => {
    const rough = (seconds: number) => steady(seconds).map((one, at) => one * (1 + (at % 7) / 20));
    const parts = (seconds: number) =>
      Array.from({ length: 20 }, (_, at) => part({ name: `part ${at}`, seconds: rough(seconds) }));
    const [first, ...others] = parts(0.2);
    const told = (then: Expectations, ...more: CaseResult[]) =>
      judgeByExpected([first!, ...more], head, then)[0];
    const then = day(...parts(0.1));
    expect(told(then)).toEqual(told(then, ...others));
    expect(told(then)).not.toEqual(told(day(parts(0.1)[0]!)));
  });

  it('that is gone is told', () => {
    const [told] = unmatched([part()], day(part(), sum('gpus', 16 * mib)));
    expect(told).toMatchObject({ verdict: { text: expect.stringMatching(/\b1 .*good-day/) } });
  });
});
