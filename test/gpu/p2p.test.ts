// `gradlink p2p` on whatever GPUs there are: every case runs or says why not.
import { describe, expect, it } from 'vitest';

import { p2pCases } from '../../lib/measure/p2p/cases.js';
import { run as runP2p } from '../../lib/measure/p2p/p2p-run.js';
import { hasMeasurement, type CaseResult, type Report } from '../../lib/results/result.js';
import { native } from '../../lib/native/load.js';
import { gradlink } from '../support/cli.js';
import { reportOf } from '../support/gpu-commands.js';
import { parseReport } from '../support/measure.js';

const gpus = native().gpuCount();
const quick = ['--buffer-size', '1', '--samples', '2', '--loop-count', '2'];
const run = (...argv: string[]) => gradlink(['p2p', ...quick, ...argv]);

async function report(...argv: string[]): Promise<{ code: number; value: Report }> {
  const { code, stdout, stderr } = await run(...argv, '--format', 'json');
  expect(stderr).toBe('');
  return { code, value: parseReport(stdout) };
}

// Which they are: test/measure/p2p/cases.test.ts.
const names = p2pCases.map(({ name }) => name);

const named = (cases: readonly CaseResult[], name: string): CaseResult[] =>
  cases.filter((one) => one.name === name);

it('says about how long it takes, before the first case and after each', async () => {
  const told: { left: number; done: number; total: number }[] = [];
  const cases = ['host_to_device_memcpy_ce', 'device_to_host_memcpy_ce', 'device_local_copy'];
  await runP2p(
    { cases, bytes: 2 ** 20, samples: 1, loops: 2 },
    { onEstimate: (left, done, total) => told.push({ left, done, total }) },
  );
  expect(told.map(({ done }) => done)).toEqual([0, 1, 2, 3]);
  expect(new Set(told.map(({ total }) => total))).toEqual(new Set([3]));
  expect(told[0]?.left).toBeGreaterThan(0);
  expect(told[2]?.left).toBeGreaterThan(0);
  expect(told[3]?.left).toBe(0);
});

it('its bar counts the figures of all cases on a terminal, and is nowhere else', async () => {
  const argv = ['p2p', '-b', '1', '-i', '1', '--loop-count', '1'];
  const cases = ['-t', 'host_to_device_memcpy_ce', 'device_to_device_memcpy_write_ce'];
  const { code, stdout, stderr } = await gradlink([...argv, ...cases], { terminal: true });
  expect(code).toBe(0);
  const drawn = [...stderr.matchAll(/(\d+)\/(\d+) figures/g)].map(([, done, total]) => [
    Number(done),
    Number(total),
  ]);
  const total = drawn[0]![1]!;
  expect(total).toBeGreaterThan(1);
  expect(drawn[0]).toEqual([0, total]);
  expect(drawn.at(-1)).toEqual([total, total]);
  expect(stdout).not.toContain('figures');
  expect((await gradlink([...argv, ...cases])).stderr).toBe('');
});

describe('gradlink p2p', () => {
  it('latency is the mean of all multiprocessors, and says how far they are', async () => {
    const { value } = await report('-t', 'host_device_latency_sm');
    for (const { values, statistics } of value.cases.filter(hasMeasurement)) {
      const { multiprocessors, nearestSeconds, farthestSeconds } = values ?? {};
      expect(multiprocessors).toBeGreaterThan(1);
      expect(nearestSeconds).toBeLessThan(farthestSeconds ?? 0);
      expect(statistics.meanSeconds).toBeGreaterThanOrEqual(nearestSeconds ?? Infinity);
      expect(statistics.meanSeconds).toBeLessThanOrEqual(farthestSeconds ?? 0);
    }
    const { stdout } = await run('-t', 'host_device_latency_sm', '--gpus', '0');
    expect(stdout).toMatch(/mean.*multiprocessors.* \d+ to \d+ ns/);
  });

  it('runs every case of nvbandwidth, or waives it with the reason', async () => {
    const { code, value } = await report(...(gpus > 1 ? ['--gpus', '0,1'] : []));
    expect(code).toBe(0);
    expect([...new Set(value.cases.map(({ name }) => name))]).toEqual(names);
    for (const result of value.cases) {
      if (result.status === 'waived') {
        expect(result.reason).toMatch(/2 GPUs|peer access/);
        continue;
      }
      expect(result.status, `${result.name}: ${'reason' in result ? result.reason : ''}`).toBe(
        'ok',
      );
      if (!hasMeasurement(result)) throw new Error(`${result.name} has no figures`);
      expect(result.check).toMatchObject({ kind: 'exact', wrong: 0 });
      expect(result.samplesSeconds).toHaveLength(2);
      const { bytes, statistics, algorithmBandwidth } = result;
      expect(algorithmBandwidth.bytesPerSecond * statistics.medianSeconds).toBeCloseTo(bytes, 3);
      expect(result.parameters.flow).toMatch(/^(host|gpu:\d|within gpu:\d)/);
    }
  });

  it('has a figure for every GPU and every ordered pair', async () => {
    const { value } = await report('-t', '0', '1', '5', '34');
    expect(named(value.cases, 'host_to_device_memcpy_ce')).toHaveLength(gpus);
    expect(named(value.cases, 'device_to_host_memcpy_ce')).toHaveLength(gpus);
    expect(named(value.cases, 'device_local_copy')).toHaveLength(gpus);
    const pairs = named(value.cases, 'device_to_device_memcpy_write_ce');
    expect(pairs).toHaveLength(gpus > 1 ? gpus * (gpus - 1) : 1);
    for (const { status, parameters } of pairs) {
      if (status === 'ok') {
        const { from, to, by } = parameters;
        expect({ from, by }).toEqual({ from, by: from });
        expect(to).not.toBe(from);
      }
    }
  });

  it('shows local copies as size over time, and what was read and written below', async () => {
    const { code, stdout } = await run('-t', 'device_local_copy');
    expect(code).toBe(0);
    const shown = Number(/^ *gpu:0 +([\d.]+)/m.exec(stdout)?.[1]);
    const both = Number(/written: gpu:0 ([\d.]+)/.exec(stdout)?.[1]);
    expect(shown).toBeGreaterThan(0);
    expect(both / shown).toBeCloseTo(2, 1);
  });

  it('--matrix measures all pairs with peer access off and on', async () => {
    const { code, value } = await report('--matrix');
    expect(code).toBe(0);
    expect([...new Set(value.cases.map(({ name }) => name))]).toEqual([
      'p2p_off_unidirectional',
      'p2p_off_bidirectional',
      'p2p_off_latency',
      'p2p_off_latency_cpu_issue',
      'p2p_off_latency_cpu_complete',
      'p2p_on_unidirectional',
      'p2p_on_bidirectional',
      'p2p_on_latency',
      'p2p_on_latency_cpu_issue',
      'p2p_on_latency_cpu_complete',
    ]);
    expect(named(value.cases, 'p2p_on_unidirectional')).toHaveLength(gpus * gpus);
    for (const side of ['p2p_off', 'p2p_on']) {
      for (const what of ['issue', 'complete']) {
        const cases = named(value.cases, `${side}_latency_cpu_${what}`);
        expect(cases).toHaveLength(gpus * gpus);
        for (const result of cases.filter(hasMeasurement)) {
          expect(result.parameters).toMatchObject({ quantity: 'latency', clock: 'host' });
          expect(result).toMatchObject({ status: 'ok', bytes: 16, check: { wrong: 0 } });
          expect(result.samplesSeconds).toHaveLength(2);
          // How much of a second at the most: test/gpu/p2p-links.test.ts.
          expect(Math.min(...result.samplesSeconds)).toBeGreaterThan(1e-9);
          expect(result.verdict.level).toBe('none');
        }
      }
      for (const result of named(value.cases, `${side}_latency`)) {
        expect(result.parameters).not.toHaveProperty('clock');
      }
    }
    // Access is given back: kernels reach their peers again.
    const again = await report('-t', 'device_to_device_memcpy_read_sm');
    expect(again.value.cases.every(({ status }) => status !== 'error')).toBe(true);
  });

  it('where launches wait for their kernels streams are not held, and figures are had', async () => {
    const argv = [...quick, '-t', 'host_to_device_memcpy_ce', '--gpus', '0'];
    const { code, report: value } = await reportOf('p2p.js', argv, { CUDA_LAUNCH_BLOCKING: '1' });
    expect(value.cases.map(({ status }) => status)).toEqual(['ok']);
    expect(code).toBe(0);
  });

  it(
    'more copies than a stream takes at once fail by their hold, which is long once a run',
    { tags: 'full' },
    async () => {
      const argv = [...quick, '-t', 'host_to_device_memcpy_ce', '--loop-count', '2000'];
      const { report: value } = await reportOf('p2p.js', argv);
      const waits = value.cases.map((one) =>
        'reason' in one ? / ([\d.]+) s /.exec(one.reason)?.[1] : '',
      );
      expect(waits).toEqual(['10', ...Array.from({ length: gpus - 1 }, () => '0.5')]);
    },
  );

  it('--prefix, --gpus, --mean and --skip-verification do as they say', async () => {
    const { value } = await report('-p', 'host_to_device', '--gpus', '0', '--mean', '-s', '-d');
    expect(new Set(value.cases.map(({ name }) => name))).toEqual(
      new Set(names.filter((name) => name.startsWith('host_to_device'))),
    );
    for (const result of value.cases) {
      if (!hasMeasurement(result)) throw new Error(`${result.name} did not run`);
      expect(result.parameters.to).toBe('gpu:0');
      expect(result.check.kind).toBe('none');
      expect(result.algorithmBandwidth.formula).toBe('bytes / t, t = mean');
      const { meanSeconds } = result.statistics;
      expect(result.algorithmBandwidth.bytesPerSecond).toBeCloseTo(result.bytes / meanSeconds, -3);
    }
  });

  it('writes a matrix, CSV and Markdown of the same figures', async () => {
    const text = await run('-t', '0');
    expect(text.code).toBe(0);
    expect(text.stdout).toMatch(/^host_to_device_memcpy_ce: .*host memory/m);
    expect(text.stdout).toMatch(/^ {2}GB\/s +gpu:0/m);
    expect(text.stdout).toMatch(/^ {2}host +\d+\.\d\d/m);
    expect(text.stdout).toMatch(/^# 1 case: 1 ran, 0 waived, 0 failed$/m);
    const csv = await run('-t', '0', '--format', 'csv');
    expect(csv.stdout.split('\n')[0]).toContain('parameter.flow');
    expect(csv.stdout.trim().split('\n')).toHaveLength(1 + gpus);
    const markdown = await run('-t', '0', '--format', 'markdown');
    expect(markdown.stdout).toMatch(/^\| host_to_device_memcpy_ce: .*gpu:0, .* \|/m);
  });
});

describe('wrong usage', () => {
  it.each([
    [['-t', 'no_such_case'], '--testcase', 'no_such_case'],
    [['-t', '35'], '--testcase', 'below 35'],
    [['-p', 'nothing'], '--prefix', 'got nothing'],
    [['-t', '0', '-p', 'host'], '--testcase and --prefix', 'cannot be combined'],
    [['--matrix', '-t', '0'], '--matrix', 'combined with --testcase'],
    [['--gpus', '1000'], '--gpus', 'ordinals below'],
    [['--gpus', '0,0'], '--gpus', 'repeated'],
    [['--buffer-size', '0'], '--buffer-size', 'from 1'],
  ])('%j', async (argv, option, message) => {
    const { code, stdout, stderr } = await gradlink(['p2p', ...argv]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(option);
    expect(stderr).toContain(message);
  });
});
