import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { allowedCores, parseCoreList, shareCores } from '../../lib/launch/cores.js';

describe('core lists', () => {
  it.each([
    ['0', [0]],
    ['0-3', [0, 1, 2, 3]],
    ['0-1,4,6-7\n', [0, 1, 4, 6, 7]],
  ])('%j', (text, cores) => {
    expect(parseCoreList(text)).toEqual(cores);
  });

  it('of this process are what the kernel says', () => {
    const mask = /^Cpus_allowed:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    const bits = BigInt(`0x${String(mask).replaceAll(',', '')}`);
    const set = allowedCores().reduce((sum, core) => sum | (1n << BigInt(core)), 0n);
    expect(set).toBe(bits);
  });
});

describe('shares', () => {
  it.each([
    [2, [0, 1], ['0', '1']],
    [2, [0, 1, 4, 5, 6], ['0,1', '4,5,6']],
    [3, [0, 1, 2, 3], ['0', '1', '2,3']],
    [4, [2, 3], ['2', '2', '3', '3']],
    [5, [0, 1], ['0', '0', '0', '1', '1']],
    [1, [0, 1], [undefined]],
    [2, [7], [undefined, undefined]],
    [2, [], [undefined, undefined]],
  ])('%i processes on %j', (processes, cores, shares) => {
    expect(shareCores(processes, cores).map((share) => share?.join())).toEqual(shares);
  });
});
