// Expected limits and verdicts of copies between GPUs, on machines that are made up.
import { describe, expect, it } from 'vitest';

import {
  besideOpposite,
  hostLimit,
  manyLimit,
  memoryLimit,
  pairLimit,
  pcieRate,
} from '../../../lib/measure/machine/gpu-rates.js';
import { linksBetween, linksDown, type Machine } from '../../../lib/measure/machine/gpus.js';
import { judgeP2p, type P2pEvidence } from '../../../lib/measure/p2p/verdict.js';
import { describe as statisticsOf } from '../../../lib/results/statistics.js';
import type { NativeGpuHealth, NativeGpuInfo, NativeLink } from '../../../lib/native/gpu.js';

const busId = (ordinal: number): string => `0000:0${ordinal}:00.0`;

/** `count` links to a GPU, or to the switch, `down` of them inactive. */
function links(to: number | 'switch', count: number, down = 0): NativeLink[] {
  return Array.from({ length: count }, (_, index) => ({
    index,
    active: index >= down,
    version: '4.0',
    bytesPerSecond: 25e9,
    remotePciBusId: index < down || to === 'switch' ? null : busId(to),
    remoteIsSwitch: to === 'switch',
    errors: 0,
  }));
}

function health(change: Partial<NativeGpuHealth> = {}): NativeGpuHealth {
  return {
    numaNode: 0,
    pcieGeneration: 4,
    pcieWidth: 16,
    maxPcieGeneration: 4,
    maxPcieWidth: 16,
    smClockMHz: 1980,
    maxSmClockMHz: 1980,
    memoryClockMHz: 2619,
    temperatureC: 40,
    powerW: 100,
    utilizationPercent: 50,
    throttleReasons: [],
    eccErrors: 0,
    pcieReplays: 0,
    c2cLinks: null,
    links: [],
    ...change,
  };
}

function gpu(ordinal: number, state: NativeGpuHealth | null, name = 'Example GPU'): NativeGpuInfo {
  return {
    ordinal,
    name,
    uuid: null,
    pciBusId: busId(ordinal),
    memoryBytes: 2 ** 34,
    computeCapability: '9.0',
    kernels: 'cubin sm_90',
    computeMode: 'default',
    multiprocessors: 132,
    l2Bytes: 50e6,
    copyEngines: 3,
    memoryBusBits: 5120,
    memoryClockKHz: 2_619_000,
    health: state,
  };
}

function machine(states: readonly (NativeGpuHealth | null)[], access = true): Machine {
  return {
    gpus: states.map((state, ordinal) => gpu(ordinal, state)),
    peer: () => ({ access, path: 'NODE' }),
  };
}

const bare = machine([health(), health({ maxPcieWidth: 8 })]);

describe('expected limits', () => {
  it('count PCIe lanes after line coding', () => {
    expect(pcieRate(3, 16)).toBeCloseTo(15.754e9, -7);
    expect(pcieRate(4, 16)).toBeCloseTo(31.508e9, -7);
    expect(pcieRate(5, 16)).toBeCloseTo(63.015e9, -7);
    expect(pcieRate(5, 8)).toBeCloseTo(31.508e9, -7);
    expect(pcieRate(9, 16)).toBeUndefined();
    expect(pcieRate(4, 0)).toBeUndefined();
  });

  it('take the widest that a link to the host can be, not what it is at rest', () => {
    const idle = machine([health({ pcieGeneration: 1, pcieWidth: 4 })]);
    expect(hostLimit(idle, 0)).toMatchObject({ over: 'pcie' });
    expect(hostLimit(idle, 0)?.bytesPerSecond).toBeCloseTo(31.508e9, -7);
    expect(hostLimit(machine([null]), 0)).toBeUndefined();
  });

  it('between two GPUs are those of the narrower side, where no NVLink is', () => {
    expect(pairLimit(bare, 0, 1)?.bytesPerSecond).toBeCloseTo(15.754e9, -7);
    expect(pairLimit(bare, 0, 1)?.over).toBe('pcie');
  });

  // nvbandwidth's README for an A100, and an H200 in a virtual machine: links that nothing is wrong with.
  it.each([
    ['A100, copy engine', 4, false, [18.4e9, 19.6e9]],
    ['H200, copy engine', 5, false, [49.0e9, 51.83e9]],
    ['H200, multiprocessors', 5, true, [28.39e9, 36.13e9]],
  ])('leave room for the other way, where both are copied: %s', (_, generation, kernel, seen) => {
    const way = hostLimit(machine([health({ maxPcieGeneration: generation })]), 0);
    const limit = besideOpposite(way, kernel)?.bytesPerSecond ?? 0;
    for (const rate of seen) {
      expect(rate / limit).toBeGreaterThan(0.75);
      expect(rate / limit).toBeLessThan(1.1);
    }
    // NVLink has lanes of its own for each way.
    expect(besideOpposite({ ...way!, over: 'nvlink' }, kernel)?.bytesPerSecond).toBe(
      way?.bytesPerSecond,
    );
  });

  it('are not those of PCIe where host memory is reached over NVLink-C2C', () => {
    const beside = machine([health({ c2cLinks: 10 }), health({ c2cLinks: 0 })]);
    expect(hostLimit(beside, 0)).toBeUndefined();
    expect(hostLimit(beside, 1)).toMatchObject({ over: 'pcie' });
  });

  it('are unknown between GPUs whose NVLinks lead nobody says where', () => {
    const unknown = links('switch', 18).map((link) => ({ ...link, remoteIsSwitch: false }));
    const guest = machine([health({ links: unknown }), health({ links: unknown }), health()]);
    expect(pairLimit(guest, 0, 1)).toBeUndefined();
    // The third has none.
    expect(pairLimit(guest, 0, 2)).toMatchObject({ over: 'pcie' });
    expect(pairLimit(guest, 0, 1, true)).toMatchObject({ over: 'pcie' });
  });

  it('are those of the NVLinks between the two', () => {
    const joined = machine([
      health({ links: [...links(1, 4), ...links(2, 2)] }),
      health({ links: links(0, 4) }),
      health({ links: links(0, 2) }),
    ]);
    expect(pairLimit(joined, 0, 1)).toMatchObject({ bytesPerSecond: 100e9, over: 'nvlink' });
    expect(pairLimit(joined, 0, 2)).toMatchObject({ bytesPerSecond: 50e9 });
    // No link: PCIe; also when all is staged.
    expect(pairLimit(joined, 1, 2)?.over).toBe('pcie');
    expect(pairLimit(joined, 0, 1, true)?.over).toBe('pcie');
  });

  it('through a switch are all links of the GPU that has fewer', () => {
    const switched = machine([
      health({ links: links('switch', 18) }),
      health({ links: links('switch', 18, 2) }),
      health({ links: links('switch', 18) }),
    ]);
    expect(linksBetween(switched, 0, 2)).toEqual({
      active: 18,
      expected: 18,
      bytesPerSecond: 25e9,
    });
    expect(linksDown(switched, 1)).toBe(2);
    expect(linksBetween(switched, 0, 1)).toEqual({
      active: 16,
      expected: 18,
      bytesPerSecond: 25e9,
    });
    expect(pairLimit(switched, 0, 1)?.basis).toBe('18 NVLinks x 25.00 GB/s, 2 of them down');
    // Three at once cannot have more than all links of the one.
    expect(manyLimit(switched, 0, [1, 2])?.bytesPerSecond).toBe(450e9);
  });

  it('do not count links that no GPU of the machine has up', () => {
    const bridged = machine([
      health({ links: links(1, 18, 6) }),
      health({ links: links(0, 18, 6) }),
    ]);
    expect(linksBetween(bridged, 0, 1)).toMatchObject({ active: 12, expected: 12 });
  });

  it('within a GPU are both edges of the memory clock over its bus', () => {
    expect(memoryLimit(bare, 0)?.bytesPerSecond).toBeCloseTo(3352.32e9, -6);
  });
});

const linked = machine([health({ links: links(1, 4) }), health({ links: links(0, 4) })]);

function evidence(change: Partial<P2pEvidence> = {}): P2pEvidence {
  const from = change.from ?? 0;
  const to = change.to ?? 1;
  return {
    quantity: 'bandwidth',
    byHost: false,
    value: 90e9,
    limit: pairLimit(linked, 0, 1),
    statistics: statisticsOf([1e-3, 1e-3, 1e-3]),
    bytes: 2 ** 28,
    total: false,
    from,
    to,
    gpus: [from, to].filter((place) => place >= 0),
    staged: false,
    stagedOnPurpose: false,
    crowded: false,
    health: new Map([
      [0, health()],
      [1, health()],
    ]),
    errors: [],
    ...change,
  };
}
const judge = (change: Partial<P2pEvidence>, others: readonly P2pEvidence[] = []) => {
  const one = evidence(change);
  return judgeP2p(linked, one, [one, ...others]);
};

describe('verdicts', () => {
  it.each([
    [111e9, 'none'],
    [109e9, 'good'],
    [90e9, 'good'],
    [75e9, 'good'],
    [74e9, 'fair'],
    [50e9, 'fair'],
    [49e9, 'poor'],
  ])('%d of 100 GB/s is %s', (value, level) => {
    expect(judge({ value })).toMatchObject({ level });
  });

  it('what is faster than its link is judged by its like alone, and no limit is believed', () => {
    expect(judge({ value: 390e9 }).text).toMatch(/^390 % of 4 NVLinks .*NVML/);
    const others = [evidence({ value: 390e9 }), evidence({ value: 390e9 })];
    expect(judge({ value: 390e9 }, others)).toMatchObject({ level: 'none', reason: 'above limit' });
    expect(judge({ value: 250e9 }, others).level).toBe('fair');
    expect(judge({ value: 120e9 }, others).level).toBe('poor');
    expect(judge({ value: 390e9, errors: ['gpu:0 counted 2 NVLink errors'] })).toMatchObject({
      level: 'fair',
      reason: 'faults',
    });
    const limit = memoryLimit(linked, 0);
    const local = { from: 0, to: 0, gpus: [0], limit };
    expect(judge({ ...local, value: 9e12 }).level).toBe('none');
  });

  it('both ways at once may be faster than most, as fast as the link is', () => {
    const limit = besideOpposite(hostLimit(linked, 0), false);
    const host = { from: -1, to: 0, gpus: [0], limit };
    expect(judge({ ...host, value: 30e9 })).toMatchObject({
      level: 'good',
      text: expect.stringMatching(/^127 % of 75 % of PCIe .*most/),
    });
    expect(judge({ ...host, value: 35e9 }).level).toBe('none');
  });

  it('a good figure needs no cause, unless it scatters', () => {
    expect(judge({}).likelyCause).toBeNull();
    const statistics = statisticsOf([1e-3, 1e-3, 2e-3]);
    expect(judge({ statistics }).likelyCause).toContain('scatter');
  });

  it('errors come before all else, and no figure with errors is good', () => {
    const errors = ['gpu:0 counted 2 NVLink errors during the run'];
    const held = new Map([[0, health({ throttleReasons: ['hardwareThermal'] })]]);
    const verdict = judge({ errors, health: held });
    expect(verdict.level).toBe('fair');
    expect(verdict.likelyCause).toContain(errors[0]);
    expect(verdict.likelyCause).not.toContain('clocks');
  });

  it('several findings are all told', () => {
    const busy = new Map([
      [0, health({ throttleReasons: ['hardwareThermal'] })],
      [1, health({ pcieWidth: 4 })],
    ]);
    const limit = hostLimit(linked, 0);
    const { likelyCause } = judge({ value: 1e9, limit, health: busy });
    expect(likelyCause).toMatch(/PCIe .*gpu:1 .*generation 4 x4/);
    expect(likelyCause).toMatch(/clocks .*gpu:0 .*\(hardwareThermal\)/);
  });

  it('a narrow PCIe link is no cause where nothing goes over it', () => {
    const busy = new Map([[1, health({ pcieWidth: 4 })]]);
    expect(judge({ value: 40e9, health: busy }).likelyCause).not.toContain('PCIe link');
  });

  it('a staged pair is judged by what its links would do; on purpose it is not judged', () => {
    const verdict = judge({ value: 20e9, staged: true });
    expect(verdict).toMatchObject({ level: 'poor' });
    expect(verdict.likelyCause).toContain('host memory');
    expect(judge({ value: 20e9, staged: true, stagedOnPurpose: true }).reason).toBe('comparison');
  });

  it('a pair that is slower than its like is not good, though it is near its limit', () => {
    const others = [evidence({ value: 99e9 }), evidence({ value: 99e9 })];
    expect(judge({ value: 76e9 }, others)).toMatchObject({
      level: 'fair',
      reason: 'others',
      likelyCause: expect.stringMatching(/only gpu:0 .*gpu:1 /),
    });
    expect(judge({ value: 85e9 }, others)).toEqual({
      level: 'good',
      text: expect.any(String),
      likelyCause: null,
    });
    // Sums, and figures over other links, are not alike.
    const unlike = others.map((other) => ({ ...other, total: true }));
    expect(judge({ value: 76e9 }, unlike).level).toBe('good');
  });

  it('latencies are compared with each other, since nobody says what they should be', () => {
    const like = (value: number) => evidence({ quantity: 'latency', value, limit: undefined });
    const others = [like(1e-6), like(1e-6)];
    const latency = { quantity: 'latency', limit: undefined } as const;
    expect(judge({ ...latency, value: 1.1e-6 }, others).level).toBe('good');
    expect(judge({ ...latency, value: 1.5e-6 }, others).level).toBe('fair');
    expect(judge({ ...latency, value: 3e-6 }, others).level).toBe('poor');
    expect(judge({ ...latency, value: 3e-6 }).level).toBe('none');
  });

  it("the host's own times are shown, and not judged", () => {
    const like = (value: number) =>
      evidence({ quantity: 'latency', byHost: true, value, limit: undefined });
    const slow = like(9e-6);
    expect(judgeP2p(linked, slow, [slow, like(1e-6), like(1e-6)])).toMatchObject({
      level: 'none',
      reason: 'host time',
      likelyCause: null,
    });
  });

  it('a copy that is over in a moment is not judged', () => {
    expect(judge({ value: 10e9, bytes: 2 ** 16 })).toMatchObject({
      level: 'none',
      reason: 'fixed cost',
    });
  });

  it('GPUs that share a PCIe switch may share the way to the host', () => {
    const shared: Machine = { ...linked, peer: () => ({ access: true, path: 'PIX' }) };
    const one = evidence({
      value: 15e9,
      limit: hostLimit(linked, 0),
      from: -1,
      to: 0,
      gpus: [0, 1],
      crowded: true,
    });
    expect(judgeP2p(shared, one, [one]).likelyCause).toBe(
      'gpu:0 and gpu:1 share a PCIe switch, and with it the way to the host',
    );
  });
});
