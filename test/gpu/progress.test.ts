// The bar of `gradlink p2p`.
import { expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

const argv = ['p2p', '-b', '1', '-i', '1', '--loop-count', '1'];
const cases = ['-t', 'host_to_device_memcpy_ce', 'device_to_device_memcpy_write_ce'];

it('counts the figures of all cases on a terminal, and is nowhere else', async () => {
  const { code, stdout, stderr } = await gradlink([...argv, ...cases], { terminal: true });
  expect(code).toBe(0);
  const drawn = [...stderr.matchAll(/(\d+)\/(\d+) figures/g)].map(([, done, total]) => [
    Number(done),
    Number(total),
  ]);
  const total = drawn[0]![1]!;
  expect(total).toBeGreaterThan(1);
  expect(drawn[0]).toEqual([0, total]);
  expect(drawn.at(-1)).toEqual([total, total]);
  expect(stdout).not.toContain('figures');
  expect((await gradlink([...argv, ...cases])).stderr).toBe('');
});
