import { describe, expect, it } from 'vitest';

import {
  meanUtilisation,
  sampleUtilisation,
  summarise,
  UtilisationWatch,
} from '../../../lib/measure/machine/utilisation.js';

/** Files of /proc with counters that grow by `step`: 3 s of 4 busy, of 10 MB read a second. */
function proc(step: number, memoryFreeKiB: number): (name: string) => string | undefined {
  const files: Record<string, string> = {
    stat: `cpu  ${100 + 200 * step} 0 ${100 * step} ${50 + 60 * step} ${40 * step} 0 0 0 77 0\ncpu0 1 1 1 1\n`,
    meminfo: `MemTotal:        1000 kB\nMemFree: 1 kB\nMemAvailable:    ${memoryFreeKiB} kB\n`,
    diskstats: [
      `   8       0 sda 1 0 ${20 * step} 0 1 0 ${40 * step} 0 0 ${500 * step} 0`,
      `   8       1 sda1 1 0 ${20 * step} 0 1 0 ${40 * step} 0 0 ${500 * step} 0`,
      ` 259       0 nvme0n1 1 0 ${2 * step} 0 1 0 0 0 0 0 0`,
      `   7       0 loop0 1 0 ${2000 * step} 0 1 0 0 0 0 900 0`,
    ].join('\n'),
    'net/dev': [
      'Inter-|   Receive                                                |  Transmit',
      ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets',
      `    lo: ${9000 * step} 1 0 0 0 0 0 0 ${9000 * step} 1 0 0 0 0 0 0`,
      `  eth0: ${1000 * step} 1 0 0 0 0 0 0 ${3000 * step} 1 0 0 0 0 0 0`,
    ].join('\n'),
  };
  return (name) => files[name];
}

describe('utilisation', () => {
  it('comes from the kernel counters of whole disks and real interfaces', () => {
    const summary = summarise(
      [sampleUtilisation(10, proc(0, 800)), sampleUtilisation(12, proc(1, 400))],
      [0.5, 0.7],
    );
    expect(summary).toEqual({
      seconds: 2,
      // 300 of 400 ticks.
      cpuShare: 0.75,
      // 20 % and 60 % in use.
      memoryShare: 0.4,
      // One of two disks, 500 ms of 2 s.
      diskShare: 0.125,
      diskReadBytesPerSecond: (22 * 512) / 2,
      diskWrittenBytesPerSecond: (40 * 512) / 2,
      networkReceivedBytesPerSecond: 500,
      networkSentBytesPerSecond: 1500,
      gpuShare: 0.6,
    });
  });

  it('of several machines is the mean of those that tell', () => {
    const machine = (memoryFreeKiB: number, gpuShares: readonly number[]) =>
      summarise(
        [sampleUtilisation(10, proc(0, 800)), sampleUtilisation(12, proc(1, memoryFreeKiB))],
        gpuShares,
      );
    const mean = meanUtilisation([machine(400, [0.5]), machine(800, [])]);
    expect(mean).toMatchObject({ seconds: 2, cpuShare: 0.75, gpuShare: 0.5 });
    expect(mean.memoryShare).toBeCloseTo(0.3, 12);
    expect(meanUtilisation([machine(400, []), machine(400, [])]).gpuShare).toBeNull();
  });

  it('is null where the machine does not tell', () => {
    const nothing = (): undefined => undefined;
    const summary = summarise([sampleUtilisation(1, nothing), sampleUtilisation(2, nothing)]);
    expect(summary).toMatchObject({
      cpuShare: null,
      memoryShare: null,
      diskShare: null,
      gpuShare: null,
      diskReadBytesPerSecond: null,
      diskWrittenBytesPerSecond: null,
    });
  });

  it('is that of this machine while it is watched', () => {
    const watch = new UtilisationWatch(() => 0.25);
    let sum = 0;
    for (let i = 0; i < 3e7; ++i) sum += i % 7;
    expect(sum).toBeGreaterThan(0);
    const summary = watch.stop();
    expect(summary.seconds).toBeGreaterThan(0);
    expect(summary.memoryShare).toBeGreaterThan(0);
    expect(summary.gpuShare).toBe(0.25);
  });
});
