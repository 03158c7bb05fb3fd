import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, describe, expect, it, vi } from 'vitest';

import '../support/known-limits.js';
import { GradlinkError } from '../../lib/errors.js';
import { collectives, type CaseResult, type Report } from '../../lib/measure/index.js';
import { native } from '../../lib/native/load.js';
import { renderReport } from '../../lib/report/index.js';
import { hasMeasurement } from '../../lib/results/result.js';
import { gradlink } from '../support/cli.js';
import { parseReport } from '../support/measure.js';
import { words } from '../support/words.js';
import { folderOfAllTests } from '../support/folders.js';

let scratch = '';
folderOfAllTests((made) => (scratch = made));
afterEach(() => {
  vi.restoreAllMocks();
});

const quick = ['--iters', '3', '-w', '1', '-m', '1'];
const run = (...argv: string[]) => gradlink(['collectives', ...argv, ...quick]);

/** The lines that are data, as columns. */
function rows(stdout: string): string[][] {
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => line.replaceAll(' %', '%').trim().split(/ +/));
}

async function report(
  ...argv: string[]
): Promise<{ code: number; cases: readonly CaseResult[]; value: Report }> {
  const { code, stdout } = await run(...argv, '--format', 'json');
  const value = parseReport(stdout);
  return { code, cases: value.cases, value };
}

describe('the table', () => {
  it("has nccl-tests' columns, ranks above and the sums below", async () => {
    const { code, stdout, stderr } = await run(...words('all_reduce -n 4 -b 8 -e 128 -f 4'));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^# gradlink \S+: collectives all_reduce -n 4 /);
    for (const rank of [0, 1, 2, 3]) {
      expect(stdout).toMatch(
        new RegExp(`^# {2}Rank {2}${String(rank)} Group {2}0 Pid +${String(process.pid)} on `, 'm'),
      );
    }
    expect(stdout).toMatch(
      /^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong +out +in$/m,
    );
    expect(rows(stdout).map((row) => row.slice(0, 5))).toEqual([
      ['8', '2', 'float32', 'sum', '-1'],
      ['32', '8', 'float32', 'sum', '-1'],
      ['128', '32', 'float32', 'sum', '-1'],
    ]);
    for (const row of rows(stdout)) expect([row.length, row[8], row[12]]).toEqual([15, '0', '0']);
    expect(stdout).toMatch(/^# .*bounds values : 0 OK$/m);
    expect(stdout).toMatch(/^# Avg .*bandwidth {4}: \d+\.\d{4}/m);
  });

  it('draws a bar on a terminal that nobody reads lines on, and nowhere else', async () => {
    const argv = ['collectives', 'all_reduce', '-b', '8', '-e', '64', '-f', '2', ...quick];
    expect((await gradlink(argv)).stderr).toBe('');
    const { stdout, stderr } = await gradlink(argv, { terminal: true });
    expect(stderr).toMatch(/sizes, .* s left/);
    expect(rows(stdout)).toHaveLength(4);
    const single = [...argv.slice(0, 2), '-b', '8', '-e', '8', ...quick];
    expect((await gradlink(single, { terminal: true })).stderr).toBe('');
  });

  it('counts as nccl-tests does: busbw by the ranks, chunks by 16 bytes', async () => {
    const { cases } = await report('all_gather', '-n', '3', '-b', '1000', '-e', '1000');
    const [first] = cases;
    // 1000 / 3 = 333.3 bytes a rank, rounded down to 320: 80 floats, 960 bytes together.
    expect(first?.parameters).toMatchObject({ bytes: 960, count: 80, placement: 'out-of-place' });
    if (first?.status !== 'ok') throw new Error('the case did not run');
    const { algorithmBandwidth, busBandwidth, statistics } = first;
    expect(algorithmBandwidth.bytesPerSecond).toBeCloseTo(960 / statistics.medianSeconds, 0);
    expect(busBandwidth.bytesPerSecond / algorithmBandwidth.bytesPerSecond).toBeCloseTo(2 / 3, 12);
  });

  it('steps by addition while the factor is 1, and defaults to 32M', async () => {
    const stepped = await run('broadcast', '-b', '1K', '-e', '3K', '-i', '1K');
    expect(rows(stepped.stdout).map(([size]) => size)).toEqual(['1024', '2048', '3072']);
    const { value } = await report('broadcast', '-c', '0');
    expect(value.cases.map(({ parameters }) => parameters['bytes'])).toEqual([2 ** 25, 2 ** 25]);
  });

  it('repeats itself with -N', async () => {
    const { stdout } = await run('reduce', '-b', '64', '-e', '64', '-N', '3');
    expect(rows(stdout)).toHaveLength(3);
  });
});

describe('what is run', () => {
  it.each(collectives)('%s, right on every rank, in place where there is such', async (name) => {
    const ranks = name === 'hypercube' ? '4' : '3';
    const { code, cases } = await report(name, '-n', ranks, '-b', '4K', '-e', '4K');
    expect(code).toBe(0);
    const outOnly = ['alltoall', 'alltoallv', 'sendrecv'].includes(name);
    expect(cases.map(({ parameters, status }) => [parameters['placement'], status])).toEqual([
      ['out-of-place', 'ok'],
      ['in-place', outOnly ? 'waived' : 'ok'],
    ]);
    for (const one of cases) {
      if (one.status === 'ok')
        expect(one.check).toMatchObject({ kind: 'exact', wrong: 0, passed: true });
    }
  });

  it('waives a hypercube of ranks that are no power of two', async () => {
    const { code, cases } = await report('hypercube', '-n', '3', '-b', '64', '-e', '64');
    // Nothing ran.
    expect(code).toBe(1);
    const argv = ['collectives', 'hypercube', '-n', '3', '-b', '64', '-e', '64'];
    const { stdout } = await gradlink(argv);
    expect(stdout).not.toMatch(/\bOK$|bandwidth +:/m);
    expect(stdout.match(/3 ranks .*\bpower\b/g)).toHaveLength(3);
    for (const one of cases)
      expect(one).toMatchObject({
        status: 'waived',
        reason: expect.stringMatching(/^3 ranks .*\bpower\b/) as string,
      });
  });

  it('waives what a collective has no operation for', async () => {
    const { code, cases } = await report('scan', '-n', '3', '-b', '64', '-e', '64', '-o', 'all');
    expect(code).toBe(0);
    for (const { parameters, status } of cases) {
      expect(status).toBe(parameters['op'] === 'avg' ? 'waived' : 'ok');
    }
    expect(cases).toHaveLength(10);
  });

  it("takes nccl-tests' names of programs and types", async () => {
    const { cases } = await report('all_reduce_perf', '-d', 'half', '-b', '64', '-e', '64');
    expect(cases[0]).toMatchObject({
      name: 'all_reduce',
      parameters: { dtype: 'float16', count: 32 },
    });
  });

  it('all types and all operations', async () => {
    const { code, cases } = await report(...words('all_reduce -d all -o all -b 256 -e 256'));
    expect(code).toBe(0);
    expect(new Set(cases.map(({ parameters }) => parameters['dtype'])).size).toBe(11);
    expect(new Set(cases.map(({ parameters }) => parameters['op']))).toEqual(
      new Set(['sum', 'prod', 'min', 'max', 'avg']),
    );
    expect(cases).toHaveLength(11 * 5 * 2);
  });

  it('every root with -r -1', async () => {
    const { cases } = await report('gather', '-n', '3', '-r', '-1', '-b', '96', '-e', '96');
    expect(cases.map(({ parameters }) => parameters['root'])).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it('ranks with threads of their own, and shared arrays', async () => {
    const { code, cases } = await report(
      ...words('all_reduce -n 3 --threads --shared -b 1M -e 1M'),
    );
    expect(code).toBe(0);
    expect(cases[0]?.parameters).toMatchObject({ ranks: 3, shared: true });
  });

  it('as many samples, calls and warm-ups as said, or a batch by size', async () => {
    const { cases } = await report('all_reduce', '-b', '64', '-e', '64');
    expect(cases[0]).toMatchObject({
      iterationsPerSample: 1,
      warmupIterations: 1,
      statistics: { samples: 3 },
    });
    const { stdout } = await gradlink(words('collectives all_reduce -b 64 -e 64 --format json'));
    expect((JSON.parse(stdout) as Report).cases[0]).toMatchObject({
      iterationsPerSample: 100,
      statistics: { samples: 20 },
    });
  });

  it('without a check when told so', async () => {
    const { cases } = await report('all_reduce', '-c', '0', '-b', '64', '-e', '64');
    expect(cases[0]).toMatchObject({ check: { kind: 'none', passed: true } });
  });
});

describe('reports', () => {
  it('go to a file as JSON with -J, while the table is shown', async () => {
    const file = join(scratch, 'run.data');
    const { code, stdout } = await run('all_reduce', '-b', '64', '-e', '64', '-J', file);
    expect(code).toBe(0);
    expect(rows(stdout)).toHaveLength(1);
    const written = JSON.parse(readFileSync(file, 'utf8')) as Report;
    expect(written.cases).toHaveLength(2);
    expect(written.run.options).toMatchObject({ collective: 'all_reduce', ranks: 2, iters: 3 });
  });
});

describe('failures', () => {
  const sizes = ['-b', '64', '-e', '256', '-f', '2'];

  it('wrong results are exit status 1, and are counted', async () => {
    const original = native().timeCollective.bind(native());
    vi.spyOn(native(), 'timeCollective').mockImplementation(async (communicator, options) => ({
      ...(await original(communicator, options)),
      wrongAfter: options.inPlace ? 5 : 0,
    }));
    const { code, stdout } = await run('all_reduce', ...sizes);
    expect(code).toBe(1);
    expect(rows(stdout).map((row) => [row[8], row[12]])).toEqual(Array(3).fill(['0', '5']));
    expect(stdout).toMatch(/^# .*bounds values : 15 FAILED$/m);
  });

  it('a call that fails is recorded, and the sweep goes on', async () => {
    const original = native().timeCollective.bind(native());
    vi.spyOn(native(), 'timeCollective').mockImplementation((communicator, options) =>
      options.count === 32
        ? Promise.reject(new GradlinkError('ERR_OUT_OF_MEMORY', 'no room', { usable: true }))
        : original(communicator, options),
    );
    const { code, cases } = await report('all_reduce', ...sizes);
    expect(code).toBe(1);
    expect(cases.map(({ status }) => status)).toEqual(['ok', 'ok', 'error', 'error', 'ok', 'ok']);
    expect(cases[2]).toMatchObject({ reason: 'no room', code: 'ERR_OUT_OF_MEMORY' });
  });

  it('a size of 0 is refused, not measured as another', async () => {
    const { code, stdout } = await run('all_reduce', '-b', '0', '-e', '8');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('a lost communicator ends the sweep', async () => {
    vi.spyOn(native(), 'timeCollective').mockImplementation(() =>
      Promise.reject(new GradlinkError('ERR_PEER_LOST', 'rank 1 is gone', { rank: 1 })),
    );
    const { code, cases } = await report('all_reduce', ...sizes);
    expect(code).toBe(1);
    expect(cases.length).toBeLessThanOrEqual(2);
    expect(cases[0]).toMatchObject({ status: 'error', code: 'ERR_PEER_LOST' });
  });
});

describe('-I, -K and -S', () => {
  it('a line for each case, with the samples that count and the time of day', async () => {
    const { code, stdout } = await gradlink([
      ...words('collectives all_gather -n 2 -b 1K -e 1K --iters 9 -p 0'),
      ...words('-I 1 -K 4 -S 1 --format json'),
    ]);
    expect(code).toBe(0);
    const report = parseReport(stdout);
    for (const one of report.cases.filter(hasMeasurement)) {
      const kept = [...one.samplesSeconds].slice(4).sort((a, b) => a - b);
      expect(one.values).toMatchObject({
        iterationMinSeconds: kept[0],
        iterationMaxSeconds: kept[4],
        iterationP99Seconds: kept[4],
      });
    }
    const text = renderReport(report, 'text');
    expect(text).toMatch(
      /^# out-of-place: i_min [\d.]+, i_max [\d.]+, i_p99 [\d.]+, i_cv% [\d.]+, at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/m,
    );
    expect(text).toMatch(/^# in-place: i_min/m);
  });
});

describe('bad usage is refused with 2', () => {
  it.each([
    [['all_reduse'], 'collective', 'all_reduce, all_gather'],
    [['all_reduce', '-o', 'mulsum'], '-o', 'sum, prod, min, max, avg, all'],
    [['all_reduce', '-d', 'float4'], '-d', 'f8e5m2, fp8_e4m3, fp8_e5m2, all'],
    [['all_reduce', '-d', 'fp8_e4m3'], '-d', 'Add -g GPUS'],
    [['all_reduce', '-n', '0'], '-n', 'at least 1'],
    [['all_reduce', '-n', '5000'], '-n', '--iters 5000'],
    [['all_reduce', '-b', '2M', '-e', '1M'], '-e', '2097152 bytes of -b'],
    [['all_reduce', '-b', 'big'], '-b', '8, 64K, 128M or 1G'],
    [['all_reduce', '-b', '1', '-e', '1M', '-i', '1'], '-f', '4096 sizes'],
    [['all_reduce', '-e', '1T', '-f', '2'], '-e', 'fit into'],
    [['broadcast', '-n', '2', '-r', '2'], '-r', 'below 2'],
    [['all_reduce', '-f', '0'], '-f', 'from 1'],
    [['all_reduce', '-c', '2'], '-c', 'from 0 to 1'],
    [['all_reduce', '-a', '4'], '-a', 'from 0 to 3'],
    [['all_reduce', '-T', '0'], '-T', 'greater than 0'],
    [['all_reduce', '-g', '0'], '-g', 'from 1 to 1024'],
    [['all_reduce', '-g', '2', '--ranks', '2'], '--ranks', 'host memory'],
    [['all_reduce', '-g', '2', '--shared'], '--shared', 'host memory'],
    [['all_reduce', '-g', '2', '-G', '1', '-z', '1'], '-G and -z', 'cannot be combined'],
    [['all_reduce', '-G', '2'], '-G', 'needs ranks on GPUs'],
    [['all_reduce', '--like-nccl-tests'], '--like-nccl-tests', 'needs ranks on GPUs'],
    ...['-m', '-G', '-z', '-I'].map((other): [string[], string, string] => [
      ['all_reduce', '-g', '2', '--like-nccl-tests', other, '1'],
      `${other} and --like-nccl-tests`,
      'cannot be combined',
    ]),
    [['all_reduce', '-R', '1'], '-R', 'needs ranks on GPUs'],
    [['all_reduce', '-z', '4'], '-z', 'from 0 to 3'],
    [['all_reduce', '-C', '1'], '-C', 'needs ranks on GPUs'],
    [['all_reduce', '-u', '1'], '-u', 'needs ranks on GPUs'],
    [['all_reduce', '-K', '1'], '-K', 'needs -I 1'],
    [['all_reduce', '-I', '1', '-K', '20'], '-K', 'the 20 samples'],
    [['all_reduce', '-g', '2', '-G', '1', '-I', '1'], '-I and -G', 'cannot be combined'],
    [['all_reduce', '-p', '1'], '-p', 'use -t'],
    [['all_reduce', '-y', '1'], '-y', 'null stream'],
    [['all_reduce', '-x', '1'], '-x', 'NCCL_CTA_POLICY'],
    [['all_reduce', '-D', '2'], '-D', 'device API'],
    [['all_reduce', '-V', '16'], '-V', '-D'],
    [['all_reduce', '-M', '1'], '-M', 'nvidia-smi'],
    [['all_reduce', '-z', '1'], '-z', 'needs ranks on GPUs'],
    [['all_reduce', '--output', '/nonexistent/run.json'], '--output', 'got /nonexistent/run.json'],
    [['all_reduce', '-J', '/nonexistent/run.json'], '--output', 'got /nonexistent/run.json'],
  ])('%j', async (argv, option, message) => {
    const { code, stdout, stderr } = await gradlink(['collectives', ...argv]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^gradlink: /);
    expect(stderr).toContain(option);
    expect(stderr).toContain(message);
  });
});
