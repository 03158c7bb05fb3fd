// Published figures of all-reduce over the GPUs of one machine. What a link carries is the limit of copies, and stands
// there; of what lies between hosts nothing is known here.
import type { GpuEnvironment } from '../results/result.js';
import { mebibyte } from '../results/units.js';

/** Figures are of large sums: the fixed cost of a call takes a share of smaller ones. */
export const publishedFrom = 256 * mebibyte;

interface PublishedSum {
  readonly machine: string;
  readonly source: string;
  /** The least that was published. */
  readonly busGBps: number;
  readonly gpus: number;
  /** As the driver calls them. */
  readonly model: RegExp;
  /** That each has, up or down; of 0 none is up. */
  readonly nvlinks: number;
}

const sxmH100 = /^NVIDIA H100(?!.*(?:PCIe|NVL))/;
// prettier-ignore
const publishedSums: readonly PublishedSum[] = [
  { machine: '8 x H100 SXM5', source: 'Alaya NeW', busGBps: 460, gpus: 8, model: sxmH100, nvlinks: 18 },
  { machine: '8 x A100 SXM4', source: 'Alaya NeW', busGBps: 230, gpus: 8, model: /^NVIDIA A100-SXM4/, nvlinks: 12 },
  { machine: '8 x H100 PCIe', source: 'Alaya NeW', busGBps: 35, gpus: 8, model: /^NVIDIA H100 PCIe/, nvlinks: 0 },
];

/** What was published of a machine with just these GPUs. */
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
