import { describe, expect, it } from 'vitest';

import { failedCase } from '../../lib/results/case.js';
import type { CaseResult, Scalar } from '../../lib/results/result.js';
import { trainCase } from '../../lib/measure/train/case.js';
import { endLines, iterLine, startLines } from '../../lib/report/train-lines.js';
import {
  elasticDlTable,
  gridMarkdown,
  gridRecords,
  gridRows,
  gridTable,
} from '../../lib/report/train-tables.js';
import type { TrainConfig, TrainResult } from '../../lib/measure/train/types.js';
import { renderReport, toCsv } from '../../lib/report/render.js';
import { report } from '../support/reports.js';
import { expectSample } from '../support/samples.js';
import { expectReport } from '../support/measure.js';

const config: TrainConfig = {
  model: 'mobilenetv2',
  dataset: 'cifar10',
  batchSize: 64,
  warmupSteps: 50,
  iterations: 2,
  stepsPerIteration: 50,
  optimizer: 'sgd',
  learningRate: 0.1,
  mode: 'overlap',
  seed: 0,
  distOptimizer: 'gradient_allreduce',
  dynamicTopology: true,
  adaptThenCombine: false,
  shard: false,
  checkpointEvery: 100,
};

/** ElasticDL's published seconds of a task: 110.909, of it 110.655 in batches; 143.789 with 33.6484 of exchange. */
function run(workers: number, task: number, gradient: number, batch: number): TrainResult {
  return {
    workers,
    machines: 1,
    backend: 'cpu',
    device: 'CPU',
    tfjsVersion: '4.22.0',
    datasetName: 'cifar10 (synthetic)',
    sampleName: 'img',
    iterationSeconds: Array.from({ length: workers }, () => [task, task]),
    parts: {
      dataSeconds: (task - batch) / 50,
      forwardSeconds: (batch - gradient) / 150,
      backwardSeconds: (batch - gradient) / 75,
      copySeconds: 0,
      modelSeconds: 0,
      updateSeconds: 0,
      exposedSeconds: gradient / 50,
    },
    losses: [2.5, 2.25],
    gradientBytes: 8_946_728,
    gradientArrays: 158,
    trainableParameters: 2_236_682,
    warmupSteps: 50,
    resumedAt: 0,
    steps: 150,
    utilisation: {
      seconds: 10,
      cpuShare: 0.9,
      memoryShare: 0.25,
      diskShare: null,
      gpuShare: null,
      diskReadBytesPerSecond: null,
      diskWrittenBytesPerSecond: null,
      networkReceivedBytesPerSecond: 2e6,
      networkSentBytesPerSecond: 1e6,
    },
  };
}

function cells(lines: readonly string[]): Record<string, string>[] {
  const split = (line: string): string[] => line.split(/ {2,}/).map((cell) => cell.trim());
  const titles = split(lines[0] ?? '');
  return lines.slice(1).map((line) => {
    const values = split(line);
    return Object.fromEntries(titles.map((title, i) => [title, values[i] ?? '']));
  });
}

describe('cases of training', () => {
  it('fit the schema, with their figures in CSV', () => {
    const made = report('train', [trainCase(config, run(2, 143.789, 33.6484, 143.148))]);
    expectReport(JSON.parse(JSON.stringify(made)));
    const [titles = '', row = ''] = toCsv(made).split('\n');
    const at = titles.split(',').indexOf('value.imagesPerSecond');
    expect(Number(row.split(',')[at])).toBeCloseTo((2 * 64 * 50) / 143.789, 6);
  });
});

describe('elasticDlTable', () => {
  it('repeats the published speedup and shares', () => {
    const table = elasticDlTable([
      trainCase(config, run(1, 110.909, 0.000884, 110.655)),
      trainCase(config, run(2, 143.789, 33.6484, 143.148)),
      trainCase(config, run(3, 167.943, 60.0891, 167.395)),
    ]);
    const rows = cells(table);
    expect(rows[0]).toMatchObject({
      workers: '1',
      arrays: '158',
      parameters: '2236682',
      MiB: '8.532',
      'task_process s': '110.9',
      'speed /s': '28.85',
      speedup: '1.00',
      'comm %': '-',
    });
    expect(rows[1]).toMatchObject({
      'task_process s': '143.8',
      'batch_process s': '143.1',
      'report_gradient s': '33.65',
      'compute:comm': '10:3.1',
      'comm %': '24 %',
      'speed /s': '44.51',
      speedup: '1.54',
    });
    expect(rows[2]).toMatchObject({ 'compute:comm': '10:5.6', speedup: '1.98' });
  });

  it('compares each model and batch with its own single worker', () => {
    const other = { ...config, model: 'resnet50' as const };
    const rows = cells(
      elasticDlTable([
        trainCase(config, run(1, 100, 0, 100)),
        trainCase(other, run(1, 1000, 0, 1000)),
        trainCase(other, run(2, 1000, 0, 1000)),
        trainCase({ ...other, batchSize: 8 }, run(2, 1000, 0, 1000)),
      ]),
    );
    expect(rows.map(({ speedup }) => speedup)).toEqual(['1.00', '1.00', '2.00', '-']);
  });

  it('shows runs that failed', () => {
    const failed = failedCase(
      { name: 'train', parameters: { model: 'mlp', workers: 8, batchSize: 64 } },
      new Error('no memory'),
    );
    expect(elasticDlTable([failed])[1]).toContain('error: no memory');
  });
});

describe('gridRows', () => {
  /** A run of the grid that reaches a rate. */
  function gridCase(
    machines: number,
    devices: number,
    rate: number,
    more: Record<string, Scalar> = {},
  ): CaseResult {
    const workers = machines * devices;
    const seconds = (workers * 64 * 50) / rate;
    const one = trainCase(config, run(workers, seconds, 0, seconds));
    return {
      ...one,
      parameters: { ...one.parameters, machines, devicesPerMachine: devices, ...more },
    };
  }

  const runs = [
    ...[100, 104, 102].map((rate, repeat) => gridCase(1, 1, rate, { repeat })),
    // Above linear, far below, and lower than with fewer: all shown as they are.
    gridCase(1, 4, 420),
    gridCase(2, 4, 400),
    gridCase(10, 4, 3000),
    failedCase(
      {
        name: 'train',
        parameters: { model: 'mobilenetv2', machines: 1, devicesPerMachine: 8, batchSize: 64 },
      },
      new Error('exit status 137: killed'),
    ),
  ];
  const rows = gridRows(runs, 0.8);

  it('compares medians with one device on one machine', () => {
    const shown = rows.map(({ machines, devices, speedup, efficiency, passed }) => [
      ...[machines, devices, speedup?.toFixed(3), efficiency?.toFixed(3), passed],
    ]);
    expect(shown).toEqual([
      [1, 1, '1.000', '1.000', true],
      [1, 4, '4.118', '1.029', true],
      [1, 8, undefined, undefined, null],
      [2, 4, '3.922', '0.490', false],
      [10, 4, '29.412', '0.735', false],
    ]);
    expect(rows[0]?.throughputs.map((rate) => Math.round(rate))).toEqual([100, 104, 102]);
    expect(rows[0]?.median).toBeCloseTo(102, 6);
  });

  it('is the text of a report', () => {
    const lines = renderReport(report('train', runs), 'text').split('\n');
    expect(lines[2]).toMatch(/^model +machines +devices/);
    expect(lines).toHaveLength(9);
  });

  it('is written as text, Markdown and CSV', () => {
    const [, , failed, slow] = cells(gridTable(rows));
    expect(failed).toMatchObject({ runs: '-', target: '-', missing: 'exit status 137: killed' });
    expect(slow).toMatchObject({
      machines: '2',
      'devices/machine': '4',
      'median /s': '400.00',
      speedup: '3.92',
      efficiency: '49 %',
      target: 'fail',
      cpu: '90 %',
      memory: '25 %',
      disk: '-',
      'net in MB/s': '2.00',
      'net out MB/s': '1.00',
    });
    const markdown = gridMarkdown(rows, 0.8);
    expect(markdown).toContain(
      '| mobilenetv2 | 1 | 4 | 64 | 420.00 | 420.00 | 4.12 | 103 % | pass |',
    );
    expect(markdown).toMatch(/\btarget .*\b80 %/);
    expect(gridRecords(rows)[0]).toHaveLength(gridRecords(rows)[1]?.length ?? 0);
  });
});

describe('endLines', () => {
  it('names both statistics, the own one first', () => {
    const result: TrainResult = {
      ...run(2, 1, 0, 1),
      iterationSeconds: [
        [100, 200],
        [50, 100],
      ],
    };
    // Rank 0: 32 and 16 a second, rank 1: 64 and 32.
    const bluefog = endLines('bluefog', config, result);
    expect(bluefog[0]).toBe('Img/sec per CPU: 24.0 +-15.7');
    expect(bluefog[1]).toBe('Total img/sec on 2 CPU(s): 72.0 +-47.0');
    expect(bluefog).toContain('  rank 0  24.0 +-15.7 img/sec');
    expect(bluefog).toContain('  rank 1  48.0 +-31.4 img/sec');
    const horovod = endLines('horovod', config, result);
    expect(horovod[1]).toBe('Total img/sec on 2 CPU(s): 48.0 +-31.4');
    for (const lines of [bluefog, horovod]) {
      expect(lines.join('\n')).toMatch(
        /BlueFog's statistic {2}72.0 .*Horovod's statistic {2}48.0/s,
      );
    }
  });

  it('prints what docs/train.md shows', () => {
    const made = run(2, 1, 0, 1);
    const [copySeconds, exposedSeconds, updateSeconds] = [8e-3, 0.09, 9e-3];
    const measured = { dataSeconds: 3e-3, forwardSeconds: 0.16, backwardSeconds: 0.85 };
    const result: TrainResult = {
      ...made,
      backend: 'wasm',
      parts: { ...made.parts, ...measured, copySeconds, exposedSeconds, updateSeconds },
      utilisation: { ...made.utilisation, diskShare: 0.001 },
    };
    const printed = [
      ...startLines(config, 2, 'CPU'),
      ...[0, 1, 2].map((iteration) => iterLine(iteration, 6.8, 'CPU', 'img')),
      ...endLines('bluefog', config, result),
    ];
    expectSample('docs/train.md', 'Model: mobilenetv2', printed);
  });

  it('says what computed, whatever the package is called', () => {
    const onCpu: TrainResult = { ...run(2, 1, 0, 1), backend: 'node-gpu' };
    expect(endLines('bluefog', config, onCpu)[0]).toMatch(/^Img\/sec .*CPU: /);
    expect(endLines('bluefog', config, onCpu).at(-1)).toBe('  computed  on the CPU');
    const own = { ...onCpu, device: 'GPU', gpu: { gpu: '0', gpus: 4, ranks: 1 } } as const;
    expect(endLines('bluefog', config, own)[1]).toMatch(/^Total img\/sec on 2 GPU\(s\): /);
    expect(endLines('bluefog', config, own).at(-1)).toContain('each worker');
    const shared = { ...own, gpu: { gpu: '0', gpus: 1, ranks: 2 } } as const;
    expect(endLines('bluefog', config, shared).at(-1)).toContain('2 workers share');
  });
});
