// What needs no ranks: optimizers, schedules, element types, networks' shapes, buckets.
import * as main from '../../../lib/index.js';
import { elementsOf, network, networkNames } from '../../../lib/models/index.js';
import * as methods from '../../../lib/optimizers/decentralised/index.js';
import { assignBySize, bucketLimits, planBuckets } from '../../../lib/train/index.js';
import type { Random } from '../support/random.js';
import { loose, right, same } from './call.js';
import type { Call } from './call.js';

const noGpu = ['ERR_BACKEND_UNAVAILABLE'];
const numbers = (random: Random, count: number) =>
  Array.from({ length: count }, () => 1 + random.int(50));

function stepped(random: Random): Call {
  const rate = random.pick([0.1, 0.5]);
  const weight = Float32Array.from({ length: 1 + random.int(20) }, () => random.int(9));
  const gradient = Float32Array.from(weight, () => random.int(9));
  const expected = Array.from(weight, (x, i) => x - rate * gradient[i]!);
  return {
    name: 'Optimizer.update',
    args: ['key', weight, [gradient], { dtype: 'float32' }],
    run: (...args) => loose(new main.SGD({ learningRate: rate }))['update']!(...args),
    check: () => {
      same(weight, expected, 'a step of sgd');
    },
  };
}

function created(random: Random): Call {
  const name = random.pick(main.optimizerNames);
  const options = { learningRate: 0.5, wd: 0, clipGradient: null, lrMult: { a: 2 } };
  return {
    name: `createOptimizer ${name}`,
    args: [name, options],
    run: (...args) => {
      const one = loose(main)['createOptimizer']!(...args) as main.Optimizer;
      const weight = Float32Array.of(1, 2);
      one.update('a', weight, Float32Array.of(1, 1));
      one.loadStates(one.saveStates());
      return [weight, one];
    },
    check: (made) => {
      const [weight] = made as [Float32Array];
      right(weight.every(Number.isFinite), `${name}: finite weights`);
    },
  };
}

function scheduled(random: Random): Call {
  const step = 1 + random.int(5);
  const at = random.int(50);
  const baseLr = 0.5;
  const expected = baseLr * 0.5 ** Math.max(0, Math.floor((at - 1) / step));
  return {
    name: 'FactorScheduler',
    args: [{ step, factor: 0.5, stopFactorLr: 0, baseLr, warmupSteps: 0 }, at],
    run: (options, n) => {
      const schedule = new main.FactorScheduler(options as main.FactorSchedulerOptions);
      return schedule.at(n as number);
    },
    check: (rate) => {
      same([rate as number], [expected], `the rate at ${String(at)}`);
    },
  };
}

function typed(random: Random): Call {
  const dtype = random.pick(['float8e4m3', 'float8e5m2'] as const);
  const bits = random.int(0x78);
  return {
    name: 'toFloat8',
    args: [dtype, main.fromFloat8(dtype, bits)],
    run: (...args) => loose(main)['toFloat8']!(...args),
    check: (back) => {
      right(back === bits, `float8 ${String(bits)}`);
    },
  };
}

function onGpus(random: Random): Call {
  return random.pick<Call>([
    {
      name: 'pinnedArray',
      args: ['float32', 4],
      run: (...args) => loose(main)['pinnedArray']!(...args),
      refusedWith: noGpu,
    },
    {
      name: 'DeviceBuffer.alloc',
      args: [0, 'float32', 4],
      run: (...args) => loose(main.DeviceBuffer)['alloc']!(...args),
      refusedWith: noGpu,
    },
    {
      name: 'Communicator.nccl',
      args: [{ gpus: [0], timeoutMs: 1000 }],
      run: (...args) => loose(main.Communicator)['nccl']!(...args),
      refusedWith: noGpu,
    },
  ]);
}

function shaped(random: Random): Call {
  const name = random.pick(networkNames);
  const options = {
    numLayers: name === 'vgg' ? 16 : 50,
    imageShape: name.startsWith('inception')
      ? [3, 299, 299]
      : name === 'lenet' || name === 'mlp'
        ? [1, 28, 28]
        : [3, 224, 224],
    numClasses: 10,
    allParams: true,
  };
  return {
    name: `network ${name}`,
    args: [name, options],
    run: (...args) => loose({ network })['network']!(...args),
    check: (made) => {
      const { parameters, elements } = made as ReturnType<typeof network>;
      const sum = parameters.reduce((all, { shape }) => all + elementsOf(shape), 0);
      right(sum === elements && sum > 0, `elements of ${name}`);
    },
  };
}

function bucketed(random: Random): Call {
  const sizes = numbers(random, 1 + random.int(20));
  const gradients = sizes.map((size, i) => ({ name: String(i), shape: [size] }));
  const total = sizes.reduce((a, b) => a + b, 0);
  return random.pick<Call>([
    {
      name: 'planBuckets',
      args: [gradients, [64, 128]],
      run: (...args) => loose({ planBuckets })['planBuckets']!(...args),
      check: (plan) => {
        const elements = (plan as ReturnType<typeof planBuckets>).map((one) => one.elements);
        right(elements.reduce((a, b) => a + b, 0) === total, 'elements of all buckets');
      },
    },
    {
      name: 'assignBySize',
      args: [sizes.map((bytes) => ({ bytes })), [30]],
      run: (...args) => loose({ assignBySize })['assignBySize']!(...args),
      check: (buckets) => {
        right((buckets as number[][]).flat().length === sizes.length, 'tensors of all buckets');
      },
    },
    {
      name: 'bucketLimits',
      args: [{ bucketCapBytes: 100, firstBucketBytes: 10 }],
      run: (...args) => loose({ bucketLimits })['bucketLimits']!(...args),
      check: (limits) => {
        same(limits, [10, 100], 'limits');
      },
    },
  ]);
}

function descended(random: Random): Call {
  const name = random.pick(['adaptWithCombine', 'adaptThenCombine', 'gradientAllReduce'] as const);
  const parameters = Float64Array.from({ length: 1 + random.int(5) }, () => random.int(9));
  const expected = Array.from(parameters, (x) => x - 0.5);
  const gradient = (_: Float64Array, into: Float64Array) => {
    into.fill(1);
  };
  const combine = () => Promise.resolve();
  return {
    name,
    args: [{ parameters, gradient, combine, stepSize: 0.5 }],
    // What a callback of ours gives or throws is looked at in the step; here only that one is refused in time.
    run: async (...args) => {
      const method = loose(methods)[name]!(...args) as methods.DecentralisedMethod;
      if ((args[0] as { combine: unknown }).combine === combine) await method.step();
    },
    check: () => {
      same(parameters, expected, name);
    },
  };
}

const all = [stepped, created, scheduled, typed, onGpus, shaped, bucketed, descended];

export const nextNumber = (random: Random): Call => random.pick(all)(random);
