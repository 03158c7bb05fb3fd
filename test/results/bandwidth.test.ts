import { describe, expect, it } from 'vitest';

import {
  bandwidth,
  collectiveVolume,
  mxnetBandwidth,
  storeVolume,
  type Collective,
} from '../../lib/results/bandwidth.js';
import { describe as summarize } from '../../lib/results/statistics.js';

describe("MXNet's figure", () => {
  // Lines of the tool's README: bytes, devices, printed seconds, printed GB/s. The printed time has six decimals.
  it.each([
    [257991328, 2, 0.023242, 11.100222],
    [257991328, 2, 0.023106, 11.165508],
    [257991328, 8, 0.102321, 4.412429],
    [257991328, 8, 0.097317, 4.639322],
    [257991328, 8, 0.290164, 1.555964],
    [257991328, 8, 0.295398, 1.528395],
    [95200544, 8, 0.086527, 1.925424],
    [95200544, 8, 0.055107, 3.02322],
  ])('%i bytes, %i devices, %d s: %d GB/s', (bytes, devices, seconds, printed) => {
    const slack = (printed * 0.5e-6) / seconds + 0.5e-6;
    expect(Math.abs(mxnetBandwidth(bytes, devices, seconds) / 1e9 - printed)).toBeLessThan(slack);
  });

  it('is 0 for one device, and finite when the clock saw no time', () => {
    expect(mxnetBandwidth(1e6, 1, 0.5)).toBe(0);
    expect(mxnetBandwidth(1e6, 2, 0)).toBe(0);
  });
});

describe('volume of a collective', () => {
  const call = { countPerRank: 1000, elementBytes: 4, ranks: 4 } as const;

  // Sizes and factors as nccl-tests defines them: S is the whole of the n chunks where each rank has one.
  it.each<[Collective, number, number]>([
    ['all_reduce', 4000, 1.5],
    ['all_gather', 16000, 0.75],
    ['reduce_scatter', 16000, 0.75],
    ['alltoall', 16000, 0.75],
    ['gather', 16000, 0.75],
    ['scatter', 16000, 0.75],
    ['broadcast', 4000, 1],
    ['reduce', 4000, 1],
    ['scan', 4000, 1],
    ['exscan', 4000, 1],
    ['sendrecv', 4000, 1],
    // Of 16000 bytes a sixth, two and three sixths, cut to multiples of 16.
    ['alltoallv', 2656 + 5328 + 8000, 0.75],
    ['hypercube', 12000, 1],
  ])('%s: %i bytes, factor %d', (collective, bytes, factor) => {
    const volume = collectiveVolume(collective, { ...call, placement: 'out-of-place' });
    expect(volume.bytes).toBe(bytes);
    expect(volume.busFactor).toBe(factor);
  });

  // Reads plus writes of four ranks in one memory, in units of a rank's 4000 bytes.
  it.each<[Collective, number, number]>([
    ['all_reduce', 8, 8],
    ['all_gather', 4 + 16, 4 + 12],
    ['reduce_scatter', 16 + 4, 16 + 4],
    ['alltoall', 32, 24],
    ['gather', 8, 6],
    ['scatter', 8, 6],
    ['broadcast', 1 + 4, 1 + 3],
    ['reduce', 4 + 1, 4 + 1],
    ['scan', 4 + 4, 4 + 3],
    ['exscan', 3 + 4, 3 + 4],
    ['sendrecv', 8, 8],
    ['hypercube', 4 + 16, 4 + 12],
  ])('%s must move %i buffers, %i in place', (collective, outOfPlace, inPlace) => {
    const moved = (['out-of-place', 'in-place'] as const).map(
      (placement) => collectiveVolume(collective, { ...call, placement }).mustMoveBytes / 4000,
    );
    expect(moved).toEqual([outOfPlace, inPlace]);
  });

  it('moves nothing in place with one rank', () => {
    for (const collective of ['all_reduce', 'all_gather', 'broadcast', 'reduce', 'scan'] as const) {
      const volume = collectiveVolume(collective, { ...call, ranks: 1, placement: 'in-place' });
      expect(volume.mustMoveBytes, collective).toBe(0);
    }
  });
});

describe('volume of a store', () => {
  const bytes = 1000;

  it('counts gradients, the stored value and the weights', () => {
    const volume = storeVolume({ bytes, devices: 4 });
    expect(volume).toMatchObject({ bytes, busFactor: 1.5, mustMoveBytes: 9 * bytes });
  });

  it('adds what an optimizer and compression must read and write', () => {
    expect(storeVolume({ bytes, devices: 4, optimizerStates: 0 }).mustMoveBytes).toBe(10 * bytes);
    expect(storeVolume({ bytes, devices: 4, optimizerStates: 2 }).mustMoveBytes).toBe(14 * bytes);
    expect(storeVolume({ bytes, devices: 4, compressed: true }).mustMoveBytes).toBe(17 * bytes);
  });
});

describe('bandwidth', () => {
  it('turns the interval of the median round: the longest time is the lowest bandwidth', () => {
    const statistics = summarize([1, 2, 3, 4, 5, 6]);
    expect(bandwidth(21, statistics, 'S / t')).toEqual({
      bytesPerSecond: 6,
      lowerBytesPerSecond: 3.5,
      upperBytesPerSecond: 21,
      formula: 'S / t',
    });
  });
});
