// Communicators that hold a rank for each GPU of this process.
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  expectTypeOf,
  it,
} from 'vitest';

import { Communicator, type LocalGroup } from '../../lib/communicator/communicator.js';
import { reduceOps } from '../../lib/communicator/calls/reduce-op.js';
import { gpuDevices } from '../../lib/gpu/devices.js';
import { DeviceBuffer } from '../../lib/tensor/device-buffer.js';
import { commonDtypes, type CommonDType } from '../../lib/tensor/dtype.js';
import { errorWith } from '../support/errors.js';
import { arrayOf, valuesOf } from '../support/numbers.js';
import { expectCall, input, methods, reduced, type Kind } from '../support/collective-rules.js';
import { together } from '../support/subjects.js';

const gpus = gpuDevices().map(({ ordinal }) => ordinal);
/** As many ranks as there are GPUs: NCCL takes one a GPU. */
const sizes = [1, 2, 3, 4].filter((n) => n <= gpus.length);
const lengths = [0, 1, 13];
const large = 70_001;
/** Every type on one number of GPUs, and on the others one: how ranks divide a call does not depend on the type. */
const dtypesFor = (n: number) => (n === sizes.at(-1) ? commonDtypes : (['float32'] as const));

const made: DeviceBuffer[] = [];
const own = <B extends DeviceBuffer>(buffer: B): B => {
  made.push(buffer);
  return buffer;
};
afterEach(() => made.splice(0).forEach((buffer) => buffer.dispose()));

async function bufferOf<K extends CommonDType>(
  device: number,
  dtype: K,
  values: readonly number[],
) {
  const buffer = own(DeviceBuffer.alloc<CommonDType>(device, dtype, values.length));
  await buffer.copyFrom(arrayOf(dtype, values));
  return buffer as DeviceBuffer<K>;
}
const blank = <K extends CommonDType>(device: number, dtype: K, length: number) =>
  own(DeviceBuffer.alloc(device, dtype, length));

async function expectValues(
  buffers: readonly (DeviceBuffer | undefined)[],
  expected: readonly (readonly number[] | undefined)[],
) {
  const found = await Promise.all(
    buffers.map(async (one) => one && valuesOf(one.dtype as CommonDType, await one.copyTo())),
  );
  expect(found).toEqual(expected);
}
const arrays: Kind<DeviceBuffer> = {
  make: (dtype, rank, values) => bufferOf(gpus[rank]!, dtype as CommonDType, values),
  async check(buffer, wanted, { dtype, length }) {
    own(buffer);
    const values = valuesOf(dtype, await buffer.copyTo());
    // Without one of its own, a sum.
    expect(values).toEqual(wanted ?? Array<number>(length).fill(0));
  },
};

describe.each(sizes)('on %i GPUs', (n) => {
  const all = gpus.slice(0, n);
  let group: LocalGroup<'gpu'>;
  beforeAll(async () => {
    group = await Communicator.nccl({ gpus: all });
  });
  afterAll(() => group.close());

  const inputsOf = (dtype: CommonDType, op: (typeof reduceOps)[number], length: number) =>
    all.map((rank) => input(dtype, op, rank, n, length));
  const buffersOf = (dtype: CommonDType, inputs: readonly (readonly number[])[]) =>
    Promise.all(inputs.map((values, i) => bufferOf(all[i]!, dtype, values)));

  it('says who it holds', () => {
    expect(group).toMatchObject({ backend: 'nccl', size: n, gpus: all, memory: 'gpu' });
  });

  it.each(dtypesFor(n))('every collective of %s is right, in place and not', async (dtype) => {
    const subject = together(group);
    for (const method of methods) {
      // How operations and lengths are passed on does not depend on the call.
      const all = method === 'allReduce' && dtype === 'float32';
      for (const op of method === 'allReduce' ? reduceOps : (['sum'] as const)) {
        for (const count of all && op === 'sum' ? [...lengths, large] : [13]) {
          await expectCall(subject, arrays, { method, dtype, op, n, root: n - 1, count });
        }
      }
    }
    await group.barrier();
  });

  it('takes parts of buffers', async () => {
    const wholes = await buffersOf('int32', inputsOf('int32', 'sum', 8));
    group.allReduceSync(wholes.map((one) => one.slice(2, 5)));
    group.barrierSync();
    const inputs = inputsOf('int32', 'sum', 8);
    const sums = reduced('sum', inputs);
    await expectValues(
      wholes,
      inputs.map((values) => [...values.slice(0, 2), ...sums.slice(2, 5), ...values.slice(5)]),
    );
  });
});

/** Calls past the types, as JavaScript would. */
const loose = (called: object) => called as { allReduce(data: unknown): Promise<unknown> };

describe('a communicator of GPUs', () => {
  const last = gpus.length - 1;
  let group: LocalGroup<'gpu'>;
  beforeEach(async () => {
    group = await Communicator.nccl();
  });
  afterEach(() => group.close());
  const zeros = (length = 4) => gpus.map((gpu) => blank(gpu, 'float32', length));

  it('wants buffers of its own GPUs, and says which came', async () => {
    const datas = zeros();
    const strayed = [...datas];
    strayed[last] = blank(0, 'float32', 4);
    if (last > 0) {
      await expect(group.allReduce(strayed)).rejects.toThrow(
        errorWith(
          'ERR_INVALID_ARG_TYPE',
          new RegExp(`gpu:${last} for data.*rank ${last}.*4 float32 on gpu:0`),
        ),
      );
      await expect(group.allReduce(datas, { out: strayed })).rejects.toThrow(
        new RegExp(`gpu:${last} for out.*rank ${last}`),
      );
    }
    await expect(loose(group).allReduce(gpus.map(() => new Float32Array(4)))).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /gpu:0 for data.*Float32Array of 4/),
    );
    await expect(loose(group).allReduce(blank(0, 'float32', 4))).rejects.toThrow(
      gpus.length === 1 ? /one DeviceBuffer.*data/ : /DeviceBuffers.*data/,
    );
    // The communicator is as good as before.
    await group.allReduce(datas);
  });

  it('is told apart from one over the memory of the host', async () => {
    await using group = Communicator.local(1);
    const [one] = (await group.openRanks()) as [Communicator];
    const buffer = blank(0, 'float32', 4);
    await expect(loose(one).allReduce(buffer)).rejects.toThrow(
      errorWith(
        'ERR_INVALID_ARG_TYPE',
        /TypedArray.*Communicator\.nccl.* data.*4 float32 on gpu:0/,
      ),
    );
    await expect(one.allReduce(new Float32Array(4), { out: buffer as never })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /out.*4 float32 on gpu:0/),
    );
    expect([one.gpus, one.memory]).toEqual([[], 'host']);
  });

  it('checks dtypes, lengths, scales, overlaps and disposed buffers', async () => {
    const datas = zeros();
    const list = <T>(one: T) => gpus.map(() => one);
    await expect(group.allReduce(datas, { dtype: 'int32' as 'float32' })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /'float32'.*data.*dtype.*'int32'/),
    );
    await expect(group.allReduce(datas, { out: zeros(5) })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /4 elements.*out/),
    );
    await expect(
      group.allReduce(datas, { out: gpus.map((gpu) => blank(gpu, 'int32', 4)) as never }),
    ).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    await expect(group.allReduce(datas, { scale: 2, op: 'max' })).rejects.toThrow(/'sum' with a/);
    await expect(group.allReduce(datas, { scale: NaN })).rejects.toThrow(/finite number/);
    // @ts-expect-error -- there is no such op of scans
    const scan = group.scan(datas, { op: 'avg' });
    await expect(scan).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    await expect(group.allReduce(datas, { scale: [...list(1), 1] })).rejects.toThrow(/for scale/);
    const ints = gpus.map((gpu) => blank(gpu, 'int32', 4));
    await expect(group.allReduce(ints, { scale: 2 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /scale.*int32/),
    );
    const whole = zeros(6);
    const parts = (from: number) => whole.map((one) => one.slice(from, from + 4));
    await expect(group.allReduce(parts(0), { out: parts(1) })).rejects.toMatchObject({
      code: 'ERR_BUFFER_OVERLAP',
    });
    datas[last]!.dispose();
    await expect(group.allReduce(datas)).rejects.toThrow(/got a disposed one/);
    await group.barrier();
  });

  it('leases buffers until the GPUs are done', async () => {
    const datas = zeros(100_000);
    await Promise.all(datas.map((one) => one.fill(1)));
    const pending = group.allReduce(datas);
    await expect(group.allReduce(datas)).rejects.toThrow(
      errorWith('ERR_BUFFER_IN_USE', /allReduce.*writing/),
    );
    await expect(datas[0]!.fill(3)).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await expect(datas[last]!.copyTo()).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    expect(() => group.broadcastSync(datas)).toThrow(/is writing/);
    // Freed when the operation is over, not under it.
    datas.forEach((one) => one.dispose());
    await pending;
  });

  it('has all GPUs when none are named, says what it cannot do, and stays usable', async () => {
    expect(group.gpus).toEqual(gpus);
    // @ts-expect-error -- of the host's memory
    expect(() => group.allocShared('float32', 4)).toThrow(
      errorWith('ERR_UNSUPPORTED', /host memory/),
    );
    await group.barrier();
  });

  it('refuses GPUs given twice, and those that are not there', async () => {
    await expect(Communicator.nccl({ gpus: [0, 0] })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /gpu:0 .*several.*NCCL_MULTI_RANK_GPU_ENABLE/),
    );
    await expect(Communicator.nccl({ gpus: [gpus.length] })).rejects.toThrow(
      new RegExp(`no gpu:${gpus.length}`),
    );
    await expect(Communicator.nccl({ gpus: [] })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', / gpus,.*array of 0/),
    );
    await expect(Communicator.nccl({ gpus: [0.5] })).rejects.toThrow(/for gpus\[0\], got 0.5/);
    await expect(Communicator.nccl({ timeoutMs: 0 })).rejects.toThrow(RangeError);
  });

  it('ties options to the buffers by types', () => {
    const floatsOnGpu = [blank(0, 'float32', 1)];
    const check = async () => {
      expectTypeOf(await group.allReduce(floatsOnGpu)).toEqualTypeOf<DeviceBuffer<'float32'>[]>();
      expectTypeOf(await group.gather(floatsOnGpu)).toEqualTypeOf<
        DeviceBuffer<'float32'> | undefined
      >();
      // A half needs no dtype named: the buffer has it.
      await group.allReduce([blank(0, 'bfloat16', 1)]);
      // @ts-expect-error -- the buffers hold float32
      await group.allReduce(floatsOnGpu, { dtype: 'int32' });
      // @ts-expect-error -- out must hold the same
      await group.allReduce(floatsOnGpu, { out: [blank(0, 'float64', 1)] });
    };
    expect(check).toBeTypeOf('function');
  });
});

describe('a world of one', () => {
  it('is a GPU', async () => {
    await using world = await Communicator.world({ backend: 'nccl' });
    expect(world).toMatchObject({ backend: 'nccl', size: 1, gpus: [0], rank: 0 });
    const data = await bufferOf(0, 'float32', [1, 2]);
    expect(await world.allReduce(data)).toBe(data);
    await expectValues([data], [[1, 2]]);
    const part = await world.split(0);
    expect(part).toMatchObject({ size: 1, gpus: [0] });
    await part?.close();
    await expect(Communicator.world({ gpu: 0 })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /gpu .*'nccl', 'mpi'.*'tcp'.*'shm'/),
    );
    await expect(Communicator.world({ backend: 'ib' as 'shm' })).rejects.toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /shm, mpi, tcp, nccl.*backend.*'ib'/),
    );
  });
});
