// `gradlink ddp` as users start it: its tables, and the report, picture and timelines that it leaves.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { readReport } from '../../lib/results/read-report.js';
import { hasMeasurement } from '../../lib/results/result.js';
import { folderOfAllTests } from '../support/folders.js';
import { runScript } from '../support/gpu-commands.js';
import { eventsIn } from '../support/timelines.js';

let folder = '';
folderOfAllTests((made) => (folder = made));

const ddp = (...args: string[]) => runScript('ddp.js', args);

describe('gradlink ddp', () => {
  it('compares three modes on the gradients of resnet50, checked to the last element', async () => {
    const [report, plot, trace] = ['ddp.json', 'ddp.svg', 'trace.json'].map((name) =>
      join(folder, name),
    );
    const {
      code,
      stdout: out,
      stderr,
    } = await ddp(
      ...['-n', '2', '--synthetic-compute', '20', '--bucket-sizes', '5,25'],
      ...['--steps', '3', '--warmup', '1', '--output', report!, '--plot', plot!],
      ...['--timeline', trace!],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(out).toMatch(/SYNTHETIC: .*\b161 gradients.* resnet50 .*\b20\.0 ms/);
    for (const size of [5, 25]) expect(out).toContain(`Bucket size ${size} MiB`);
    for (const phase of ['forward', 'backward']) {
      const head = `DDP: \\[${phase}\\] +mean ms +delta +p50 ms +delta +p90 ms +delta +p95 ms +delta +p99 ms +delta`;
      expect(out.match(new RegExp(`^${head}$`, 'gm'))).toHaveLength(2);
    }
    // Overlap is what the others are held against; a figure and a difference each.
    expect(out.match(/^overlap( +\d+\.\d\d +\+0\.0 %){5}$/gm)).toHaveLength(4);
    expect(out.match(/^(async|sync)( +\d+\.\d\d +[+-]\d+\.\d %){5}$/gm)).toHaveLength(8);
    expect(out).toMatch(/6 samples; .* \d+\.\d\d, \d+\.\d\d ms/);
    expect(out).toContain('# 12 cases: 12 ok, 0 failed');

    const cases = readReport(report!).cases.filter(hasMeasurement);
    expect(cases).toHaveLength(12);
    for (const { parameters, check, bytes, samplesSeconds, statistics, values = {} } of cases) {
      expect(bytes).toBe(102_228_128);
      expect(samplesSeconds).toHaveLength(6);
      expect(parameters).toMatchObject({ ranks: 2, synthetic: true, originalUnits: false });
      // Passes are no shorter than their timetable, but for what is lost where large times are subtracted.
      const least = (parameters['phase'] === 'forward' ? 0.01 : 0.02) - 1e-9;
      expect(Math.min(...samplesSeconds)).toBeGreaterThanOrEqual(least);
      if (parameters['phase'] === 'forward') continue;
      expect(check).toMatchObject({ kind: 'exact', wrong: 0 });
      expect(values['computeSeconds']).toBe(0.02);
      const { exposedSeconds, communicationSeconds, hiddenPercent } = values;
      expect(exposedSeconds).toBeCloseTo(statistics.medianSeconds - 0.02, 9);
      // Null on a machine that is busy with other work.
      const hidden = 100 * (1 - exposedSeconds! / communicationSeconds!);
      expect(hiddenPercent ?? hidden).toBeCloseTo(hidden, 6);
    }
    // 25 MiB with a first bucket of 1 MiB, in reverse: as PyTorch has it, in every mode.
    const buckets = cases.filter(({ parameters }) => parameters['bucketBytes'] === 25 * 2 ** 20);
    expect(new Set(buckets.map(({ values }) => values?.['buckets']))).toEqual(new Set([5]));

    expect(readFileSync(plot!, 'utf8')).toMatch(/^<svg[\s\S]*overlap[\s\S]*<\/svg>\s*$/);
    for (const rank of [0, 1]) {
      const events = eventsIn(trace!.replace('.json', `.rank-${rank}.json`));
      expect(events.every(({ pid }) => pid === rank)).toBe(true);
      // Warm-up is on it too: 4 steps of 5 buckets, and of more with the smaller size.
      expect(events.filter(({ name }) => name === 'backward')).toHaveLength(8);
      expect(events.filter(({ name }) => name === 'bucket 4')).toHaveLength(8);
    }
  });

  it('has the buckets of PythonDDP in original units', async () => {
    const { code, stdout } = await ddp(
      ...['--synthetic-compute', '1', '--bucket-sizes', '3', '--steps', '1', '--warmup', '1'],
      ...['--original-units', '--copy-gradients', '--format', 'json'],
    );
    expect(code).toBe(0);
    const { cases } = JSON.parse(stdout) as {
      cases: {
        parameters: Record<string, unknown>;
        values: Record<string, number>;
        check: Record<string, unknown>;
      }[];
    };
    const buckets = new Map(
      cases.map(({ parameters, values }) => [parameters['mode'], values['buckets']]),
    );
    const checks = cases.filter(({ parameters }) => parameters['phase'] === 'backward');
    expect(checks.map(({ check }) => check['wrong'])).toEqual([0, 0, 0]);
    expect(buckets.get('async')).toBe(11);
    expect(buckets.get('sync')).toBe(11);
    expect(buckets.get('overlap')).toBeGreaterThan(11);
  });

  it('tells what is wrong with what was asked', async () => {
    const one = await ddp('--plot', 'x.svg', '--bucket-sizes', '5');
    expect(one.code).toBe(2);
    expect(one.stderr).toMatch(/--plot: .*got 1\./);
    const compute = await ddp('--synthetic-compute', 'long');
    expect(compute.code).toBe(2);
    expect(compute.stderr).toMatch(/--synthetic-compute .*'long'.*\b100\b.*\b60%/);
  });
});
