// What a copy may reach at best, from what NVML and the driver say of the links it goes over.
import { gpuOf, hasUnknownLinks, linksBetween, linksOf, type Machine } from './gpus.js';
import type { NativeGpuHealth } from '../../native/gpu.js';

/** A rate and where it comes from. */
export interface ExpectedRate {
  /** One direction; within a GPU, read plus written. */
  readonly bytesPerSecond: number;
  /** `18 NVLinks x 26.56 GB/s`, for reports. */
  readonly basis: string;
  readonly over: 'nvlink' | 'pcie' | 'memory';
  /** What the link itself carries, where the limit is what is left of it by experience. */
  readonly linkBytesPerSecond?: number;
}

// Of one lane after line coding (8b/10b, 128b/130b, flits with FEC from generation 6), one direction.
const laneRates: Readonly<Record<number, number>> = {
  1: 0.25e9,
  2: 0.5e9,
  3: (8e9 * (128 / 130)) / 8,
  4: (16e9 * (128 / 130)) / 8,
  5: (32e9 * (128 / 130)) / 8,
  6: 7.563e9,
};

/** Bytes a second of a PCIe link in one direction; undefined for a generation that is not known. */
export function pcieRate(generation: number, width: number): number | undefined {
  const lane = laneRates[generation];
  return lane === undefined || width < 1 ? undefined : lane * width;
}

function gigabytes(bytesPerSecond: number): string {
  return `${(bytesPerSecond / 1e9).toFixed(2)} GB/s`;
}

/** The widest and fastest that the link can be, not what it happens to be: an idle one slows down. */
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

/** The least of those that are known. */
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
 * What a copy over PCIe has left while another goes the opposite way between the same two places: requests and
 * acknowledgements of one direction share the link with the data of the other. Of one way's limit nvbandwidth reaches
 * 0.58 to 0.62 on an A100 (generation 4, its README), we 0.78 to 0.83 on an H200 (generation 5) by the copy engines;
 * multiprocessors, which wait for each load, 0.45 to 0.57 there.
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
 * Between page-locked host memory and a GPU. None over NVLink-C2C: NVML names the PCIe link there too, which carries none
 * of it, and of the C2C links each direction reaches another share that nobody says.
 */
export function hostLimit(machine: Machine, gpu: number): ExpectedRate | undefined {
  const { health } = gpuOf(machine, gpu);
  return (health?.c2cLinks ?? 0) > 0 ? undefined : pcieOf(health);
}

/** Reading and writing within a GPU: both edges of its memory clock, over the width of its bus. */
export function memoryLimit(machine: Machine, gpu: number): ExpectedRate | undefined {
  const { memoryClockKHz, memoryBusBits } = gpuOf(machine, gpu);
  if (memoryClockKHz <= 0 || memoryBusBits <= 0) return undefined;
  const bytesPerSecond = 2 * memoryClockKHz * 1e3 * (memoryBusBits / 8);
  const basis = `memory bus of ${memoryBusBits} bits at 2 x ${(memoryClockKHz / 1e3).toFixed(0)} MHz, ${gigabytes(bytesPerSecond)} read + written`;
  return { bytesPerSecond, basis, over: 'memory' };
}

/** From one GPU to another; `staged`: through the host's memory although there may be a link. */
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
  // They may be joined by links that NVML does not tell of: PCIe would be the limit of something else.
  if (!staged && [from, to].every((gpu) => hasUnknownLinks(machine, gpu))) return undefined;
  return narrowest([hostLimit(machine, from), hostLimit(machine, to)]);
}

/** All that one GPU takes from, or gives to, these peers at once. */
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
