// Which copies make the figures of `gradlink p2p`.
import { describe, expect, it } from 'vitest';

import { p2pCases } from '../../../lib/measure/p2p/cases.js';
import { gradlink } from '../../support/cli.js';

describe('cases', () => {
  it('are listed without a driver', async () => {
    const { code, stdout } = await gradlink(['p2p', '--list']);
    expect(code).toBe(0);
    expect(stdout.match(/^ ?\d+ \w+$/gm)).toHaveLength(35);
  });

  it('have names of their own, and copies that their GPUs can make', () => {
    expect(new Set(p2pCases.map(({ name }) => name)).size).toBe(35);
    for (const { name, plans } of p2pCases) {
      for (const plan of plans([0, 1, 3])) {
        if ('memory' in plan) continue;
        expect(plan.measured, name).toBeGreaterThan(0);
        expect(plan.measured).toBeLessThanOrEqual(plan.copies.length);
        for (const { from, to, by } of plan.copies) expect([from, to], name).toContain(by);
      }
    }
  });

  it('reads are made by the GPU that receives, writes by the one that sends', () => {
    for (const { name, plans } of p2pCases) {
      if (!/device_to_device.*memcpy|all_to_one|one_to_all/.test(name)) continue;
      for (const plan of plans([0, 1])) {
        if ('memory' in plan) continue;
        for (const { from, to, by } of plan.copies) {
          expect(by, name).toBe(name.includes('read') ? to : from);
        }
      }
    }
  });

  it.each([
    ['host_to_device_memcpy', ['host>0'], []],
    ['device_to_host_memcpy', ['0>host'], []],
    ['host_to_device_bidirectional_memcpy', ['host>0'], ['0>host']],
    ['device_to_host_bidirectional_memcpy', ['0>host'], ['host>0']],
    ['device_to_device_memcpy_read', ['0>1'], []],
    ['device_to_device_memcpy_write', ['0>1'], []],
    ['device_to_device_bidirectional_memcpy_read', ['0>1', '1>0'], []],
    ['device_to_device_bidirectional_memcpy_write', ['0>1', '1>0'], []],
    ['all_to_host_memcpy', ['0>host'], ['1>host', '2>host']],
    [
      'all_to_host_bidirectional_memcpy',
      ['0>host'],
      ['host>0', '1>host', 'host>1', '2>host', 'host>2'],
    ],
    ['host_to_all_memcpy', ['host>0'], ['host>1', 'host>2']],
    [
      'host_to_all_bidirectional_memcpy',
      ['host>0'],
      ['0>host', '1>host', 'host>1', '2>host', 'host>2'],
    ],
    ['all_to_one_write', ['1>0', '2>0'], []],
    ['all_to_one_read', ['1>0', '2>0'], []],
    ['one_to_all_write', ['0>1', '0>2'], []],
    ['one_to_all_read', ['0>1', '0>2'], []],
  ])('%s measures %j beside %j', (name, measured, beside) => {
    for (const engine of ['ce', 'sm']) {
      const record = p2pCases.find((one) => one.name === `${name}_${engine}`);
      const [plan] = record?.plans([0, 1, 2]) ?? [];
      if (plan === undefined || 'memory' in plan) throw new Error(`${name} has no copies`);
      const place = (at: number): string => (at < 0 ? 'host' : String(at));
      const ways = plan.copies.map(({ from, to }) => `${place(from)}>${place(to)}`);
      expect(ways.slice(0, plan.measured)).toEqual(measured);
      expect(ways.slice(plan.measured)).toEqual(beside);
      expect(plan.copies.every(({ kernel }) => kernel === (engine === 'sm'))).toBe(true);
    }
  });
});
