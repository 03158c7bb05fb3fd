// The options of a training run, for `gradlink train` and its run.
import type { RunOptions } from '../common-run.js';
import { storeKinds } from '../../kvstore/types.js';
import { above, choice, flag, inUnits, text, whole, type Kind } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { mebibyte } from '../../results/units.js';
import { reduceModes, type BucketHookName } from '../../train/buckets/types.js';
import { backendNames, datasetNames, modelNames } from '../../train/names.js';

/** The TensorFlow.js optimizers of a training run. */
export const trainOptimizers = ['sgd', 'momentum', 'adam'] as const;
/** One of {@link trainOptimizers}. */
export type TrainOptimizer = (typeof trainOptimizers)[number];

/** How ranks are synchronised: BlueFog's names, further algorithms, and key-value stores as `kv:TYPE`. */
export const distOptimizers = [
  'gradient_allreduce',
  'allreduce',
  'neighbor_allreduce',
  'hierarchical_neighbor_allreduce',
  'win_put',
  'local_sgd',
  'adasum',
] as const;
/** One of {@link distOptimizers}, or a store. */
export type DistOptimizer = (typeof distOptimizers)[number] | `kv:${string}`;

const compressions = [
  'float16',
  'bfloat16',
  'powersgd',
  '2bit',
] as const satisfies readonly BucketHookName[];

const methods: readonly DistOptimizer[] = [
  ...distOptimizers,
  ...storeKinds.map((kind) => `kv:${kind}` as const),
];
/** Names in the benchmarks that this one replaces, and stores with unambiguous names. */
const methodAliases: Readonly<Record<string, DistOptimizer>> = {
  horovod: 'gradient_allreduce',
  ...Object.fromEntries(
    storeKinds.filter((kind) => kind !== 'allreduce').map((kind) => [kind, `kv:${kind}` as const]),
  ),
};
/** Stores are accepted by all their names. */
const distOptimizer: Kind<DistOptimizer> = {
  ...choice(methods, methodAliases),
  check(value, name) {
    if (typeof value !== 'string' || !value.startsWith('kv:')) choice(methods).check(value, name);
  },
};

const positive = whole({ min: 1, max: 1_000_000_000 });

export const trainTable = optionTable({
  /** Default resnet50. */
  model: {
    flag: '--model <name>',
    help: modelNames.join(', '),
    kind: choice(modelNames),
    default: 'resnet50',
  },
  /** Default tokens for bert-tiny, else cifar10. */
  dataset: {
    flag: '--dataset <name>',
    help: `${datasetNames.join(', ')}, synthetic, from --seed (default: tokens for bert-tiny, else cifar10)`,
    kind: choice(datasetNames),
  },
  /** The folder of CIFAR-10's binary files. */
  dataFolder: {
    flag: '--data-dir <folder>',
    help: "read CIFAR-10's binary files from there",
    kind: text(),
  },
  /** Side of synthetic images in pixels. */
  imageSize: {
    flag: '--image-size <pixels>',
    help: 'height and width of synthetic images',
    kind: positive,
  },
  /** Tokens per sequence; default 128. */
  sequenceLength: {
    flag: '--sequence-length <tokens>',
    help: 'tokens of a sequence (default: 128)',
    kind: positive,
  },
  /** Number of different tokens; default 30,522. */
  vocabulary: {
    flag: '--vocabulary <tokens>',
    help: 'size of the vocabulary (default: 30522)',
    kind: positive,
  },
  /** Default the data set's. */
  classes: {
    flag: '--num-classes <count>',
    help: "classes (default: the data set's)",
    kind: positive,
  },
  /** Per rank; default 32. */
  batchSize: {
    flag: '--batch-size <samples>',
    help: 'of each worker',
    kind: positive,
    default: 32,
  },
  /** Unmeasured steps first; default 10. */
  warmupSteps: {
    flag: '--num-warmup-batches <steps>',
    help: 'steps before measuring (default: 10; 50 for elasticdl, 20 for tianshu, 1 with --steps)',
    kind: whole({ min: 0, max: 1_000_000_000 }),
    default: 10,
    ownDefault: true,
  },
  /** Default 10. */
  stepsPerIteration: {
    flag: '--num-batches-per-iter <steps>',
    help: 'steps that are timed as one, a task of elasticdl (default: 10; 50 for elasticdl, 1 for tianshu)',
    kind: positive,
    default: 10,
    ownDefault: true,
  },
  /** Measured iterations; default 10. */
  iterations: {
    flag: '--num-iters <count>',
    help: 'iterations that are measured (default: 10; 2 for elasticdl, 100 for tianshu)',
    kind: positive,
    default: 10,
    ownDefault: true,
  },
  /** Default sgd. */
  optimizer: {
    flag: '--optimizer <name>',
    help: trainOptimizers.join(', '),
    kind: choice(trainOptimizers),
    default: 'sgd',
  },
  /** Default 0.01. */
  learningRate: { flag: '--lr <rate>', help: 'learning rate', kind: above(0), default: 0.01 },
  /** How ranks are synchronised; default gradient_allreduce. */
  distOptimizer: {
    flag: '--dist-optimizer <name>',
    help: `what keeps workers in step: ${distOptimizers.join(', ')}, or a key-value store: kv:TYPE`,
    kind: distOptimizer,
    default: 'gradient_allreduce',
  },
  /** With gradient_allreduce; default overlap. */
  mode: {
    flag: '--mode <name>',
    help: `with gradient_allreduce: ${reduceModes.join(', ')}`,
    kind: choice(reduceModes),
    default: 'overlap',
  },
  /** Compression of gradients in gradient_allreduce; default none. */
  hook: {
    flag: '--compression <name>',
    help: `compression of gradients with gradient_allreduce: ${compressions.join(', ')} (default: none)`,
    kind: choice<BucketHookName>(compressions),
  },
  /** For gradient_allreduce; default 25 MiB, with a first bucket of 1 MiB. */
  bucketCapBytes: {
    flag: '--bucket-cap-mb <MiB>',
    help: 'bucket size with gradient_allreduce (default: 25, the first 1)',
    kind: inUnits(above(0), mebibyte, above(0)),
  },
  /**
   * With gradient_allreduce: each worker updates a part of the variables, and keeps the optimizer's state only for
   * these.
   */
  shard: {
    flag: '--shard',
    help: 'with gradient_allreduce: share steps and the state of the optimizer among the workers',
    kind: flag,
    default: false,
  },
  /** For neighbor_allreduce: one neighbour per step, instead of all in the graph. Default true. */
  dynamicTopology: {
    flag: '--disable-dynamic-topology',
    help: 'average with all neighbours of the graph in each step, not with one',
    kind: flag,
    default: true,
  },
  /** Whether to adapt, then combine, instead of both in parallel. */
  adaptThenCombine: {
    flag: '--atc-style',
    help: 'adapt, then combine, instead of both side by side',
    kind: flag,
    default: false,
  },
  /** Seed of weights, samples and their order; default 0. */
  seed: {
    flag: '--seed <number>',
    help: 'for weights, samples and their order',
    kind: whole({ min: 0, max: 100_000 }),
    default: 0,
  },
  /** Default the first installed one. */
  backend: {
    flag: '--backend <name>',
    help: `${backendNames.join(', ')} (default: the first that is installed)`,
    kind: choice(backendNames),
  },
  /** Whether `'node-gpu'` may compute on the CPU if there is no GPU. */
  allowCpu: {
    flag: '--allow-cpu',
    help: 'let node-gpu compute on the CPU where TensorFlow finds no GPU',
    kind: flag,
  },
  /** A Chrome trace of each rank, with its number in the file name. */
  timeline: {
    flag: '--timeline <file>',
    help: 'write a Chrome trace of each worker: trace.json of rank 3 is trace.rank-3.json',
    kind: text(),
  },
  /** The folder of checkpoints; resumes from the last one. */
  checkpointFolder: {
    flag: '--checkpoint-dir <folder>',
    help: 'write checkpoints there, and resume from the last one',
    kind: text(),
  },
  /** Steps between checkpoints; default 100. */
  checkpointEvery: {
    flag: '--checkpoint-every <steps>',
    help: 'steps from one checkpoint to the next',
    kind: positive,
    default: 100,
  },
  /** Whether the case tells its number of machines and of devices on each, as a cell of a grid. */
  placed: { kind: flag, default: false },
});

/** The training. In a job every process calls with the same options; without a job there is one worker. */
export interface TrainOptions extends RunOptions, OptionsOf<typeof trainTable> {}
