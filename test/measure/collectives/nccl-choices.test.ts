import { describe, expect, it } from 'vitest';

import {
  parseNcclLog,
  socketPairs,
  withChoices,
} from '../../../lib/measure/collectives/nccl-choices.js';

const line = (bytes: number, algorithm: string | number, protocol: string | number) =>
  `node:1:1 [0] NCCL INFO AllReduce: ${bytes} Bytes -> Algo ${algorithm} proto ${protocol} channel{Lo..Hi}={0..1}\n`;
const cases = (...sizes: number[]) => sizes.map((bytes) => ({ parameters: { bytes } }));

const channel = (ranks: string, way: string) =>
  `node:1:1 [0] NCCL INFO Channel 00/0 : ${ranks} ${way}\n`;

describe('the sockets of NCCL', () => {
  it('are those of channels between ranks, each two once', () => {
    const log = [
      // 2.18.1 has bus ids, later versions the numbers of GPUs.
      channel('10[1b000] -> 2[c3000]', '[send] via NET/Socket/0'),
      channel('2[2] -> 10[10]', '[send] via NET/Socket/0(2)/GDRDMA'),
      channel('2[2] -> 3[3]', '[receive] via NET/Socket/0/Shared'),
      channel('3[3] -> 4[4]', '[send] via NET/IB/0/GDRDMA'),
      channel('4[4] -> 5[5]', 'via P2P/CUMEM/read'),
      'node:1:1 [0] NCCL INFO Channel 00 : 5[5] -> 6[6] via SHM/direct/direct\n',
      'node:1:1 [0] NCCL INFO Using network Socket\n',
    ];
    expect(socketPairs(log.join(''))).toEqual([[2, 10]]);
  });
});

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
