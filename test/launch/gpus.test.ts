// Which GPU a rank gets: without a driver, from what the machine and the environment say.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import {
  driverIsLoaded,
  gpuShare,
  installedGpus,
  localPlace,
  ownShare,
  sharedText,
  visibleGpus,
} from '../../lib/launch/gpus.js';
import { coresNear, shareCoresNear } from '../../lib/launch/gpu-cores.js';
import { keeperCores, keeperGpu } from '../../lib/launch/keeper-gpu.js';
import { folderOfEachTest } from '../support/folders.js';

let root = '';
folderOfEachTest((made) => (root = made));

function install(gpus: number): void {
  for (let gpu = 0; gpu < gpus; ++gpu) {
    mkdirSync(join(root, `proc/driver/nvidia/gpus/0000:${gpu}b:00.0`), { recursive: true });
  }
}

describe('GPUs of a machine', () => {
  it('are counted from what the driver shows, or from the devices of a container', () => {
    expect(installedGpus(root)).toBe(0);
    mkdirSync(join(root, 'dev'));
    for (const name of ['nvidia0', 'nvidia1', 'nvidiactl', 'nvidia-uvm']) {
      writeFileSync(join(root, 'dev', name), '');
    }
    expect(installedGpus(root)).toBe(2);
    install(4);
    expect(installedGpus(root)).toBe(4);
  });

  it.each([
    ['2,0', ['2', '0']],
    [' 1 , GPU-8f2e-11 ', ['1', 'GPU-8f2e-11']],
    ['MIG-GPU-8f2e/1/0', ['MIG-GPU-8f2e/1/0']],
    ['0,-1,1', ['0']],
    ['-1', []],
    ['', []],
    ['NoDevFiles', []],
    [undefined, ['0', '1', '2']],
  ])('that CUDA_VISIBLE_DEVICES=%s lets a process see', (list, expected) => {
    install(3);
    expect(visibleGpus({ CUDA_VISIBLE_DEVICES: list }, root)).toEqual(expected);
  });
});

describe('the place among the ranks of a host', () => {
  it.each([
    [{ GRADLINK_LOCAL_RANK: '1', GRADLINK_LOCAL_SIZE: '4', SLURM_LOCALID: '0' }, 1, 4],
    [{ OMPI_COMM_WORLD_LOCAL_RANK: '2', OMPI_COMM_WORLD_LOCAL_SIZE: '3' }, 2, 3],
    [{ MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '2' }, 1, 2],
    [{ SLURM_LOCALID: '3', SLURM_STEP_TASKS_PER_NODE: '4(x2)' }, 3, 4],
    [{ SLURM_LOCALID: '3', SLURM_STEP_TASKS_PER_NODE: '4,2' }, 3, undefined],
    [{ LOCAL_RANK: '0', LOCAL_WORLD_SIZE: '2' }, 0, 2],
  ])('%j', (env, localRank, localSize) => {
    expect(localPlace(env)).toEqual({
      localRank,
      ...(localSize === undefined ? {} : { localSize }),
    });
  });
});

describe('the GPU of a rank', () => {
  const shares = (ranks: number, gpus: readonly string[]) =>
    Array.from({ length: ranks }, (_, localRank) =>
      gpuShare({ localRank, localSize: ranks }, gpus),
    );

  it('is one of its own while these last, then ranks share', () => {
    const own = shares(2, ['0', '1', '2']);
    expect(own.map((share) => share?.gpu)).toEqual(['0', '1']);
    expect(own.map((share) => share?.ranks)).toEqual([1, 1]);
    const shared = shares(5, ['3', '1']);
    expect(shared.map((share) => share?.gpu)).toEqual(['3', '1', '3', '1', '3']);
    expect(shared.map((share) => share?.ranks)).toEqual([3, 2, 3, 2, 3]);
    expect(sharedText('ranks', shared[0]!)).toMatch(/\b3 ranks .*GPU 3: .*\b2 GPUs/);
    expect(sharedText('ranks', own[0]!)).toBeUndefined();
    expect(shares(1, [])).toEqual([undefined]);
  });

  it('is what the launcher gave, or Slurm, or follows from the place', () => {
    install(4);
    const place = { GRADLINK_LOCAL_RANK: '2', GRADLINK_LOCAL_SIZE: '4' };
    expect(ownShare(place, root)).toEqual({ gpu: '2', gpus: 4, ranks: 1 });
    expect(ownShare({ ...place, CUDA_VISIBLE_DEVICES: '7,5,3' }, root)?.gpu).toBe('3');
    const launched = { ...place, CUDA_VISIBLE_DEVICES: '3', GRADLINK_OWN_GPU: '3,2,2' };
    expect(ownShare(launched, root)).toEqual({ gpu: '3', gpus: 2, ranks: 2 });
    // Each task sees its own GPU as number 0.
    const task = { SLURM_LOCALID: '3', SLURM_STEP_TASKS_PER_NODE: '4', CUDA_VISIBLE_DEVICES: '0' };
    expect(ownShare(task, root)).toMatchObject({ gpu: '0', ranks: 4 });
    expect(ownShare({ ...task, SLURM_GPUS_PER_TASK: '1' }, root)).toMatchObject({ ranks: 1 });
    expect(ownShare({}, root)).toBeUndefined();
  });

  it('of a worker that mpirun started is given and shared alike', () => {
    const env = {
      GRADLINK_GPU_PER_WORKER: '1',
      GRADLINK_NUM_SERVERS: '0',
      CUDA_VISIBLE_DEVICES: '4,7',
    };
    const first = keeperGpu({ localRank: 0, localSize: 3 }, env);
    expect(first.variables).toEqual({
      CUDA_VISIBLE_DEVICES: '4',
      TF_FORCE_GPU_ALLOW_GROWTH: 'true',
      GRADLINK_OWN_GPU: '4,2,2',
    });
    expect(first.warning).toMatch(/^gradlink launch: 2 workers .*GPU 4: .*\n$/);
    // Said once a GPU.
    const third = keeperGpu({ localRank: 2, localSize: 3 }, env);
    expect(third.variables).toEqual(first.variables);
    expect(third.warning).toBeUndefined();
    expect(keeperGpu({ localRank: 1, localSize: 3 }, env).warning).toBeUndefined();
    // A server among them is not told from a worker.
    const beside = keeperGpu({ localRank: 0, localSize: 3 }, { ...env, GRADLINK_NUM_SERVERS: '1' });
    expect(beside.warning).toBeUndefined();
    const asked = { ...env, GRADLINK_GPU_PER_WORKER: undefined };
    expect(keeperGpu({ localRank: 0, localSize: 3 }, asked)).toEqual({ variables: {} });
  });
});

describe('several GPUs of a rank', () => {
  it("are neighbours, and what is left over is nobody's", () => {
    const gpus = ['0', '1', '2', '3', '4'];
    const shares = [0, 1, 2].map((localRank) => gpuShare({ localRank, localSize: 3 }, gpus, 2));
    expect(shares).toEqual([
      { gpu: '0,1', gpus: 5, ranks: 2 },
      { gpu: '2,3', gpus: 5, ranks: 1 },
      { gpu: '0,1', gpus: 5, ranks: 2 },
    ]);
    expect(sharedText('workers', shares[0]!, 2)).toBe(
      '2 workers of this host share GPUs 0,1: it has 5 GPUs; start no more workers on a host than 2, for 2 GPUs each',
    );
    const few = gpuShare({ localRank: 1, localSize: 2 }, ['0', '1'], 4)!;
    expect(few.gpu).toBe('0,1');
    expect(sharedText('workers', { ...few, ranks: 1 }, 2)).toBeUndefined();
    expect(sharedText('workers', few, 4)).toMatch(/\b2 GPUs, .*\b4: .*--gpus-per-worker/);
  });

  it('are told to the rank as its own', () => {
    const env = {
      GRADLINK_GPU_PER_WORKER: '2',
      GRADLINK_NUM_SERVERS: '0',
      CUDA_VISIBLE_DEVICES: '4,7,1,0',
    };
    const { variables } = keeperGpu({ localRank: 1, localSize: 2 }, env);
    expect(variables).toMatchObject({ CUDA_VISIBLE_DEVICES: '1,0', GRADLINK_OWN_GPU: '1+0,4,1' });
    expect(ownShare({ ...env, ...variables })).toEqual({ gpu: '1,0', gpus: 4, ranks: 1 });
    expect(variables).not.toHaveProperty('CUDA_DEVICE_ORDER');
  });
});

describe('the cores next to GPUs', () => {
  /** Two sockets of four cores and two GPUs each. */
  const place = (): void => {
    ['0000:1b:00.0', '0000:3b:00.0', '0000:9b:00.0', '0000:DB:00.0'].forEach((address, gpu) => {
      const told = join(root, 'proc/driver/nvidia/gpus', address);
      mkdirSync(told, { recursive: true });
      writeFileSync(
        join(told, 'information'),
        `Model: \t\t X\nGPU UUID: \t GPU-${gpu}a-b\nBus Location: ${address}\n`,
      );
      const device = join(root, 'sys/bus/pci/devices', address.toLowerCase());
      mkdirSync(device, { recursive: true });
      writeFileSync(join(device, 'local_cpulist'), gpu < 2 ? '0-3\n' : '4-7\n');
    });
  };
  const all = [0, 1, 2, 3, 4, 5, 6, 7];

  it('are found by number and by id', () => {
    place();
    expect(coresNear(['1'], root)).toEqual([0, 1, 2, 3]);
    expect(coresNear(['3'], root)).toEqual([4, 5, 6, 7]);
    expect(coresNear(['GPU-2a'], root)).toEqual([4, 5, 6, 7]);
    expect(coresNear(['0', '2'], root)).toEqual(all);
    expect(coresNear(['9', 'MIG-1'], root)).toEqual([]);
  });

  it('are shared by those whose GPUs hang there', () => {
    place();
    expect(shareCoresNear([['0'], ['2'], ['3']], all, root)).toEqual([
      [0, 1, 2, 3],
      [4, 5],
      [6, 7],
    ]);
    // Of a control group that has no core of the second node.
    expect(shareCoresNear([['0'], ['2']], [2, 3, 8], root)).toEqual([
      [2, 3],
      [2, 3, 8],
    ]);
    expect(shareCoresNear([['0', '2']], all, root)).toBeUndefined();
    expect(shareCoresNear([['0'], ['2']], all, join(root, 'none'))).toBeUndefined();
  });

  it('are what a worker that mpirun started runs on; servers run anywhere', () => {
    place();
    const env = { GRADLINK_GPU_PER_WORKER: '2', GRADLINK_NUM_SERVERS: '1' };
    const of = (localRank: number) =>
      keeperCores({ localRank, localSize: 3, localWorkers: 2 }, env, all, root);
    expect([0, 1].map(of)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
    expect(of(2)).toEqual([5, 6, 7]);
    const none = { ...env, GRADLINK_BIND_TO: 'none' };
    expect(keeperCores({ localRank: 0, localSize: 1 }, none, all, root)).toBeUndefined();
  });
});

it('a driver that is loaded is seen', () => {
  const maps = join(root, 'maps');
  writeFileSync(maps, '7f00-7f01 r-xp 0 08:01 7 /usr/lib/libc.so.6\n');
  expect(driverIsLoaded(maps)).toBe(false);
  writeFileSync(maps, '7f00-7f01 r-xp 0 08:01 7 /usr/lib/libcuda.so.535.1\n');
  expect(driverIsLoaded(maps)).toBe(true);
  expect(driverIsLoaded(join(root, 'none'))).toBe(false);
});
