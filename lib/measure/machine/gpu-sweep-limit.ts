// What collectives between GPUs may reach: the links of the narrowest GPU, or its memory where all ranks share one.
import type { Volume } from '../../results/bandwidth.js';
import type { ExpectedTime } from '../../results/case.js';
import { hostLimit, memoryLimit, narrowest, type ExpectedRate } from './gpu-rates.js';
import { linksOf, type Machine } from './gpus.js';

/** The limit of a sweep on GPUs. */
export interface GpuSweepLimit {
  readonly gpus: true;
  /** Between GPUs one direction of one GPU's links; within one GPU what its memory reads and writes. */
  readonly rate: ExpectedRate | undefined;
}

/** Of ranks on these GPUs, one for each; a GPU may be there several times. */
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
 * What one call is expected to take at best.
 *
 * @param ncclSeconds NCCL's own estimate, which knows its algorithms; null where it has none
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
