// The GPU ranks of a sweep: of this process, or of this process's place in a job.
import { hostname } from 'node:os';

import { Communicator, nativeOf } from '../../communicator/communicator.js';
import { native } from '../../native/load.js';
import type { NativeCommunicator } from '../../native/communicator.js';
import { textsOfRanks } from '../../communicator/joining/hosts.js';
import { gpuMessages } from '../hosts/messages.js';
import { jobSize } from '../job.js';
import {
  estimateOnAll,
  partOf,
  ranksOfJob,
  throughHost,
  timeOnAll,
  type SweepWorld,
} from './world.js';

export interface GpuWorldOptions {
  /** One for each rank of this process; in a job this process's, or empty: assigned by rank. */
  readonly gpus: readonly number[];
  /** Each rank has its own communicator and thread, like nccl-tests' -t; otherwise one thread drives them all. */
  readonly threads: boolean;
  /** Of each call, and until all ranks have joined. */
  readonly timeoutMs: number;
}

/**
 * Opens this process's rank of the job, or without a job one for each GPU.
 *
 * @throws GradlinkError ERR_BACKEND_UNAVAILABLE without a driver or NCCL, ERR_TIMEOUT if ranks are missing
 */
export async function openGpuWorld(options: GpuWorldOptions): Promise<SweepWorld> {
  return jobSize() === undefined ? ofProcess(options) : ofJob(options);
}

/** `gpu:0 [0000:1b:00.0] NVIDIA H200` for a GPU of this process. */
function deviceName(gpu: number): string {
  try {
    const { name, pciBusId } = native().gpuInfo(gpu);
    return `gpu:${gpu} [${pciBusId}] ${name}`;
  } catch {
    // The other ranks wait for this text.
    return `gpu:${gpu}`;
  }
}

/** NVML limits a name to 96. */
const mostDeviceBytes = 160;

async function ofJob({ gpus, timeoutMs }: GpuWorldOptions): Promise<SweepWorld> {
  const [gpu] = gpus;
  // For data that NCCL does not carry: the ranks' processes and hosts.
  const control = await Communicator.world({ timeoutMs });
  const world = await Communicator.world({
    backend: 'nccl',
    timeoutMs,
    ...(gpu === undefined ? {} : { gpu }),
  });
  return worldOfJob(control, world);
}

async function worldOfJob(control: Communicator, world: Communicator<'gpu'>): Promise<SweepWorld> {
  const [own = -1] = nativeOf(world).gpus;
  const places = await ranksOfJob(control);
  // Each rank asks itself: if each process sees one GPU, all are gpu:0.
  const devices = await textsOfRanks(control, deviceName(own), mostDeviceBytes);
  const ranks = places.map((place, rank) => ({ ...place, device: devices[rank] ?? '' }));
  return {
    size: world.size,
    rank: world.rank,
    processes: world.size,
    ranks,
    time: (call) => native().timeCollective(nativeOf(world), call),
    estimate: (calls, ms) => native().estimateCollectives(nativeOf(world), calls, ms),
    ...throughHost(control),
    openMessages: (bytes) => gpuMessages(world, own, bytes),
    split: async (color) => worldOfJob(await partOf(control, color), await partOf(world, color)),
    close: async () => {
      await world.close();
      await control.close();
    },
  };
}

async function ofProcess({ gpus, threads, timeoutMs }: GpuWorldOptions): Promise<SweepWorld> {
  const members = threads ? await joinAll(gpus, timeoutMs) : [await openOne(gpus, timeoutMs)];
  const host = hostname();
  return {
    size: gpus.length,
    rank: 0,
    processes: 1,
    ranks: gpus.map((gpu, rank) => ({ rank, pid: process.pid, host, device: deviceName(gpu) })),
    time: (call) => timeOnAll(members, call),
    estimate: (calls, ms) => estimateOnAll(members, calls, ms),
    barrier: () => Promise.resolve(),
    gather: (values) => Promise.resolve([values]),
    close: async () => {
      await Promise.all(members.map((member) => member.close()));
    },
  };
}

function openOne(gpus: readonly number[], timeoutMs: number): Promise<NativeCommunicator> {
  return native().NativeCommunicator.openNccl(Int32Array.from(gpus), timeoutMs);
}

async function joinAll(gpus: readonly number[], timeoutMs: number): Promise<NativeCommunicator[]> {
  const meeting = { job: '', name: 'collectives of GPUs', size: gpus.length, timeoutMs };
  const joining = gpus.map((gpu, rank) =>
    native().NativeCommunicator.joinNccl(
      { ...meeting, rank, threads: true },
      Int32Array.of(gpu),
      'always',
    ),
  );
  const settled = await Promise.allSettled(joining);
  const joined = settled.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed === undefined) return joined;
  await Promise.allSettled(joined.map((one) => one.close()));
  throw failed.reason;
}
