// The evidence of docs/convergence.md, in small: every method learns what one worker learns.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { root } from '../../test/support/walks.js';

interface Curve {
  readonly method: string;
  readonly accuracy: number;
  readonly curve: readonly (readonly [samples: number, loss: number])[];
}

function curves(workers: number): Curve[] {
  const program = ['node', join(root, 'lab/convergence/rank.js'), '--quick'];
  const launch = ['launch', '-n', String(workers), '-s', '1', ...program];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bench/gradlink.js'), ...launch],
    { encoding: 'utf8' },
  );
  expect(status, stderr).toBe(0);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Curve);
}

it('two workers follow one with each method', () => {
  const [alone, together] = [curves(1), curves(2)];
  expect(alone.map(({ method }) => method)).toEqual([
    'all-reduce',
    'neighbour averaging',
    'local SGD',
    'store',
  ]);
  together.forEach(({ method, accuracy, curve }, at) => {
    const [first, last] = [curve[0]![1], curve.at(-1)![1]];
    expect(last, method).toBeLessThan(first * 0.9);
    expect(Math.abs(accuracy - alone[at]!.accuracy), method).toBeLessThan(0.05);
    // Each worker steps by itself there; the others follow one worker exactly.
    if (method === 'neighbour averaging' || method === 'local SGD') return;
    curve.forEach(([samples, loss], i) => {
      expect(samples).toBe(alone[at]!.curve[i]![0]);
      expect(loss).toBeCloseTo(alone[at]!.curve[i]![1], 3);
    });
  });
});
