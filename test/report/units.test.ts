// The unit of every figure that is printed: of results whose figures are known, and differ between GB and GiB, ms and us.
import { describe, expect, it } from 'vitest';

import { chartsOf } from '../../lib/report/charts/index.js';
import { limitPoints } from '../../lib/report/charts/limits.js';
import { topologyLines } from '../../lib/report/doctor-lines.js';
import {
  collectivesTool,
  environmentLine,
  gpuLines,
  gpuTool,
  neighborsTool,
  p2pTool,
  type Tool,
} from '../../lib/report/index.js';
import { judge } from '../../lib/results/verdict.js';
import { isAboveLimit } from '../../lib/report/verdict-words.js';
import { completeCase, exactCheck } from '../../lib/results/case.js';
import { describe as describeSamples } from '../../lib/results/statistics.js';
import {
  type CaseResult,
  type Limit,
  type Measurement,
  type Scalar,
} from '../../lib/results/result.js';
import {
  bandwidthText,
  megabytes,
  percentText,
  sidedText,
  sizeText,
  timeText,
} from '../../lib/results/units.js';
import { environment, report } from '../support/reports.js';

/** 3e9 bytes a second for 2 ms, of which twice as much passes the bus, below a limit of 12e9 bytes. */
const measured = (
  name: string,
  parameters: Record<string, Scalar> = {},
  values?: Record<string, number>,
) => ({
  ...completeCase({
    name,
    parameters,
    samplesSeconds: Float64Array.of(0.002, 0.002, 0.002, 0.002, 0.002, 0.0025),
    volume: {
      bytes: 6e6,
      mustMoveBytes: 12e6,
      algorithmFormula: 'S / t',
      busFactor: 2,
      busFormula: '2 S / t',
      mustMoveFormula: '2 S',
    },
    copyBytesPerSecond: 12e9,
    check: exactCheck(0),
  }),
  ...(values === undefined ? {} : { values }),
});

/** The words of the lines of cases, and of what stands below them. */
const told = (tool: Tool, ...cases: CaseResult[]) =>
  [...tool.rows(cases), ...tool.foot(report(tool.name, cases))].join('\n');

describe('figures in words', () => {
  it.each([
    [bandwidthText, [0.0999e9, 0.1e9, 1e9], ['0.09990 GB/s', '0.10 GB/s', '1.00 GB/s']],
    [sizeText, [1023, 1024, 2 ** 20, 2 ** 30], ['1023 B', '1 KiB', '1 MiB', '1 GiB']],
    [timeText, [0.999e-3, 1e-3, 0.999, 1], ['999.0 us', '1.000 ms', '999.0 ms', '1.000 s']],
    [megabytes, [1e6, 2 ** 20], ['1.000000', '1.048576']],
  ])('%o on both sides of each unit', (text, figures, expected) => {
    expect(figures.map(text)).toEqual(expected);
  });
});

describe('a share', () => {
  it.each([
    [0.0999, '10.0 %'],
    [0.1, '10 %'],
    [0.494, '49 %'],
    [0.4949, '49 %'],
    [0.499, '49.9 %'],
    [0.49996, '49.996 %'],
    [0.5, '50 %'],
    [0.5004, '50.04 %'],
    [0.746, '74.6 %'],
    [0.75, '75 %'],
    [0.9996, '100 %'],
    [1, '100 %'],
  ])('of %d is on the side of what it is judged by: %s', (ratio, text) => {
    expect(percentText(ratio)).toBe(text);
  });

  it('is on the side of the limits of a judgement of its own', () => {
    expect([0.799, 0.8, 0.801].map((ratio) => percentText(ratio, [0.8]))).toEqual([
      '79.9 %',
      '80 %',
      '80.1 %',
    ]);
    // As binary fractions have them.
    expect(percentText(1 - 0.95, [0.05])).toBe('5.0 %');
    expect(percentText(0.05004, [0.05])).toBe('5.004 %');
    expect(sidedText(0.899, 2, [0.9])).toBe('0.899');
  });

  it('is printed so with the verdict', () => {
    const { statistics, limit } = measured('any');
    const judged = (ratio: number) =>
      judge({ statistics: statistics!, bytes: 6e6, limit: { ...limit!, ratio } });
    expect(judged(0.499).level).toBe('poor');
    expect(judged(0.499).text).toMatch(/^49\.9 % /);
    expect(judged(1.004).text).toMatch(/^100\.4 % .*faster/);
  });
});

describe('tables', () => {
  it('of collectives have us and GB/s', () => {
    const at = new Date(2026, 0, 2, 3, 4, 5).getTime() / 1e3;
    const parameters = { bytes: 6e6, count: 1, dtype: 'int8', placement: 'out-of-place' };
    const text = told(
      collectivesTool,
      measured('all_reduce', parameters, { iterationMinSeconds: 0.0015, measuredAt: at }),
    );
    expect(text).toMatch(/2000\.0 +3\.00 +6\.00 +0 +N\/A/);
    expect(text).toMatch(/\b1500\.0, .*\b2026-01-02 03:04:05/);
    expect(text).toMatch(/ 6\.0000$/m);
  });

  it('of neighbours have us and bytes', () => {
    const values = { timeOverAllReduce: 0.5, sentBytesPerRank: 6e6, sentBytesPerHost: 12e6 };
    const text = told(neighborsTool, measured('neighbor_all_reduce', { bytes: 6e6 }, values));
    expect(text).toMatch(/2000\.0 +2500\.0 +0\.500 +6000000 +12000000/);
  });

  it('of copies have GB/s, ns of latencies', () => {
    const between = { from: 'gpu:0', to: 'gpu:1', figure: 'one' };
    expect(told(p2pTool, measured('any', { ...between, quantity: 'bandwidth' }))).toMatch(
      /gpu:0 +6\.00$/m,
    );
    const latency = { ...between, quantity: 'latency' };
    const seconds = { nearestSeconds: 2e-7, farthestSeconds: 3e-7 };
    const text = told(p2pTool, measured('any', latency, seconds));
    expect(text).toMatch(/gpu:0 +2000000$/m);
    expect(text).toMatch(/\b200\b.*\b300 ns$/m);
    const local = { ...between, to: 'gpu:0', quantity: 'bandwidth' };
    const own = told(p2pTool, measured('device_local_copy', local));
    expect(own).toMatch(/gpu:0 +3\.00$/m);
    expect(own).toMatch(/gpu:0 6\.00 GB\/s$/m);
  });

  it('of GPUs have GB/s, and a target is reached at it', () => {
    const { limit } = measured('any');
    expect(limit!.ratio).toBe(0.5);
    expect(told(gpuTool, measured('copies', {}, { target: 0.5 }))).toMatch(
      /copies +3\.00 +12\.00 +50 % +reached 50 %/,
    );
    expect(told(gpuTool, measured('copies', {}, { target: 0.501 }))).toMatch(/MISSED 50\.1 %/);
  });
});

describe('machines', () => {
  it('have GiB of memory', () => {
    expect(environmentLine(environment)).toMatch(/\b8\.0 GiB\b/);
    const gpu = {
      ordinal: 0,
      name: 'GPU',
      pciBusId: '0:1',
      memoryBytes: 80 * 2 ** 30,
      links: 18,
      activeLinks: 17,
      linkBytesPerSecond: 25e9,
    };
    const lines = gpuLines({ cudaVersion: '13.0', devices: [gpu] } as never);
    expect(lines[1]).toMatch(/80 GiB.*17 NVLinks x 25\.00 GB\/s \(1 /);
  });

  it('have Gbit/s between them', () => {
    const lines = topologyLines({
      nodes: [{ node: 0, cores: '0-1', memoryBytes: 8 * 2 ** 30, distances: [10] }],
      networks: [{ name: 'eth0', up: true, bitsPerSecond: 25e9, numaNode: 0 }],
      gpus: [],
      links: [],
      gpusMissing: 'none',
    }).join('\n');
    expect(lines).toMatch(/0 +0-1 +8\.0 GiB +10/);
    expect(lines).toMatch(/eth0 +up +25 Gbit\/s +0/);
  });
});

describe('charts', () => {
  const drawn = (...cases: CaseResult[]) =>
    JSON.stringify(
      chartsOf([{ label: 'run', report: report('any', cases) }]).map((one) => one.spec(800)),
    );

  it('of sweeps are in GB/s, with what the interval of the median makes of them', () => {
    const sizes = [6e6, 12e6].map((bytes) => measured('all_reduce', { bytes }));
    expect(drawn(...sizes)).toMatch(/"size":6000000,"gigabytes":6,"lower":4\.8,"upper":6\b/);
  });

  it('of matrices in GB/s, or us and ns', () => {
    const both = (quantity: string, medianSeconds?: number) =>
      drawn(
        ...['gpu:1', 'gpu:2'].map((to) => {
          const one = measured('any', { from: 'gpu:0', to, figure: 'one', quantity });
          return medianSeconds === undefined
            ? one
            : { ...one, statistics: describeSamples([medianSeconds]) };
        }),
      );
    expect(both('bandwidth')).toContain('"6.00"');
    expect(both('latency')).toContain('"2000"');
    expect(both('latency', 1e-6)).toContain('"1.00"');
    expect(both('latency', 0.9e-6)).toContain('"900"');
  });

  it('of samples in the unit that fits', () => {
    expect(drawn(measured('any'))).toContain('{"name":"any","time":2.5}');
  });

  it('have limits that are alike to 2 %, of 4 KiB and more between cores', () => {
    const of = (ratio: number, mustMoveBytes: number) => {
      const measurement = measured('any');
      const limit: Limit = { ...measurement.limit!, ratio, mustMoveBytes, kind: 'between cores' };
      return {
        series: String(ratio),
        size: 1,
        measurement: { ...measurement, limit } as Measurement,
      };
    };
    const limits = (...points: ReturnType<typeof of>[]) => limitPoints(points);
    expect(limits(of(0.5, 4096)).points).toEqual([{ series: '0.5', size: 1, limit: 12 }]);
    expect(limits(of(0.5, 4095)).points).toEqual([]);
    expect(limits(of(0.5, 4096), of(0.51, 4096)).shared).toBe(true);
    expect(limits(of(0.5, 4096), of(0.511, 4096)).shared).toBe(false);
  });

  it('need a reason above 105 % of a limit', () => {
    const { limit } = measured('any');
    const above = (ratio: number) => isAboveLimit({ limit: { ...limit!, ratio } });
    expect([1.05, 1.051].map(above)).toEqual([false, true]);
  });
});
