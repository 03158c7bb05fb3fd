// What `gradlink p2p` says of machines that are not as they should be. Real GPUs have no settings for that.
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { run as runP2p } from '../../lib/measure/p2p/p2p-run.js';
import { native } from '../../lib/native/load.js';
import { renderReport } from '../../lib/report/index.js';
import { hasMeasurement, type CaseResult, type Measurement } from '../../lib/results/result.js';
import { reportOf, runScript } from '../support/gpu-commands.js';
import { expectSample } from '../support/samples.js';
import { fourGpus, onRealGpus } from './setup/fakes.js';

Object.assign(process.env, fourGpus);

const quick = ['--buffer-size', '1', '--samples', '1', '--loop-count', '1'];

/** Each pair takes its time, and three GPUs have a pair of each kind. */
const three = ['--gpus', '0,1,2'];

type Measured = CaseResult & Measurement;

async function measure(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly cases: readonly Measured[] }> {
  const { code, report } = await reportOf('p2p.js', [...quick, ...args], env);
  return { code, cases: report.cases.filter(hasMeasurement) };
}

const between = (cases: readonly Measured[], from: string, to: string): Measured => {
  const found = cases.find(({ parameters }) => parameters.from === from && parameters.to === to);
  if (found === undefined) throw new Error(`nothing from ${from} to ${to}`);
  return found;
};
const gigabytes = ({ algorithmBandwidth }: Measured): number =>
  Math.round(algorithmBandwidth.bytesPerSecond / 1e8) / 10;

beforeEach((context) => {
  if (onRealGpus) context.skip('only the stand-ins can be told to be slow or broken');
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a slow link', () => {
  it('is named, and no other is, as docs/p2p.md shows', async () => {
    const { code, stdout } = await runScript('p2p.js', [...quick, '--samples', '3', '-t', '5'], {
      GRADLINK_FAKE_LINKS: '0-1=25e9',
    });
    expect(code).toBe(0);
    const slow = stdout.slice(stdout.indexOf('# Slow:')).trim().split('\n').slice(1);
    expect(slow.map((line) => line.slice(4, line.indexOf(',')))).toEqual([
      'gpu:0 to gpu:1',
      'gpu:1 to gpu:0',
    ]);
    expect(slow[0]).toContain('25.00 GB/s, 16 % of 6 NVLinks x 26.56 GB/s');
    expect(slow[0]).toContain('only gpu:0 to gpu:1 is slow');
    expectSample('docs/p2p.md', 'device_to_device_memcpy_write_ce:', stdout);
  });

  const ways = ['read_ce', 'write_ce', 'read_sm', 'write_sm'];
  const hostNames = ['ce', 'sm'].flatMap((engine) =>
    ['host_to_device', 'device_to_host'].flatMap((way) => [
      `${way}_memcpy_${engine}`,
      `${way}_bidirectional_memcpy_${engine}`,
    ]),
  );

  it('of one direction is found in that direction, with the other in use too', async () => {
    const [alone, both] = ['', 'bidirectional_'].map((how) =>
      ways.map((way) => `device_to_device_${how}memcpy_${way}`),
    ) as [string[], string[]];
    const { cases } = await measure([...three, '-t', ...alone, ...both, ...hostNames], {
      GRADLINK_FAKE_LINKS: '0>2=30e9,1>0=36e9,host>1=10e9',
    });
    const named = (name: string) => cases.filter((one) => one.name === name);
    for (const name of alone) {
      const own = named(name);
      expect(gigabytes(between(own, 'gpu:0', 'gpu:2')), name).toBe(30);
      expect(gigabytes(between(own, 'gpu:2', 'gpu:0')), name).toBe(144);
      const poor = own.filter(({ verdict }) => verdict.level === 'poor');
      expect(poor.map(({ parameters: { from, to } }) => `${String(from)} ${String(to)}`)).toEqual([
        'gpu:0 gpu:2',
        'gpu:1 gpu:0',
      ]);
      const { by } = between(own, 'gpu:0', 'gpu:2').parameters;
      expect(by).toBe(name.includes('read') ? 'gpu:2' : 'gpu:0');
    }
    for (const name of both) {
      const [single, total] = ['one', 'total'].map((figure) =>
        named(name).filter(({ parameters }) => parameters.figure === figure),
      ) as [Measured[], Measured[]];
      expect(gigabytes(between(single, 'gpu:1', 'gpu:0')), name).toBe(36);
      expect(gigabytes(between(single, 'gpu:0', 'gpu:1')), name).toBe(144);
      // As nvbandwidth has it: what each reaches by its own time, and every pair in both orders.
      expect(gigabytes(between(total, 'gpu:0', 'gpu:1')), name).toBe(180);
      expect(gigabytes(between(total, 'gpu:1', 'gpu:0')), name).toBe(180);
      expect(gigabytes(between(total, 'gpu:1', 'gpu:2')), name).toBe(288);
      expect([single.length, total.length], name).toEqual([6, 6]);
    }
    for (const name of hostNames) {
      const rate = (gpu: string) =>
        gigabytes(
          name.startsWith('host')
            ? between(named(name), 'host', gpu)
            : between(named(name), gpu, 'host'),
        );
      // What both ways leave to each other: the stand-in's, which is real machines'.
      const [slow, other] = !name.includes('bidirectional')
        ? [10, 55]
        : name.endsWith('ce')
          ? [7.2, 39.6]
          : [6, 33];
      const wanted = [name, name.startsWith('host') ? slow : other, other];
      expect([name, rate('gpu:1'), rate('gpu:2')]).toEqual(wanted);
    }
  });

  it('is in every sum that goes over it', async () => {
    const env = { GRADLINK_FAKE_LINKS: '3>0=24e9' };
    const { cases } = await measure(['--gpus', '0,2,3', '-p', 'all_to_one', 'one_to_all'], env);
    for (const result of cases) {
      const { name, parameters } = result;
      const over = name.startsWith('all') ? parameters.to === 'gpu:0' : parameters.from === 'gpu:3';
      // Two copies, done when the slower is.
      expect([name, parameters.flow, gigabytes(result)]).toEqual([
        name,
        parameters.flow,
        over ? 48 : 288,
      ]);
    }
  });
});

describe('a link that nothing is wrong with', () => {
  const hostCases = ['-t', '0', '1', '2', '3', '8', '9', '10', '11', '16', '17', '18', '19'];
  it('to the host is good, with the opposite beside it too', async () => {
    const { cases } = await measure(hostCases, { GRADLINK_FAKE_GPUS: '2' });
    expect(cases).toHaveLength(24);
    const judged = cases.filter(({ verdict }) => verdict.level !== 'good');
    expect(judged.map(({ name, parameters, verdict }) => [name, parameters.flow, verdict])).toEqual(
      [],
    );
  });

  it('is not judged against PCIe: NVLink-C2C, and NVLinks of which NVML says not where they lead', async () => {
    const env = { GRADLINK_FAKE_FAULTS: 'c2c,nvlink-remote=unknown' };
    const { cases } = await measure(['-t', '0', '1', '4', '5'], env);
    expect(cases.length).toBeGreaterThanOrEqual(2 * 4 + 12);
    for (const { limit, verdict } of cases) {
      expect(limit).toBeNull();
      expect(verdict).toMatchObject({ level: 'good', text: expect.not.stringMatching(/PCIe/) });
    }
  });
});

describe('a likely cause', () => {
  it('names NVLinks that are down, PCIe that is narrow while it is busy or both ways, and clocks', async () => {
    const { cases } = await measure(['-t', '0', '2', '5'], {
      GRADLINK_FAKE_FAULTS: 'links-down=0-1:2,pcie-width=2:4,throttle=3',
      GRADLINK_FAKE_DUPLEX: '0.4',
    });
    const ofFirst = cases.filter(
      ({ parameters: { from, to } }) => `${from} ${to}` === 'host gpu:0',
    );
    expect(ofFirst.map(({ verdict: { level } }) => level)).toEqual(['good', 'poor']);
    for (const [from, to, level, cause] of [
      ['gpu:0', 'gpu:1', 'fair', /^2 of 6 NVLinks.*gpu:0.*gpu:1/],
      ['host', 'gpu:2', 'poor', /PCIe link.*gpu:2.*generation 5 x4/],
      ['gpu:0', 'gpu:3', 'fair', /clocks.*gpu:3.*softwarePowerCap, hardwareThermal/],
    ] as const) {
      const likelyCause = expect.stringMatching(cause) as string;
      expect(between(cases, from, to).verdict).toMatchObject({ level, likelyCause });
    }
  });

  it('says that a pair without peer access is staged, and waives kernels', async () => {
    const env = { GRADLINK_FAKE_PEERS: '0-1' };
    const { code, report } = await reportOf('p2p.js', [...quick, '-t', '4', '20'], env);
    expect(code).toBe(0);
    const { verdict } = between(report.cases.filter(hasMeasurement), 'gpu:2', 'gpu:3');
    expect(verdict.level).toBe('poor');
    expect(verdict.likelyCause).toMatch(/gpu:2 and gpu:3.*host memory/);
    const waived = report.cases.filter(({ status }) => status === 'waived');
    expect(waived).toHaveLength(10);
    for (const result of waived)
      expect(result).toMatchObject({ reason: expect.stringMatching(/peer access/) });
  });

  it.each([true, false])(
    'holds nothing up where copies are staged, which are few and small, access: %s',
    async (access) => {
      const addon = native();
      const copy = addon.gpuCopies.bind(addon);
      const asked: [string, number[]][] = [];
      vi.spyOn(addon, 'gpuPeer').mockReturnValue({ access, path: 'NODE', performanceRank: null });
      vi.spyOn(addon, 'gpuCopies').mockImplementation((options) => {
        const { from, to } = options.copies[0]!;
        const where = `${from}>${to}${options.peerAccess ? '' : ', off'}`;
        asked.push([where, [options.bytes, options.loops]]);
        return copy({ ...options, bytes: 1024, loops: 1 });
      });
      const cases = ['p2p_off_unidirectional', 'device_to_device_memcpy_write_ce'];
      await runP2p({ cases, gpus: [0, 1], bytes: 256e6, samples: 1, loops: 16 });
      const few = [160e6, 5];
      const all = [256e6, 16];
      const direct = access ? all : few;
      const matrix = { '0>0, off': all, '0>1, off': few, '1>0, off': few, '1>1, off': all };
      expect(Object.fromEntries(asked)).toEqual({ ...matrix, '0>1': direct, '1>0': direct });
    },
  );

  it('names errors that were counted meanwhile, however fast the copies were', async () => {
    const { cases } = await measure(['-t', '5'], { GRADLINK_FAKE_FAULTS: 'link-errors=0' });
    const { verdict } = between(cases, 'gpu:0', 'gpu:1');
    expect(verdict.level).toBe('fair');
    expect(verdict.likelyCause).toMatch(/^gpu:0 .*\b\d+ NVLink errors?/);
    const untouched = cases.filter(({ parameters: { from, to } }) =>
      [from, to].every((place) => place !== 'gpu:0'),
    );
    expect(untouched).toHaveLength(6);
    expect(untouched.every(({ verdict: { level } }) => level === 'good')).toBe(true);
  });

  it('is still looked for without NVML, by comparing pairs', async () => {
    const { cases } = await measure(['-t', '5'], {
      GRADLINK_FAKE_FAULTS: 'nvml-absent',
      GRADLINK_FAKE_LINKS: '0>1=40e9',
    });
    expect(cases.every(({ limit }) => limit === null)).toBe(true);
    expect(between(cases, 'gpu:0', 'gpu:1').verdict).toMatchObject({
      level: 'poor',
      likelyCause: expect.stringMatching(/only gpu:0 to gpu:1/),
    });
    expect(between(cases, 'gpu:1', 'gpu:0').verdict.level).toBe('good');
  });
});

describe('the matrix', () => {
  it('shows what peer access is worth, and the time of small copies by the GPU and by the host', async () => {
    // A simulated second for 16 bytes one way, which no host waits.
    const env = { GRADLINK_FAKE_LINKS: '0>1=16,1>2=80e9' };
    const { code, report } = await reportOf('p2p.js', [...quick, ...three, '--matrix'], env);
    expect(code).toBe(0);
    const cases = report.cases.filter(hasMeasurement);
    const of = (name: string): Measured[] => cases.filter((one) => one.name === name);
    expect(gigabytes(between(of('p2p_on_unidirectional'), 'gpu:1', 'gpu:2'))).toBe(80);
    expect(gigabytes(between(of('p2p_on_unidirectional'), 'gpu:2', 'gpu:1'))).toBe(144);
    // Up and down at 55 GB/s, one after the other.
    expect(gigabytes(between(of('p2p_off_unidirectional'), 'gpu:2', 'gpu:1'))).toBe(27.5);
    expect(gigabytes(between(of('p2p_off_bidirectional'), 'gpu:2', 'gpu:1'))).toBe(55);
    // Every ordered pair and each GPU by itself, until the last copy has ended, as the peer test has them.
    const both = of('p2p_on_bidirectional');
    expect(both).toHaveLength(9);
    expect(gigabytes(between(both, 'gpu:2', 'gpu:1'))).toBe(160);
    expect(gigabytes(between(both, 'gpu:2', 'gpu:0'))).toBe(288);
    expect(of('p2p_off_latency').every(({ bytes }) => bytes === 16)).toBe(true);

    const text = renderReport(report, 'text');
    const table = (name: string): string[][] => {
      const lines = text.slice(text.indexOf(`\n${name}:`) + 1).split('\n');
      expect(lines[0]).toContain(`${name}:`);
      return lines.slice(1, 5).map((line) => line.trim().split(/\s+/));
    };
    const byGpu = table('p2p_on_latency');
    expect(byGpu[0]).toEqual(['ns', 'gpu:0', 'gpu:1', 'gpu:2']);
    expect(byGpu[1]?.[2]).toBe('1000000000');
    for (const name of ['p2p_on_latency_cpu_issue', 'p2p_on_latency_cpu_complete']) {
      const byHost = table(name);
      expect(byHost[0]).toEqual(byGpu[0]);
      const nanoseconds = byHost.slice(1).flatMap((row) => row.slice(1).map(Number));
      expect(nanoseconds).toHaveLength(9);
      for (const one of nanoseconds) {
        expect(one).toBeGreaterThan(0);
        expect(one).toBeLessThan(1e8);
      }
    }
    expect(text).toContain('not judged');
    expect(text).toMatch(/^# 10 cases: 10 ran, 0 waived, 0 failed$/m);
    const csv = renderReport(report, 'csv').split('\n');
    expect(csv[0]).toContain('parameter.clock');
    expect(csv.filter((line) => line.includes('p2p_off_latency_cpu_issue'))).toHaveLength(9);
    expect(renderReport(report, 'markdown')).toMatch(
      /^\| p2p_off_latency_cpu_complete: gpu:0 to gpu:1, .*gpu:0.* \|/m,
    );
  });
});

describe('failures', () => {
  // Waits for its deadline beside the others.
  let stuck: ReturnType<typeof runScript>;
  beforeAll(() => {
    stuck = runScript(
      'p2p.js',
      [...quick, '-t', '0', '--gpus', '0', '--timeout', '1', '--format', 'json'],
      { GRADLINK_FAKE_FAULTS: 'stuck-copy=3', GRADLINK_FAKE_LEAKS: '' },
    );
  });

  it('a byte that is wrong after a copy is an error, and exit status 1', async () => {
    // Four copies to warm up, then the one that is timed.
    const { code, report } = await reportOf('p2p.js', [...quick, '-t', '0', '--gpus', '0'], {
      GRADLINK_FAKE_FAULTS: 'wrong-copy=5',
    });
    expect(code).toBe(1);
    expect(report.cases).toMatchObject([
      {
        status: 'error',
        code: 'ERR_WRONG_RESULT',
        check: { wrong: 1, passed: false, firstWrong: { device: 'gpu:0' } },
      },
    ]);
  });

  it('no room on a GPU fails the case and lets the others run', async () => {
    const { code, report } = await reportOf('p2p.js', [...quick, '-t', '0', '1'], {
      GRADLINK_FAKE_FAULTS: 'oom-at=2',
    });
    expect(code).toBe(1);
    const failed = report.cases.filter(({ status }) => status === 'error');
    expect(failed).toMatchObject([{ code: 'ERR_OUT_OF_MEMORY' }]);
    expect(report.cases.filter(({ status }) => status === 'ok')).toHaveLength(7);
  });

  const noDriver = { GRADLINK_CUDA_LIBRARY: '/nonexistent/libcuda.so.1' };
  it.each([
    ['p2p.js', [], noDriver, /\/nonexistent\/libcuda\.so\.1/],
    ['../lab/gpu.js', [], { GRADLINK_FAKE_GPUS: '0' }, /no GPU/],
    ['collectives.js', ['all_reduce', '-g', '1'], noDriver, /\/nonexistent\/libcuda\.so\.1/],
  ])('without a driver or a GPU %s has one clear message', async (script, args, env, message) => {
    const { code, stdout, stderr } = await runScript(script, args, env);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const [, help, ...more] = stderr.trim().split('\n');
    expect(help).toMatch(/^See .*troubleshooting\.md#/);
    expect(more).toEqual([]);
    expect(stderr).toMatch(message);
  });

  it('a copy that never ends is an error after the deadline', async () => {
    const { code, stdout, stderr } = await stuck;
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toContain('"ERR_TIMEOUT"');
  });
});
