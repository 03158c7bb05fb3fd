// What `gradlink check` says of GPUs that are not as they should be. Real GPUs have no settings for that.
import { beforeEach, describe, expect, it } from 'vitest';

import { hasMeasurement, type CaseResult } from '../../lib/results/result.js';
import { reportOf, runScript } from '../support/gpu-commands.js';
import { fourGpus, onRealGpus } from './setup/fakes.js';

Object.assign(process.env, fourGpus);

const ofGpus = ['check', '--parts', 'gpus', '--quick'];

beforeEach((context) => {
  if (onRealGpus) context.skip('only the stand-ins can be told to be slow or broken');
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
    // Two, since each pair takes its time; those below would name more of three.
    const { code, stdout } = await runScript('gradlink.js', [...ofGpus, '--gpus', '0,1']);
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

  it('tells XID errors, and which are those of programs', async () => {
    const env = { GRADLINK_FAKE_FAULTS: 'xid=0:31,xid=1:48,xid=1:79' };
    const runs = await Promise.all(
      ['0', '1'].map((gpu) => reportOf('gradlink.js', [...ofGpus, '--gpus', gpu], env)),
    );
    expect(runs.map(({ code }) => code)).toEqual([0, 1]);
    const cases = runs.flatMap(({ report }) => report.cases);
    expect(badOf(cases)).toEqual(['gpu:1']);
    const health = cases.filter(({ name }) => name === 'health').filter(hasMeasurement);
    const told = health.map(({ verdict: { level, text, likelyCause } }) => [
      level,
      text.match(/\d+/g),
      likelyCause?.split('; ').length,
    ]);
    // What fell off the bus answers no more, which has the same cause.
    expect(told).toEqual([
      ['fair', ['31'], 1],
      ['poor', ['48', '79'], 2],
    ]);
  });

  it('names NCCL that goes over sockets, and nothing else', async () => {
    const env = { NCCL_P2P_DISABLE: '1', NCCL_SHM_DISABLE: '1' };
    const { code, report } = await reportOf('gradlink.js', [...ofGpus, '--gpus', '1,3'], env);
    expect(code).toBe(1);
    expect(badOf(report.cases)).toEqual(['gpus']);
    const sums = report.cases.filter(({ name }) => name === 'all_reduce').filter(hasMeasurement);
    for (const { verdict, limit } of sums) {
      // Its own estimate is of sockets too.
      expect(limit?.ratio).toBeGreaterThan(0.9);
      expect(verdict).toMatchObject({
        level: 'poor',
        likelyCause: expect.stringContaining('gpu:1 and gpu:3:'),
      });
    }
  });

  it('names of three GPUs the one that computes one wrong bit in a million', async () => {
    const env = { GRADLINK_FAKE_GPUS: '3', GRADLINK_FAKE_FAULTS: 'nccl-wrong=2' };
    const { code, report } = await reportOf('gradlink.js', ofGpus, env);
    expect(code).toBe(1);
    expect(badOf(report.cases)).toEqual(['gpus']);
    const wrong = report.cases.filter(({ status }) => status === 'error');
    expect(wrong.filter(hasMeasurement).map(({ check }) => check.passed)).not.toContain(true);
    for (const one of wrong) {
      expect(one.status === 'ok' ? '' : one.reason).toMatch(/^gpu:2 computes/);
    }
    // The stand-in turns the lowest bit of a float32 in all outputs.
    for (const { check } of wrong.filter(hasMeasurement)) {
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
