// The best possible rate of a copy, from NVML's and the driver's facts about its links.
import { gpuOf, hasUnknownLinks, linksBetween, linksOf, type Machine } from './gpus.js';
import type { NativeGpuHealth } from '../../native/gpu.js';

/** A rate and its source. */
export interface ExpectedRate {
  /** In one direction; within a GPU, read plus written. */
  readonly bytesPerSecond: number;
  /** `18 NVLinks x 26.56 GB/s`, for reports. */
  readonly basis: string;
  readonly over: 'nvlink' | 'pcie' | 'memory';
  /** The link's nominal rate, if the limit is an empirical share of it. */
  readonly linkBytesPerSecond?: number;
}

// Per lane and direction after line coding (8b/10b, 128b/130b, flits with FEC from generation 6).
const laneRates: Readonly<Record<number, number>> = {
  1: 0.25e9,
  2: 0.5e9,
  3: (8e9 * (128 / 130)) / 8,
  4: (16e9 * (128 / 130)) / 8,
  5: (32e9 * (128 / 130)) / 8,
  6: 7.563e9,
};

/** Bytes per second of a PCIe link in one direction; undefined for an unknown generation. */
export function pcieRate(generation: number, width: number): number | undefined {
  const lane = laneRates[generation];
  return lane === undefined || width < 1 ? undefined : lane * width;
}

function gigabytes(bytesPerSecond: number): string {
  return `${(bytesPerSecond / 1e9).toFixed(2)} GB/s`;
}

/** The link's maximum, not its current state: an idle one slows down. */
function pcieOf(health: NativeGpuHealth | null): ExpectedRate | undefined {
  const generation = health?.maxPcieGeneration ?? health?.pcieGeneration;
  const width = health?.maxPcieWidth ?? health?.pcieWidth;
  if (generation === undefined || generation === null || width === undefined || width === null)
    return undefined;
  const bytesPerSecond = pcieRate(generation, width);
  if (bytesPerSecond === undefined) return undefined;
  const basis = `PCIe generation ${generation} x${width}, ${gigabytes(bytesPerSecond)}`;
  return { bytesPerSecond, basis, over: 'pcie' };
}

/** The lowest of the known rates. */
export function narrowest(rates: readonly (ExpectedRate | undefined)[]): ExpectedRate | undefined {
  return rates
    .filter((rate) => rate !== undefined)
    .reduce<ExpectedRate | undefined>(
      (least, rate) =>
        least === undefined || rate.bytesPerSecond < least.bytesPerSecond ? rate : least,
      undefined,
    );
}

/**
 * The rate of a copy over PCIe while another runs in the opposite direction: requests and acknowledgements share the
 * link with the other's data. Shares of a single direction's limit: nvbandwidth 0.58 to 0.62 on an A100 (generation 4,
 * its README), ours 0.78 to 0.83 on an H200 (generation 5) by copy engines. Multiprocessors wait for each load and get
 * 0.45 to 0.57 there.
 */
export function besideOpposite(
  limit: ExpectedRate | undefined,
  byKernel: boolean,
): ExpectedRate | undefined {
  if (limit?.over !== 'pcie') return limit;
  const share = byKernel ? 0.55 : 0.75;
  return {
    ...limit,
    bytesPerSecond: limit.bytesPerSecond * share,
    linkBytesPerSecond: limit.bytesPerSecond,
    basis: `${(share * 100).toFixed(0)} % of ${limit.basis}, with as much the other way`,
  };
}

/**
 * Between page-locked host memory and a GPU. Undefined over NVLink-C2C: NVML reports a PCIe link that is not used, and
 * each direction of C2C has an unknown share.
 */
export function hostLimit(machine: Machine, gpu: number): ExpectedRate | undefined {
  const { health } = gpuOf(machine, gpu);
  return (health?.c2cLinks ?? 0) > 0 ? undefined : pcieOf(health);
}

/** Reads and writes within a GPU: both edges of the memory clock times the bus width. */
export function memoryLimit(machine: Machine, gpu: number): ExpectedRate | undefined {
  const { memoryClockKHz, memoryBusBits } = gpuOf(machine, gpu);
  if (memoryClockKHz <= 0 || memoryBusBits <= 0) return undefined;
  const bytesPerSecond = 2 * memoryClockKHz * 1e3 * (memoryBusBits / 8);
  const basis = `memory bus of ${memoryBusBits} bits at 2 x ${(memoryClockKHz / 1e3).toFixed(0)} MHz, ${gigabytes(bytesPerSecond)} read + written`;
  return { bytesPerSecond, basis, over: 'memory' };
}

/** From one GPU to another; `staged`: through host memory in spite of any link. */
export function pairLimit(
  machine: Machine,
  from: number,
  to: number,
  staged = false,
): ExpectedRate | undefined {
  const links = staged ? undefined : linksBetween(machine, from, to);
  if (links !== undefined) {
    const bytesPerSecond = links.expected * links.bytesPerSecond;
    const down = links.expected - links.active;
    const basis = `${links.expected} NVLinks x ${gigabytes(links.bytesPerSecond)}${down > 0 ? `, ${down} of them down` : ''}`;
    return { bytesPerSecond, basis, over: 'nvlink' };
  }
  // NVML may not know all links, so PCIe might be the wrong limit.
  if (!staged && [from, to].every((gpu) => hasUnknownLinks(machine, gpu))) return undefined;
  return narrowest([hostLimit(machine, from), hostLimit(machine, to)]);
}

/** The total rate of one GPU to or from these peers. */
export function manyLimit(
  machine: Machine,
  one: number,
  others: readonly number[],
): ExpectedRate | undefined {
  const pairs = others.map((other) => pairLimit(machine, one, other));
  const known = pairs.filter((rate) => rate !== undefined);
  if (known.length < others.length) return undefined;
  const sum = known.reduce((total, { bytesPerSecond }) => total + bytesPerSecond, 0);
  const over = known.every((rate) => rate.over === 'nvlink') ? 'nvlink' : 'pcie';
  const together: ExpectedRate = {
    bytesPerSecond: sum,
    basis: `${others.length} peers, ${gigabytes(sum)} together`,
    over,
  };
  const links = over === 'nvlink' ? linksOf(machine, one) : undefined;
  const own: ExpectedRate | undefined =
    links === undefined
      ? hostLimit(machine, one)
      : {
          bytesPerSecond: links.expected * links.bytesPerSecond,
          basis: `all ${links.expected} NVLinks of gpu:${one} x ${gigabytes(links.bytesPerSecond)}`,
          over,
        };
  return narrowest([together, own]);
}
