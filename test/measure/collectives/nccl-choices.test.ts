import { describe, expect, it } from 'vitest';

import { parseNcclLog, withChoices } from '../../../lib/measure/collectives/nccl-choices.js';

const line = (bytes: number, algorithm: string | number, protocol: string | number) =>
  `node:1:1 [0] NCCL INFO AllReduce: ${bytes} Bytes -> Algo ${algorithm} proto ${protocol} channel{Lo..Hi}={0..1}\n`;
const cases = (...sizes: number[]) => sizes.map((bytes) => ({ parameters: { bytes } }));

describe('the choices of NCCL', () => {
  it('are read from names and from the numbers of older versions', () => {
    const log = `other text\n${line(1024, 'Tree', 'LL')}${line(4096, 1, 2)}${line(8192, 'NVLS', 'Simple')}`;
    expect([...parseNcclLog(log)]).toEqual([
      [1024, { algorithm: 'TREE', protocol: 'LL' }],
      [4096, { algorithm: 'RING', protocol: 'SIMPLE' }],
      [8192, { algorithm: 'NVLS', protocol: 'SIMPLE' }],
    ]);
  });

  it('are not known for a size with several', () => {
    const log = line(8, 'RING', 'LL') + line(8, 'TREE', 'LL') + line(8, 'RING', 'LL');
    expect(parseNcclLog(log).size).toBe(0);
  });

  it('belong to the bytes of a block or of all blocks, as the largest size tells', () => {
    const ring = { algorithm: 'RING', protocol: 'LL' };
    const tree = { algorithm: 'TREE', protocol: 'SIMPLE' };
    const sizes = cases(64, 256, 1024);
    const of = (...logged: [number, typeof ring][]) =>
      withChoices(sizes, new Map(logged)).map(({ parameters }) => parameters);
    expect(of([64, ring], [256, ring], [1024, tree])).toEqual([
      { bytes: 64, ...ring },
      { bytes: 256, ...ring },
      { bytes: 1024, ...tree },
    ]);
    expect(of([16, ring], [64, ring], [256, tree])).toEqual([
      { bytes: 64, ...ring },
      { bytes: 256, ...ring },
      { bytes: 1024, ...tree },
    ]);
    expect(of([1024, tree])[0]).toEqual({ bytes: 64 });
    expect(of()).toEqual(sizes.map(({ parameters }) => parameters));
  });
});
