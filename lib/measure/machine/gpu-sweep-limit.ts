// The limit of collectives between GPUs: the links of the slowest GPU, or its memory if all ranks share one.
import type { Volume } from '../../results/bandwidth.js';
import type { ExpectedTime } from '../../results/case.js';
import { hostLimit, memoryLimit, narrowest, type ExpectedRate } from './gpu-rates.js';
import { linksOf, type Machine } from './gpus.js';

/** The limit of a sweep on GPUs. */
export interface GpuSweepLimit {
  readonly gpus: true;
  /** Between GPUs, one direction of one GPU's links; within one, its memory's reads and writes. */
  readonly rate: ExpectedRate | undefined;
}

/** For ranks on these GPUs, one each; a GPU may be repeated. */
export function gpuSweepLimit(machine: Machine, ordinals: readonly number[]): GpuSweepLimit {
  const distinct = [...new Set(ordinals)];
  const [only] = distinct;
  if (only === undefined) return { gpus: true, rate: undefined };
  if (distinct.length === 1) return { gpus: true, rate: memoryLimit(machine, only) };
  return { gpus: true, rate: narrowest(distinct.map((gpu) => ownLinks(machine, gpu))) };
}

function ownLinks(machine: Machine, gpu: number): ExpectedRate | undefined {
  const links = linksOf(machine, gpu);
  if (links === undefined) return hostLimit(machine, gpu);
  return {
    bytesPerSecond: links.expected * links.bytesPerSecond,
    basis: `${links.expected} NVLinks x ${(links.bytesPerSecond / 1e9).toFixed(2)} GB/s of a GPU`,
    over: 'nvlink',
  };
}

/**
 * The lower bound of a call's time.
 *
 * @param ncclSeconds NCCL's estimate, which knows its algorithms; null without one
 */
export function expectedOf(
  volume: Volume,
  { rate }: GpuSweepLimit,
  ncclSeconds: number | null,
): ExpectedTime | undefined {
  const busBytes = volume.bytes * volume.busFactor;
  if (ncclSeconds !== null && ncclSeconds > 0 && busBytes > 0) {
    return {
      bytes: busBytes,
      bytesPerSecond: busBytes / ncclSeconds,
      formula: 'bus bytes',
      basis: `NCCL's own estimate of ${(ncclSeconds * 1e6).toFixed(2)} us`,
    };
  }
  if (rate === undefined) return undefined;
  const within = rate.over === 'memory';
  const bytes = within ? volume.mustMoveBytes : busBytes;
  if (!(bytes > 0)) return undefined;
  return {
    bytes,
    bytesPerSecond: rate.bytesPerSecond,
    formula: within ? volume.mustMoveFormula : 'bus bytes: what each GPU must send or receive',
    basis: rate.basis,
  };
}
