import { describe, expect, it } from 'vitest';

import { plainLink, type Link } from '../../lib/predict/link.js';
import { predict, type PredictOptions } from '../../lib/predict/scaling.js';
import { linkOfSweep } from '../../lib/predict/sweep-link.js';
import type { GpuDevice, GpuEnvironment, Report, Scalar } from '../../lib/results/result.js';
import { madeRun } from '../support/comparing.js';

function reportOf(options: Readonly<Record<string, Scalar>>): Report {
  const report = madeRun({ seed: 1, sizes: [1024, 4096, 16_384, 65_536] });
  const environment = { ...report.environment, cpuModel: 'Some CPU', onlineCores: 4 };
  return { ...report, environment, run: { ...report.run, options } };
}

const noGpus: GpuEnvironment = {
  cudaVersion: '13.0',
  driverRelease: null,
  ncclVersion: null,
  nvmlMissing: null,
  devices: [],
};
const memory = linkOfSweep(reportOf({ hosts: 1 }), 'run');
const network = linkOfSweep(reportOf({ hosts: 2 }), 'run');

function forecast(inside: Link, more: Partial<PredictOptions> = {}): ReturnType<typeof predict> {
  return predict({
    workload: {
      gradientBytes: [1e6],
      forwardSeconds: 0.01,
      backwardSeconds: 0.02,
      sigmaSeconds: 0,
      bucketBytes: 1e6,
      overlap: true,
    },
    workers: [2, 4],
    inside,
    ...more,
  });
}

describe('a sweep in one memory', () => {
  it('is named in the forecast', () => {
    expect(forecast(memory).assumptions.join()).toMatch(/2 ranks.*memory.*Some CPU, 4 cores/);
  });

  it('carries no more workers than its cores, and finds nothing beyond', () => {
    expect(() => forecast(memory, { workers: [5] })).toThrow(
      /workers 5\b.* 4 cores.*--per-host 4\b/,
    );
    expect(forecast(memory).searchedWorkers).toBe(4);
  });

  it('carries more with a link between hosts, which it is not', () => {
    const more = { perHost: 4, workers: [64] };
    const { steps, searchedWorkers } = forecast(memory, { ...more, between: plainLink(1e-5, 1e9) });
    expect([steps[0]?.workers, searchedWorkers]).toEqual([64, 4000]);
    expect(() => forecast(memory, { ...more, between: memory })).toThrow(/hosts.*between.*2 ranks/);
  });

  it('marks a forecast that is quicker than that of fewer workers', () => {
    const regime = { alphaSeconds: 0, betaSecondsPerByte: 1e-10, fromBytes: 0, toBytes: 3e5 };
    const slower = { ...regime, fromBytes: 3e5, toBytes: Infinity, alphaSeconds: 1e-3 };
    const cached: Link = { regimes: [regime, slower], points: [], unseenError: null };
    const marks = (inside: Link) =>
      forecast(inside, { schemes: ['ring'], workers: [2, 4, 8] }).steps.map(
        ({ quickerThan }) => quickerThan,
      );
    expect(marks(cached)).toEqual([null, 2, 2]);
    expect(marks(plainLink(1e-5, 1e9))).toEqual([null, null, null]);
  });

  it('says when hosts are taken to have more cores', () => {
    const between = plainLink(1e-5, 1e9);
    const said = (perHost: number) =>
      forecast(memory, { perHost, workers: [perHost], between }).assumptions.join();
    expect(said(8)).toMatch(/\bcore\b/);
    expect(said(4)).not.toMatch(/\bcore\b/);
  });
});

it("a sweep of a host's GPUs carries no more workers than were there", () => {
  const report = reportOf({ hosts: 1 });
  const device = { memoryBytes: 1, index: 0 } as unknown as GpuDevice;
  const gpus = { ...noGpus, devices: [device, device, device] };
  const link = linkOfSweep({ ...report, gpus }, 'run');
  expect(forecast(link, { workers: [3] }).searchedWorkers).toBe(3);
  expect(() => forecast(link, { workers: [4] })).toThrow(/workers 4\b.* 3 GPUs/);
  // Two ranks that share one.
  const one = { ...report, gpus: { ...gpus, devices: [device] } };
  expect(linkOfSweep(one, 'run').origin?.gpus).toBe(2);
});

it('a sweep of neighbours tells its hosts by the ranks of each', () => {
  const inOne = linkOfSweep(reportOf({ ranksPerNode: 2 }), 'run');
  expect([inOne.origin?.network, inOne.origin?.cores]).toEqual([false, 4]);
  expect(linkOfSweep(reportOf({ ranksPerNode: 1 }), 'run').origin?.network).toBe(true);
});

it('servers compete where their number is given: others have no processes beside the workers', () => {
  const best = (more: Partial<PredictOptions>): (string | undefined)[] =>
    forecast(network, { workers: [512], schemes: ['ring', 'parameter-server'], ...more })
      .steps.filter((step) => step.best)
      .map(({ scheme }) => scheme);
  expect(best({})).toEqual(['ring']);
  expect(best({ servers: 512 })).toEqual(['parameter-server']);
});

it('a sweep between hosts, and one of an older version, carry any number', () => {
  expect(forecast(network, { workers: [1000] }).assumptions.join()).toContain('2 ranks on 2 hosts');
  const old = linkOfSweep(reportOf({}), 'run');
  expect(forecast(old, { workers: [1000] }).searchedWorkers).toBe(1000);
});
