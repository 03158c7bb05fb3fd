// What other benchmarks wrote, read as reports: the figures and units of their files.
import { describe, expect, it } from 'vitest';

import { compareRuns } from '../../lib/compare/index.js';
import { parseReport } from '../../lib/results/read-report.js';
import { hasMeasurement, type Report } from '../../lib/results/result.js';
import { allReduceOutput, nvbandwidthOutput } from '../support/rivals.js';

/** Name, parameters, seconds of the samples, bus bandwidth in bytes a second, wrong elements. */
function figures(report: Report): unknown[] {
  return report.cases
    .filter(hasMeasurement)
    .map(({ name, parameters, samplesSeconds, busBandwidth, check }) => ({
      name,
      parameters,
      us: samplesSeconds.map((seconds) => Number((seconds * 1e6).toPrecision(6))),
      busGB: Number((busBandwidth.bytesPerSecond / 1e9).toPrecision(6)),
      wrong: check.wrong,
    }));
}

const read = (value: unknown): Report =>
  parseReport(typeof value === 'string' ? value : JSON.stringify(value), 'FILE');

const place = (time: number, rate: number, nwrong: unknown = 0): object => ({
  time,
  alg_bw: rate,
  bus_bw: rate * 1.75,
  nwrong,
});
const ncclJson = {
  version: 3,
  start_time: '2025-03-01 10:11:12',
  args: ['./build/all_reduce_perf', '-b', '1M', '-g', '8'],
  env: ['PATH=/secret', 'NCCL_ALGO=Ring'],
  config: {
    nthreads: 1,
    ngpus: 8,
    warmup_iters: 5,
    iterations: 20,
    aggregated_iterations: 2,
    devices: [{ rank: 0, hostname: 'h' }],
  },
  results: [
    {
      size: 1048576,
      count: 262144,
      type: 'float',
      redop: 'sum',
      root: '    -1',
      out_of_place: place(10.5, 99.86),
      in_place: place(11.25, 93.2, null),
      actual_iterations: 20,
      experiment_name: '',
    },
    {
      size: 2097152,
      count: 1048576,
      type: 'half',
      redop: 'sum',
      root: '-1',
      out_of_place: null,
      in_place: place(12.5, 167.77, '3.000000'),
      in_place_per_iter: { times_us: [12, 13, 14] },
    },
  ],
};

describe("nccl-tests' JSON", () => {
  it('has its times in microseconds and its bandwidths in GB/s', () => {
    const report = read(ncclJson);
    const parameters = { count: 262144, dtype: 'float32', op: 'sum', root: null, ranks: 8 };
    const first = { ...parameters, bytes: 1048576, shared: false };
    const half = { ...first, bytes: 2097152, count: 1048576, dtype: 'float16' };
    expect(figures(report)).toEqual([
      {
        name: 'all_reduce',
        parameters: { ...first, placement: 'out-of-place' },
        us: [10.5],
        busGB: 174.755,
        wrong: 0,
      },
      {
        name: 'all_reduce',
        parameters: { ...first, placement: 'in-place' },
        us: [11.25],
        busGB: 163.1,
        wrong: null,
      },
      {
        name: 'all_reduce',
        parameters: { ...half, placement: 'in-place' },
        us: [12, 13, 14],
        busGB: 293.598,
        wrong: 3,
      },
    ]);
    expect(report.cases.map(({ status }) => status)).toEqual(['ok', 'ok', 'error']);
    expect(report.cases[0]).toMatchObject({ iterationsPerSample: 40, warmupIterations: 5 });
  });

  it('tells whose it is, and no variable beyond those that reports show', () => {
    const { run, environment } = read(ncclJson);
    expect(run).toMatchObject({
      tool: 'nccl-tests',
      program: 'nccl-tests',
      commandLine: ncclJson.args,
      startedAt: '2025-03-01T10:11:12Z',
    });
    expect(environment.variables).toEqual({ NCCL_ALGO: 'Ring' });
  });

  it('is compared with another of its kind', () => {
    const side = (name: string): { name: string; reports: Report[] } => ({
      name,
      reports: [read(ncclJson)],
    });
    const { base, cases } = compareRuns(side('a'), side('b'));
    expect(base.program).toBe('nccl-tests');
    expect(cases.map(({ change }) => change)).toEqual(['same', 'same', 'same']);
  });
});

describe('tables of text', () => {
  it("are nccl-tests', with what its comments say", () => {
    const devices = [
      '#  Rank  0 Group  0 Pid 1 on h device  0',
      '#  Rank  1 Group  0 Pid 1 on h device  1',
    ];
    const text = `${devices.join('\n')}\n${allReduceOutput(65536, 1.5, 1.25, 2)}`;
    const tagged = text.replaceAll(/^/gm, '[1,0]<stdout>:');
    for (const one of [text, tagged]) {
      const report = read(one);
      expect(report.run).toMatchObject({ tool: 'nccl-tests', program: 'nccl-tests 2.19.6' });
      expect(figures(report)).toMatchObject([
        { name: 'all_reduce', us: [43.69], busGB: 2.25, wrong: 2 },
        { name: 'all_reduce', us: [52.43], busGB: 1.88, wrong: 2 },
      ]);
      expect(report.cases[0]).toMatchObject({
        parameters: { bytes: 65536, count: 16384, ranks: 2, placement: 'out-of-place' },
        iterationsPerSample: 20,
        warmupIterations: 5,
      });
    }
  });

  it("are older nccl-tests', whose error is no count", () => {
    const row = '4096 1024 float sum 51.20 0.08 0.14 1e-06 50.15 0.08 0.15 0e+00';
    expect(figures(read(row))).toMatchObject([{ wrong: null }, { wrong: null }]);
  });

  it("are OSU's: latencies in us, bandwidths in MB/s", () => {
    const latency = read(
      '# OSU MPI Allreduce Latency Test v7.3\n# Datatype: MPI_FLOAT.\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n4     2.35     2.10     3.20    1000\n1048576     812.10  800.00  900.00  100\n',
    );
    expect(latency.run).toMatchObject({ tool: 'osu', program: 'osu 7.3' });
    expect(figures(latency)).toMatchObject([
      {
        name: 'osu mpi allreduce latency',
        parameters: { bytes: 4, dtype: 'MPI_FLOAT' },
        us: [2.35],
      },
      { parameters: { bytes: 1048576 }, us: [812.1], busGB: 1.29119 },
    ]);
    expect(latency.cases[0]).toMatchObject({
      values: { minLatencySeconds: 2.1e-6, maxLatencySeconds: 3.2e-6 },
    });
    const rate = read(
      '# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n# [ pairs: 2 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s\n1024   2000.00   1953125.00\n',
    );
    expect(figures(rate)).toMatchObject([{ us: [0.512], busGB: 2 }]);
    expect(rate.cases[0]).toMatchObject({ values: { messagesPerSecond: 1953125 } });
    const wrong = read(
      '# Size       Avg Latency(us)        Validation\n4    2.35    Pass\n8    2.40    Fail',
    );
    expect(wrong.cases.map(({ status }) => status)).toEqual(['ok', 'error']);
  });

  it("are nvbandwidth's", () => {
    const report = read(nvbandwidthOutput('host_to_device_memcpy_ce', 55.25));
    expect(report.run).toMatchObject({ tool: 'nvbandwidth', program: 'nvbandwidth v0.8' });
    expect(figures(report)).toMatchObject([
      {
        name: 'host_to_device_memcpy_ce',
        parameters: { from: 'host', to: 'gpu:0', quantity: 'bandwidth' },
        busGB: 55.25,
      },
    ]);
  });
});

describe("nvbandwidth's JSON", () => {
  const testcase = (name: string, matrix: unknown, caption: string): object => ({
    name,
    status: 'Passed',
    bandwidth_matrix: matrix,
    bandwidth_description: caption,
  });
  const of = (...testcases: object[]): Report =>
    read({ nvbandwidth: { version: 'v0.8', testcases } });

  it('says which way data goes, which its captions do not', () => {
    const pairs = [
      ['N/A', '100'],
      ['200', 'N/A'],
    ];
    const caption = 'memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)';
    const report = of(
      testcase('device_to_device_memcpy_read_ce', pairs, caption),
      testcase('device_to_device_memcpy_write_ce', pairs, caption),
      testcase(
        'device_to_host_memcpy_ce',
        [['50', '60']],
        'memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)',
      ),
    );
    const ways = report.cases
      .filter(hasMeasurement)
      .map(
        ({ parameters: { from, to }, busBandwidth }) =>
          `${String(from)} ${String(to)} ${String(Math.round(busBandwidth.bytesPerSecond / 1e9))}`,
      );
    expect(ways).toEqual([
      ...['gpu:1 gpu:0 100', 'gpu:0 gpu:1 200', 'gpu:0 gpu:1 100', 'gpu:1 gpu:0 200'],
      ...['gpu:0 host 50', 'gpu:1 host 60'],
    ]);
  });

  it('has three matrices of both directions, in one', () => {
    const matrix = ['1', '2', '3'].map((value) => [
      ['N/A', value],
      [value, 'N/A'],
    ]);
    const report = of(
      testcase(
        'device_to_device_bidirectional_memcpy_read_ce',
        matrix.flat(),
        'memcpy CE CPU(row) <-> GPU(column) Total bandwidth (GB/s)',
      ),
    );
    expect(report.cases.map(({ parameters }) => parameters)).toMatchObject([
      ...[
        { from: 'gpu:1', to: 'gpu:0' },
        { from: 'gpu:0', to: 'gpu:1' },
      ],
      ...[
        { from: 'gpu:0', to: 'gpu:1' },
        { from: 'gpu:1', to: 'gpu:0' },
      ],
      ...[{ figure: 'total' }, { figure: 'total' }],
    ]);
  });

  it('has latencies in ns, and tests that did not run', () => {
    const caption = 'memory latency SM CPU(row) <-> GPU(column) (ns)';
    const report = of(
      testcase('host_device_latency_sm', [['772.58']], caption),
      { name: 'a', status: 'Waived' },
      { name: 'b', status: 'Error', error: 'no memory' },
    );
    expect(figures(report)).toMatchObject([{ us: [0.77258], parameters: { quantity: 'latency' } }]);
    expect(report.cases.map(({ status }) => status)).toEqual(['ok', 'waived', 'error']);
  });
});

describe('what is none of these', () => {
  const none = ['hello', '4 2.35', '{}', '{"results":[]}', '{"results":{},"config":{}}'];
  it.each([...none, '{"nvbandwidth":{}}', '[1,2]'])('%j is refused', (text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }));
  });

  it('is shown as it was written, harmless', () => {
    const { name } = read({
      nvbandwidth: { testcases: [{ name: 'a\u001b[31m', status: 'Waived' }] },
    }).cases[0]!;
    expect(name).toBe('a\\u001b[31m');
  });
});
