import { describe, expect, it } from 'vitest';

import type { Report } from '../../lib/measure/index.js';
import { hasMeasurement } from '../../lib/measure/index.js';
import { gradlink } from '../support/cli.js';

const small = ['-n', '4', '-b', '64', '-e', '4K', '-f', '64', '--iters', '2', '-w', '1', '-m', '1'];

async function report(...args: readonly string[]): Promise<Report> {
  const { code, stdout, stderr } = await gradlink([
    ...['collectives', ...args, ...small, '--format', 'json'],
  ]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return JSON.parse(stdout) as Report;
}

describe('gradlink collectives neighbor_all_reduce', () => {
  it('measures it beside all_reduce, with the bytes that are sent', async () => {
    for (const [topology, ...dynamic] of [['exp2'], ['ring', '--dynamic']] as const) {
      const { cases } = await report('neighbor_all_reduce', '--topology', topology, ...dynamic);
      expect(cases.map(({ name }) => name)).toEqual(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? 'all_reduce' : 'neighbor_all_reduce')),
      );
      for (const one of cases) {
        expect(one.status, `${topology} ${one.status === 'ok' ? '' : one.reason}`).toBe('ok');
        if (!hasMeasurement(one)) continue;
        expect(one.check.kind).toBe('error');
        expect(one.samplesSeconds).toHaveLength(2);
        expect(one.parameters).toMatchObject({ topology, dynamic: dynamic.length > 0, ranks: 4 });
      }
    }
  });

  it('has a form over hosts, of which the environment or an option tells', async () => {
    const { cases } = await report('hierarchical_neighbor_all_reduce', '--ranks-per-node', '2');
    expect(cases.slice(0, 3).map(({ name }) => name)).toEqual([
      'all_reduce',
      'neighbor_all_reduce',
      'hierarchical_neighbor_all_reduce',
    ]);
    const bytes = cases.slice(0, 3).map((one) => hasMeasurement(one) && one.values);
    expect(bytes).toMatchObject([
      { sentBytesPerRank: 96, sentBytesPerHost: 64, timeOverAllReduce: 1 },
      { sentBytesPerRank: 128, sentBytesPerHost: 192 },
      { sentBytesPerRank: 192, sentBytesPerHost: 64 },
    ]);
  });

  it('prints a line for each operation', async () => {
    const { code, stdout } = await gradlink(['collectives', 'neighbor_all_reduce', ...small]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^# 4 ranks, 4 a host; graph exp2, all neighbours\b/m);
    expect(stdout).toMatch(/^ +64 +float32 +in-place +neighbor_all_reduce +[\d.]+ +[\d.]+ /m);
    expect(stdout).toMatch(/^# .*results right$/m);
  });

  it('says what its options may be', async () => {
    const refusals: [string[], RegExp][] = [
      [['neighbor_all_reduce', '--topology', 'moebius'], /exp2, symmetric_exp, ring/],
      [['neighbor_all_reduce', '-d', 'int32'], /float32 or float64/],
      [['neighbor_all_reduce', '-g', '1'], /neighbor_all_reduce .* -g\b/],
      [['neighbor_all_reduce', '--like-nccl-tests'], /neighbor_all_reduce .*--like-nccl-tests/],
      [
        ['neighbor_all_reduce', '-n', '4', '--ranks-per-node', '3'],
        /--ranks-per-node: .*\b4 ranks, got 3/,
      ],
      [['all_reduce', '--dynamic'], /--dynamic .*hierarchical_neighbor_all_reduce, .*all_reduce/],
      [
        ['all_reduce', '--topology', 'ring'],
        /--topology .*hierarchical_neighbor_all_reduce, .*all_reduce/,
      ],
    ];
    for (const [args, words] of refusals) {
      const { code, stderr } = await gradlink(['collectives', ...args]);
      expect(code).toBe(2);
      expect(stderr).toMatch(words);
    }
  });
});
