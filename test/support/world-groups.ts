// Worlds of GPUs, of processes that hold several too, as scripts of tests start them.
import { expect } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import type { GpuScripts } from './gpu-processes.js';
import { netns } from './hosts.js';
import { well, type Ended, type Running } from './processes.js';
import { freePort, placeOf, startOverTcp } from './tcp.js';

export const ends = (running: readonly Running[]): Promise<Ended[]> =>
  Promise.all(running.map((one) => one.ended));

/** Ranks of processes with so many GPUs. */
export const sizeOf = (counts: readonly number[]): number =>
  counts.reduce((sum, one) => sum + Math.max(one, 1), 0);

/** A world of so many GPUs in each process; a process of 0 holds one rank by `gpu`, as a Communicator. */
export const world = (counts: readonly number[], options = ''): string => `
  const counts = ${JSON.stringify(counts)};
  const process_ = Number(process.env.RANK ?? process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK);
  const firstGpu = counts.slice(0, process_).reduce((sum, one) => sum + Math.max(one, 1), 0);
  const own = Array.from({ length: counts[process_] }, (_, i) => firstGpu + i);
  const group = await Communicator.world({
    backend: 'nccl', ...(own.length === 0 ? { gpu: firstGpu } : { gpus: own }), ${options}
  });
  const ranks = group.ranks ?? [group.rank];
  const { size } = group;
  /** A buffer for each rank held in a part, of what its GPU is given. */
  const buffersOf = (part, valueOf, length = 100) => Promise.all(part.gpus.map(async (gpu, i) => {
    const buffer = DeviceBuffer.alloc(gpu, 'float32', length);
    await buffer.fill(valueOf(i));
    return buffer;
  }));
  const last = async (buffer) => (await buffer.copyTo()).at(-1);
  const lasts = (buffers) => Promise.all(buffers.map(last));
`;

export const alone = { LOCAL_WORLD_SIZE: '1', GRADLINK_RANKS_PER_NODE: '1' };

/** What each process reported, in their order. */
export async function reportsOf(
  scripts: GpuScripts,
  counts: readonly number[],
  source: string,
): Promise<(readonly unknown[])[]> {
  const ended = await ends(await startOverTcp(scripts, counts.length, source, scripts.env(alone)));
  for (const one of ended) expect(one).toMatchObject(well);
  scripts.expectNothingLeft();
  return ended.map(({ reports }) => reports);
}

/** A process on each of two hosts of this name, which meet at the first one's address. Both have GPUs of the same numbers. */
export async function startOnHosts(
  scripts: GpuScripts,
  name: string,
  address: string,
  source: string,
): Promise<Running[]> {
  const port = await freePort();
  return ['a', 'b'].map((host, rank) =>
    scripts.startUnder([netns, 'enter', `${name}-${host}`], source, {
      ...scripts.env(placeOf(rank, 2, port, address)),
      LOCAL_RANK: '0',
      LOCAL_WORLD_SIZE: '1',
      NCCL_SOCKET_IFNAME: `${name}-to`,
    }),
  );
}

export function needs(count: number, context: { skip: (why: string) => void }): void {
  if (gpuDevices().length < count) context.skip(`needs ${count} GPUs`);
}
