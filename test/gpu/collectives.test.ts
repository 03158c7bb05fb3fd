// `gradlink collectives` where ranks are GPUs: on whatever GPUs there are.
import { beforeEach, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { collectives } from '../../lib/results/bandwidth.js';
import { hasMeasurement, type Report } from '../../lib/results/result.js';
import { native } from '../../lib/native/load.js';
import { commonDtypes, deviceDtypes } from '../../lib/tensor/dtype.js';
import { gradlink } from '../support/cli.js';
import { reportOf, runScript } from '../support/gpu-commands.js';
import { onRealGpus } from './setup/fakes.js';
import { parseReport } from '../support/measure.js';

const gpus = native().gpuCount();
const quick = ['-b', '4K', '-e', '4K', '--iters', '2', '-w', '1', '-m', '2'];
const hasFloat8 = native().gpuLibraries().ncclFloat8;
const addsFloat8 = gpuDevices().every(
  ({ computeCapability }) => Number.parseInt(computeCapability, 10) >= 9,
);

async function report(...argv: string[]): Promise<Report> {
  const line = ['collectives', ...argv, ...quick, '--format', 'json'];
  const { code, stdout, stderr } = await gradlink(line);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
  return parseReport(stdout);
}

/** All that ran is right, and something did. */
function expectRight({ cases }: Report, ranks: number): void {
  const measured = cases.filter(hasMeasurement);
  expect(measured).not.toHaveLength(0);
  for (const { parameters, check, samplesSeconds } of measured) {
    expect(check).toMatchObject({ kind: 'exact', wrong: 0, passed: true });
    expect(parameters.ranks).toBe(ranks);
    expect(samplesSeconds).toHaveLength(2);
    expect(Math.min(...samplesSeconds)).toBeGreaterThan(0);
  }
}

describe('one process', () => {
  it.each(collectives)('%s on all GPUs is right', async (collective) => {
    const value = await report(collective, '-g', String(gpus));
    expectRight(value, gpus);
    expect(value.gpus?.devices).toHaveLength(gpus);
    expect(value.gpus?.ncclVersion).toMatch(/^\d+\.\d+/);
  });

  it('every element type and operation is right', async () => {
    const value = await report('all_reduce', '-g', String(gpus), '-d', 'all', '-o', 'all');
    expectRight(value, gpus);
    const types = new Set(value.cases.map(({ parameters }) => parameters.dtype));
    expect([...types]).toEqual(hasFloat8 && addsFloat8 ? deviceDtypes : commonDtypes);
  });

  it.each(['scan', 'exscan'])('%s: every type and operation but avg is right', async (name) => {
    const value = await report(name, '-g', String(gpus), '-d', 'all', '-o', 'all');
    expectRight(value, gpus);
    const averages = value.cases.filter(({ parameters }) => parameters.op === 'avg');
    expect(averages).not.toHaveLength(0);
    for (const one of averages) {
      expect(one).toMatchObject({
        status: 'waived',
        reason: expect.stringMatching(/scan.*average/),
      });
    }
    expect(value.cases.filter(hasMeasurement)).toHaveLength(4 * averages.length);
  });

  it.for(['f8e4m3', 'fp8_e5m2'])("nccl-tests' %s is moved and checked", async (name, context) => {
    context.skip(!hasFloat8, 'needs NCCL 2.24');
    const dtype = `float8${name.slice(-4)}`;
    for (const collective of ['all_gather', 'broadcast']) {
      const value = await report(collective, '-g', String(gpus), '-d', name);
      expectRight(value, gpus);
      for (const { parameters } of value.cases) {
        expect(parameters).toMatchObject({ dtype, bytes: 4096 });
      }
    }
    context.skip(!addsFloat8, 'needs GPUs of compute capability 9.0');
    expectRight(await report('reduce_scatter', '-g', String(gpus), '-d', name, '-o', 'avg'), gpus);
  });

  // NCCL itself refuses it: the average of one rank has no kernel for float8.
  it('one rank averages float8', async (context) => {
    context.skip(!hasFloat8 || !addsFloat8, 'needs NCCL 2.24 and compute capability 9.0');
    expectRight(await report('all_reduce', '-g', '1', '-d', 'f8e4m3', '-o', 'avg'), 1);
  });

  it('every root is right', async () => {
    const value = await report('broadcast', '-g', String(gpus), '-r', '-1');
    expectRight(value, gpus);
    expect(new Set(value.cases.map(({ parameters }) => parameters.root)).size).toBe(gpus);
  });

  it('--algorithms: what NCCL logs of its choice', async (context) => {
    context.skip(gpus === 1, 'needs two GPUs');
    for (const collective of ['all_reduce', 'all_gather']) {
      const { code, report } = await reportOf('collectives.js', [
        ...[collective, '-g', String(gpus), '-b', '4K', '-e', '1M', '-f', '256'],
        ...['--iters', '1', '--algorithms'],
      ]);
      expect(code).toBe(0);
      for (const { parameters } of report.cases) {
        expect(parameters).toMatchObject({
          algorithm: expect.stringMatching(/^[A-Z_]+$/) as string,
          protocol: expect.stringMatching(/^(LL|LL128|SIMPLE)$/) as string,
        });
      }
      if (onRealGpus) continue;
      const protocols = report.cases.map(({ parameters }) => parameters.protocol);
      expect(protocols).toEqual(['LL', 'LL', 'SIMPLE', 'SIMPLE']);
    }
  });

  const all = ['-g', String(gpus)];
  it.each([
    // Every GPU with a thread and communicator of its own.
    ['all_reduce', '-t', String(gpus)],
    ['sendrecv', '-t', String(gpus), '-g', '1'],
    // Replays of a graph, in place too.
    ['all_reduce', ...all, '-G', '3'],
    ['all_gather', ...all, '-G', '2'],
    ['exscan', ...all, '-G', '2', '-o', 'min'],
    // Whatever is waited for.
    ...['0', '1', '2', '3'].map((waiting) => ['all_reduce', ...all, '-z', waiting]),
    // Arrays that begin inside their memory.
    ...['all_reduce', 'reduce_scatter', 'alltoall'].flatMap((collective) =>
      ['float32', 'uint8', 'half'].map((type) => [collective, ...all, '-u', '3', '-d', type]),
    ),
    ['all_gather', ...all, '-u', '1', '-R', '1'],
  ])('%s %s %s %s %s is right', async (...argv) => {
    expectRight(await report(...argv), gpus);
  });

  it('-m: the calls of a sample are one group, and right', async () => {
    for (const collective of ['all_reduce', 'alltoall', 'gather', 'scan', 'sendrecv']) {
      const argv = ['collectives', collective, '-g', String(gpus), ...quick, '-m', '7'];
      const value = parseReport((await gradlink([...argv, '--format', 'json'])).stdout);
      expectRight(value, gpus);
      expect(value.cases.find(hasMeasurement)?.iterationsPerSample).toBe(7);
    }
  });

  it('--like-nccl-tests: all calls are one sample, checked by a call of its own', async () => {
    for (const collective of ['all_reduce', 'all_gather', 'sendrecv', 'scan']) {
      const { code, stdout, stderr } = await gradlink([
        ...['collectives', collective, '-g', String(gpus), '--like-nccl-tests'],
        ...['-b', '1K', '-e', '8K', '-f', '8', '--iters', '7', '--format', 'json'],
      ]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const measured = parseReport(stdout).cases.filter(hasMeasurement);
      expect(measured).not.toHaveLength(0);
      for (const { samplesSeconds, iterationsPerSample, check } of measured) {
        expect(samplesSeconds).toHaveLength(1);
        expect(iterationsPerSample).toBe(7);
        expect(check).toMatchObject({ kind: 'exact', wrong: 0, passed: true });
      }
    }
  });

  it('-C, -I and -S: the time of queueing, of samples, and of day', async () => {
    const value = await report('all_reduce', '-g', String(gpus), '-C', '1', '-I', '1', '-S', '1');
    for (const one of value.cases.filter(hasMeasurement)) {
      expect(one.values?.cpuSeconds).toBeGreaterThan(0);
      expect(one.values?.iterationMinSeconds).toBe(one.statistics.minSeconds);
      expect(one.values?.measuredAt).toBeGreaterThan(1.7e9);
    }
  });

  it('-R: registered memory, and what the registration became', async () => {
    const local = await report('reduce_scatter', '-g', String(gpus), '-R', '1');
    expectRight(local, gpus);
    expect(local.cases[0]?.parameters.registration).toBe('local');
    const symmetric = await report('all_reduce', '-g', String(gpus), '-R', '2');
    expectRight(symmetric, gpus);
    // A library without windows makes local of it, and the report says so.
    expect(symmetric.cases[0]?.parameters.registration).toMatch(/^(symmetric|local)$/);
  });

  it('-c 0 checks nothing, --gpus names them', async () => {
    const value = await report('all_reduce', '--gpus', '0', '-c', '0');
    expect(value.cases.map(({ parameters }) => parameters.ranks)).toEqual([1, 1]);
    expect(value.cases.filter(hasMeasurement).every(({ check }) => check.kind === 'none')).toBe(
      true,
    );
    expect(value.gpus?.devices.map(({ ordinal }) => ordinal)).toEqual([0]);
  });

  it('names each rank and its GPU', async () => {
    const { stdout } = await gradlink(['collectives', 'all_reduce', '-g', String(gpus), ...quick]);
    for (let gpu = 0; gpu < gpus; gpu += 1) {
      expect(stdout).toMatch(
        new RegExp(`^# {2}Rank +${gpu} Group {2}0 Pid +\\d+ on \\S+ device gpu:${gpu} \\[`, 'm'),
      );
    }
    expect(stdout).toMatch(/^# .*values : 0 OK$/m);
  });

  it('more GPUs than there are is wrong usage', async () => {
    const { code, stderr } = await gradlink(['collectives', 'all_reduce', '-g', String(gpus + 1)]);
    expect(code).toBe(2);
    expect(stderr).toContain('-g and -t');
  });
});

describe('a job', () => {
  it('names the GPU of each rank where each process sees its own alone', async () => {
    const script = new URL('../../bench/collectives.js', import.meta.url).pathname;
    const args = ['launch', '-n', String(gpus), '--gpu-per-worker', process.execPath, script];
    // Which there are to give, the launcher reads from /proc or from here.
    const {
      CUDA_VISIBLE_DEVICES = gpuDevices()
        .map(({ ordinal }) => ordinal)
        .join(','),
    } = process.env;
    const { code, stdout } = await runScript(
      'gradlink.js',
      [...args, ...['all_reduce', '-g', '1', ...quick]],
      { CUDA_VISIBLE_DEVICES },
    );
    expect(code).toBe(0);
    expect(stdout.match(/^# .*values : 0 OK$/gm)).toHaveLength(1);
    const named = [...stdout.matchAll(/device gpu:0 \[(.+?)\]/g)].map(([, busId]) => busId);
    expect(named.sort()).toEqual(
      gpuDevices()
        .map(({ pciBusId }) => pciBusId)
        .sort(),
    );
  });
});

describe('what goes wrong', () => {
  beforeEach((context) => {
    if (onRealGpus) context.skip('only the stand-ins can be told to fail');
  });
  const small = ['all_reduce', '-g', '2', '-T', '2', ...quick];

  it('-T covers initialisation: a rank that never comes', async () => {
    const { code, stderr } = await runScript('collectives.js', small, {
      GRADLINK_FAKE_FAULTS: 'nccl-never=1',
    });
    expect(code).toBe(1);
    expect(stderr).toContain('ERR_TIMEOUT');
  });

  it.each(['nccl-async=3', 'nccl-stuck=3@1'])('%s ends as an error', async (fault) => {
    const { code, report: value } = await reportOf('collectives.js', small, {
      GRADLINK_FAKE_FAULTS: fault,
    });
    expect(code).toBe(1);
    expect(value.cases.some(({ status }) => status === 'error')).toBe(true);
  });

  it('the limit is that of the links where NCCL has no estimate', async () => {
    const args = ['all_reduce', '-g', '4', '-b', '4M', '-e', '4M', '--iters', '1', '-w', '0'];
    const { report: value } = await reportOf('collectives.js', args, {
      GRADLINK_FAKE_FAULTS: 'nccl-version=22005',
    });
    for (const { limit, verdict } of value.cases.filter(hasMeasurement)) {
      expect(limit?.basis).toBe('18 NVLinks x 26.56 GB/s of a GPU');
      expect(verdict.text).toContain('18 NVLinks');
    }
  });

  it('a library without float8 says so, and all types are then those that it has', async () => {
    const env = { GRADLINK_FAKE_FAULTS: 'nccl-version=22005' };
    const noFloat8 = /NCCL 2\.20\.5.*float8e4m3.*2\.24/;
    const named = await reportOf('collectives.js', [...small, '-d', 'f8e4m3'], env);
    expect(named.code).toBe(1);
    for (const one of named.report.cases) {
      expect(one).toMatchObject({
        status: 'error',
        code: 'ERR_UNSUPPORTED',
        reason: expect.stringMatching(noFloat8) as string,
      });
    }
    const text = await runScript('collectives.js', [...small, '-d', 'f8e4m3'], env);
    expect(text.stdout).toMatch(noFloat8);
    const all = await reportOf('collectives.js', [...small, '-d', 'all'], env);
    expect(all.code).toBe(0);
    expect(new Set(all.report.cases.map(({ parameters }) => parameters.dtype)).size).toBe(10);
  });
});
