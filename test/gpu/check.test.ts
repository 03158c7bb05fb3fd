// What `gradlink check` says of GPUs that are not as they should be. Real GPUs have no settings for that.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { checkSums, gpusOf } from '../../lib/check/gpus.js';
import { hasMeasurement, type CaseResult } from '../../lib/results/result.js';
import { reportOf, runScript } from '../support/gpu-commands.js';
import { fourGpus, onRealGpus } from './setup/fakes.js';

Object.assign(process.env, fourGpus);

const ofGpus = ['check', '--parts', 'gpus', '--quick'];

beforeEach((context) => {
  if (onRealGpus) context.skip('only the stand-ins can be told to be slow or broken');
});

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Which parts are bad, each once: the two ends of a way, a GPU, or the ranks of a sum. */
function badOf(cases: readonly CaseResult[]): string[] {
  const bad = cases.filter(({ status }) => status === 'error');
  const names = bad.map(({ parameters: { from, to, gpu, between } }) =>
    [from, to, gpu, between].filter((one) => typeof one === 'string').join(' '),
  );
  return [...new Set(names)];
}

describe('a check of GPUs', () => {
  it('answers in its first line that all are good', async () => {
    // One, since each pair takes its time; those below would name more of two and of three.
    const { code, stdout } = await runScript('gradlink.js', [...ofGpus, '--gpus', '0']);
    expect(code).toBe(0);
    const [answer = '', , ...parts] = stdout.split('\n');
    const [, good, all] = /^good: (\d+) of (\d+)$/.exec(answer) ?? [];
    expect(good).toBe(all);
    expect(parts.some((line) => /^(bad|fair)/.test(line))).toBe(false);
  });

  it.each([
    [
      'a pair at a fifth, both ways',
      { GRADLINK_FAKE_LINKS: '1-3=29e9' },
      ['gpu:1 gpu:3', 'gpu:3 gpu:1'],
    ],
    ['one way of a pair', { GRADLINK_FAKE_LINKS: '1>3=29e9' }, ['gpu:1 gpu:3']],
    [
      'PCIe at half width',
      { GRADLINK_FAKE_FAULTS: 'pcie-width=2:8' },
      ['host gpu:2', 'gpu:2 host'],
    ],
    ['a counter that rises', { GRADLINK_FAKE_FAULTS: 'link-errors=3' }, ['gpu:3']],
    ['a GPU that is too hot', { GRADLINK_FAKE_FAULTS: 'throttle=1' }, ['gpu:1']],
  ] as const)('names %s, and nothing else', { tags: 'full' }, async (_, env, named) => {
    const { code, report } = await reportOf('gradlink.js', ofGpus, env);
    expect(code).toBe(1);
    expect(badOf(report.cases)).toEqual(named);
  });

  it('names NCCL that goes over sockets and XID errors that are no program’s, and nothing else', async () => {
    const { code, report } = await reportOf('gradlink.js', [...ofGpus, '--gpus', '1,3'], {
      NCCL_P2P_DISABLE: '1',
      NCCL_SHM_DISABLE: '1',
      GRADLINK_FAKE_FAULTS: 'xid=3:31,xid=1:48,xid=1:79',
    });
    expect(code).toBe(1);
    expect(badOf(report.cases)).toEqual(['gpus', 'gpu:1']);
    const named = (name: string) => report.cases.filter((one) => one.name === name);
    const sums = named('all_reduce').filter(hasMeasurement);
    expect(sums).toHaveLength(4);
    for (const { verdict, limit } of sums) {
      // Its own estimate is of sockets too.
      expect(limit?.ratio).toBeGreaterThan(0.9);
      expect(verdict).toMatchObject({
        level: 'poor',
        likelyCause: expect.stringContaining('gpu:1 and gpu:3:'),
      });
    }
    const health = named('health').filter(hasMeasurement);
    const told = health.map(({ verdict: { level, text, likelyCause } }) => [
      level,
      text.match(/\d+/g),
      likelyCause?.split('; ').length,
    ]);
    // What fell off the bus answers no more, which has the same cause.
    expect(told).toEqual([
      ['poor', ['48', '79'], 2],
      ['fair', ['31'], 1],
    ]);
  });

  it('names of three GPUs the one that computes one wrong bit in a million', async () => {
    // In this process, which has loaded no stand-in yet: copies are none of this.
    vi.stubEnv('GRADLINK_FAKE_FAULTS', 'nccl-wrong=2');
    const cases = await checkSums(gpusOf([0, 1, 2])!, { quick: true, timeoutMs: 30_000 });
    expect(badOf(cases)).toEqual(['gpus']);
    const wrong = cases.filter(({ status }) => status === 'error');
    expect(wrong).toHaveLength(4);
    for (const one of wrong) expect('reason' in one && one.reason).toMatch(/^gpu:2 computes/);
    // The stand-in turns the lowest bit of a float32 in all outputs.
    for (const { check } of wrong.filter(hasMeasurement)) {
      expect(check.passed).toBe(false);
      expect(check.firstWrong).toMatchObject({ rank: 0, device: 'gpu:0', index: 0 });
      const { got, expected } = check.firstWrong!;
      const [a, b] = new Uint32Array(Float32Array.of(Number(got), Number(expected)).buffer);
      expect(a! ^ b!).toBe(1);
    }
  });

  it('refuses a GPU that is not there', async () => {
    const { code, stderr } = await runScript('gradlink.js', [...ofGpus, '--gpus', '0,4']);
    expect(code).toBe(2);
    expect(stderr).toContain('--gpus');
  });
});
