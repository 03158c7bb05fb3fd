// What does not compile of memory: arrays of the host given to GPUs, and the other way round. Checked by `tsc --noEmit`,
// to which an unused mark is an error; never run.
import { expectTypeOf } from 'vitest';

import type {
  Communicator,
  DeviceBuffer,
  LocalGroup,
  Memory,
  WorldGroup,
} from '../../lib/index.js';
import { Communicator as Ways } from '../../lib/index.js';

declare const onHost: Communicator;
declare const onGpu: Communicator<'gpu'>;
declare const somewhere: Communicator<Memory>;
declare const hostGroup: LocalGroup;
declare const gpuGroup: LocalGroup<'gpu'>;
declare const array: Float32Array;
declare const buffer: DeviceBuffer<'float32'>;

export async function arrays(): Promise<void> {
  // @ts-expect-error -- a buffer of a GPU
  await onHost.allReduce(buffer);
  // @ts-expect-error -- an array of the host
  await onGpu.allReduce(array);
  // @ts-expect-error -- an array of the host
  await onGpu.send(array, { to: 1 });
  // @ts-expect-error -- an array of the host
  await onGpu.neighborAllReduce(array);
  // @ts-expect-error -- buffers of GPUs
  await hostGroup.allReduce([buffer]);
  // @ts-expect-error -- arrays of the host
  await gpuGroup.allReduce([array]);
  // @ts-expect-error -- what a GPU cannot make
  await onGpu.scatter(null, { dtype: 'float32', count: 1 });
  expectTypeOf(
    await onHost.scatter(null, { dtype: 'float32', count: 1 }),
  ).toEqualTypeOf<Float32Array>();
  expectTypeOf(await onGpu.allGather(buffer)).toEqualTypeOf<DeviceBuffer<'float32'>>();
  expectTypeOf(await gpuGroup.reduce([buffer])).toEqualTypeOf<
    DeviceBuffer<'float32'> | undefined
  >();
}

export async function whatOnlyOneHas(): Promise<void> {
  await onGpu.allReduce(buffer, { scale: 0.5 });
  await gpuGroup.allReduce([buffer], { scale: [0.5] });
  // @ts-expect-error -- one rank has one factor
  await onGpu.allReduce(buffer, { scale: [0.5] });
  await onHost.allReduce(array, { scale: 0.5, postscale: 2 });
  onHost.setFusion();
  hostGroup.setFusion();
  // @ts-expect-error -- of ranks in the memory of the host
  onGpu.setFusion();
  // @ts-expect-error -- of ranks in the memory of the host
  onGpu.allocShared('float32', 1);
}

export async function waysIn(): Promise<void> {
  expectTypeOf(Ways.local(2)).toEqualTypeOf<LocalGroup>();
  expectTypeOf(await Ways.nccl()).toEqualTypeOf<LocalGroup<'gpu'>>();
  expectTypeOf(await Ways.nccl().then((group) => group.openRanks())).toEqualTypeOf<
    readonly Communicator<'gpu'>[]
  >();
  expectTypeOf(await Ways.world()).toEqualTypeOf<Communicator>();
  expectTypeOf(await Ways.world({ backend: 'mpi' })).toEqualTypeOf<Communicator>();
  expectTypeOf(await Ways.world({ backend: 'mpi', gpu: 0 })).toEqualTypeOf<Communicator<'gpu'>>();
  expectTypeOf(await Ways.world({ backend: 'nccl' })).toEqualTypeOf<Communicator<'gpu'>>();
  const group = await Ways.world({ backend: 'nccl', gpus: [0, 1] });
  expectTypeOf(group).toEqualTypeOf<WorldGroup>();
  expectTypeOf(group).not.toExtend<Communicator<Memory>>();
  expectTypeOf(group).not.toExtend<LocalGroup<'gpu'>>();
  expectTypeOf(await group.allReduce([buffer])).toEqualTypeOf<DeviceBuffer<'float32'>[]>();
  // @ts-expect-error -- a list, one for each rank held
  await group.allReduce(buffer);
  // @ts-expect-error -- for one rank a process
  await group.split(0);
  // @ts-expect-error -- several ranks of this process are NCCL's
  await Ways.world({ backend: 'mpi', gpus: [0, 1] });
  // @ts-expect-error -- one or several
  await Ways.world({ backend: 'nccl', gpu: 0, gpus: [0, 1] });
  expectTypeOf(await onGpu.split(0)).toEqualTypeOf<Communicator<'gpu'> | null>();
  // One may be taken for either where the arrays may be of either kind, and not back.
  expectTypeOf(onHost).toExtend<Communicator<Memory>>();
  expectTypeOf(onGpu).toExtend<Communicator<Memory>>();
  expectTypeOf(somewhere).not.toExtend<Communicator>();
  expectTypeOf(onGpu).not.toExtend<Communicator>();
  expectTypeOf(gpuGroup).not.toExtend<LocalGroup>();
}
