// Published all-reduce figures for the GPUs of one machine. Links have their own limits; there are no figures between
// hosts.
import type { GpuEnvironment } from '../results/result.js';
import { mebibyte } from '../results/units.js';

/** Published figures are for large arrays: the fixed cost of a call is a larger share of smaller ones. */
export const publishedFrom = 256 * mebibyte;

interface PublishedSum {
  readonly machine: string;
  readonly source: string;
  /** The lowest published figure. */
  readonly busGBps: number;
  readonly gpus: number;
  /** The driver's name for it. */
  readonly model: RegExp;
  /** Links per GPU, up or down; with 0, none may be up. */
  readonly nvlinks: number;
}

const sxmH100 = /^NVIDIA H100(?!.*(?:PCIe|NVL))/;
// prettier-ignore
const publishedSums: readonly PublishedSum[] = [
  { machine: '8 x H100 SXM5', source: 'Alaya NeW', busGBps: 460, gpus: 8, model: sxmH100, nvlinks: 18 },
  { machine: '8 x A100 SXM4', source: 'Alaya NeW', busGBps: 230, gpus: 8, model: /^NVIDIA A100-SXM4/, nvlinks: 12 },
  { machine: '8 x H100 PCIe', source: 'Alaya NeW', busGBps: 35, gpus: 8, model: /^NVIDIA H100 PCIe/, nvlinks: 0 },
];

/** The published figure for exactly these GPUs. */
export function publishedOf(gpus: GpuEnvironment | undefined): PublishedSum | undefined {
  const devices = gpus?.devices ?? [];
  return publishedSums.find(
    ({ gpus: count, model, nvlinks }) =>
      devices.length === count &&
      devices.every(
        ({ name, links, activeLinks }) =>
          model.test(name) && (nvlinks === 0 ? activeLinks : links) === nvlinks,
      ),
  );
}
