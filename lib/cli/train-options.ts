// The options of `gradlink train`, and what they come to.
import type { Command } from 'commander';

import { collect, read } from './parse.js';
import { above, choice, list, whole } from '../options/kinds.js';
import { addReportOptions, type ReportOptions } from './report-output.js';
import { UsageError } from './usage-error.js';
import { trainStyles, type TrainStyle } from '../report/train-lines.js';
import { reduceModes, type BucketHookName } from '../train/buckets/types.js';
import { modelKinds, type ModelKind } from '../train/models/index.js';
import {
  backendNames,
  datasetNames,
  modelNames,
  type BackendName,
  type DatasetName,
  type ModelName,
} from '../train/names.js';
import {
  distOptimizers,
  trainOptimizers,
  type DistOptimizer,
  type TrainOptimizer,
  type TrainConfig,
} from '../measure/train/types.js';
import { storeKinds } from '../kvstore/types.js';

export interface TrainOptions extends ReportOptions {
  readonly model: ModelName;
  readonly dataset?: DatasetName;
  readonly dataDir?: string;
  readonly imageSize?: number;
  readonly sequenceLength?: number;
  readonly vocabulary?: number;
  readonly numClasses?: number;
  readonly batchSize: number;
  readonly numWarmupBatches?: number;
  readonly numBatchesPerIter?: number;
  readonly numIters?: number;
  readonly steps?: number;
  readonly optimizer: TrainOptimizer;
  readonly lr: number;
  readonly distOptimizer: DistOptimizer;
  readonly mode: TrainConfig['mode'];
  readonly compression?: BucketHookName;
  readonly bucketCapMb?: number;
  readonly disableDynamicTopology?: true;
  readonly atcStyle?: true;
  readonly seed: number;
  readonly backend?: BackendName;
  readonly allowCpu?: true;
  readonly timeline?: string;
  readonly checkpointDir?: string;
  readonly checkpointEvery: number;
  readonly style: TrainStyle;
  readonly workers?: readonly number[];
  readonly plan?: string;
  readonly launchArg?: readonly string[];
  readonly outputDir?: string;
}

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
/** Names of the benchmarks that this one stands in for, and stores whose names say enough. */
const methodAliases: Readonly<Record<string, DistOptimizer>> = {
  horovod: 'gradient_allreduce',
  ...Object.fromEntries(
    storeKinds.filter((kind) => kind !== 'allreduce').map((kind) => [kind, `kv:${kind}` as const]),
  ),
};

/** Steps that do not count, steps an iteration, and iterations, where nothing else is said. */
const defaults: Readonly<Record<TrainStyle, readonly [number, number, number]>> = {
  bluefog: [10, 10, 10],
  horovod: [10, 10, 10],
  // Tasks of 50 batches; the first warms up.
  elasticdl: [50, 50, 2],
  // The first 20 steps dropped, the mean over the next 100.
  tianshu: [20, 1, 100],
};

const examples = `
A step is a forward and a backward pass over one batch on every worker, the communication of the workers, and the
optimizer. It needs TensorFlow.js: npm install @tensorflow/tfjs-core @tensorflow/tfjs-layers
@tensorflow/tfjs-backend-wasm @tensorflow/tfjs-backend-cpu

Examples:
  $ gradlink launch -n 2 node bench/train.js --model mobilenetv2 --dataset cifar10 --batch-size 8 --steps 3
  $ gradlink launch -n 4 node bench/train.js --style bluefog --dist-optimizer neighbor_allreduce
  $ gradlink train --style elasticdl --workers 1,2,4 --model mobilenetv2 --batch-size 64
  $ gradlink train --style tianshu --plan plan.yaml --output-dir runs
  $ gradlink train --style elasticdl --plan examples/elasticdl.yaml --output-dir runs
  $ gradlink launch -n 4 --elastic gradlink train --checkpoint-dir checkpoints --checkpoint-every 100 --steps 1000

Exit status: 0 all well, 1 a run failed, 2 wrong usage.`;

const counted = whole({ min: 1, max: 1_000_000_000 });
const positive = read(counted);

export function addTrainOptions(command: Command): Command {
  command
    .option('--model <name>', modelNames.join(', '), read(choice(modelNames)), 'resnet50')
    .option(
      '--dataset <name>',
      `${datasetNames.join(', ')}, made up with --seed (default: tokens for bert-tiny, else cifar10)`,
      read(choice(datasetNames)),
    )
    .option('--data-dir <folder>', "read CIFAR-10's binary files from there")
    .option('--image-size <pixels>', 'height and width of images that are made up', positive)
    .option('--sequence-length <tokens>', 'of a sequence of tokens (default: 128)', positive)
    .option('--vocabulary <tokens>', 'tokens that there are (default: 30522)', positive)
    .option('--num-classes <count>', "classes (default: the data set's)", positive)
    .option('--batch-size <samples>', 'of each worker', positive, 32)
    .option(
      '--num-warmup-batches <steps>',
      'steps before measuring (default: 10; 50 for elasticdl, 20 for tianshu, 1 with --steps)',
      read(whole({ min: 0, max: 1_000_000_000 })),
    )
    .option(
      '--num-batches-per-iter <steps>',
      'steps that are timed as one, a task of elasticdl (default: 10; 50 for elasticdl, 1 for tianshu)',
      positive,
    )
    .option(
      '--num-iters <count>',
      'such iterations (default: 10; 2 for elasticdl, 100 for tianshu)',
      positive,
    )
    .option('--steps <count>', 'measure this many steps, each by itself', positive)
    .option('--optimizer <name>', trainOptimizers.join(', '), read(choice(trainOptimizers)), 'sgd')
    .option('--lr <rate>', 'learning rate', read(above(0)), 0.01)
    .option(
      '--dist-optimizer <name>',
      `what keeps workers together: ${distOptimizers.join(', ')}, or a key-value store: kv:TYPE`,
      read(choice(methods, methodAliases)),
      'gradient_allreduce',
    )
    .option(
      '--mode <name>',
      `of gradient_allreduce: ${reduceModes.join(', ')}`,
      read(choice(reduceModes)),
      'overlap',
    )
    .option(
      '--compression <name>',
      `how gradients travel in gradient_allreduce: ${compressions.join(', ')} (default: as they are)`,
      read(choice(compressions)),
    )
    .option(
      '--bucket-cap-mb <MiB>',
      'of gradient_allreduce (default: 25, the first 1)',
      read(above(0)),
    )
    .option(
      '--disable-dynamic-topology',
      'average with all neighbours of the graph in each step, not with one',
    )
    .option('--atc-style', 'adapt, then combine, instead of both side by side')
    .option(
      '--seed <number>',
      'of weights, samples and their order',
      read(whole({ min: 0, max: 100_000 })),
      0,
    )
    .option(
      '--backend <name>',
      `${backendNames.join(', ')} (default: the first that is installed)`,
      read(choice(backendNames)),
    )
    .option('--allow-cpu', 'let node-gpu compute on the CPU where TensorFlow finds no GPU')
    .option(
      '--timeline <file>',
      'write a Chrome trace of each worker: trace.json of rank 3 is trace.rank-3.json',
    )
    .option('--checkpoint-dir <folder>', 'write checkpoints there, and go on from the last one')
    .option('--checkpoint-every <steps>', 'steps from one checkpoint to the next', positive, 100)
    .option('--style <name>', trainStyles.join(', '), read(choice(trainStyles)), 'bluefog')
    .option(
      '--workers <counts>',
      'of elasticdl: start a job of each of these sizes, 1,2,4',
      read(list(counted)),
    )
    .option('--plan <file>', 'of tianshu and elasticdl: the grid to run, in YAML')
    .option(
      '--launch-arg <argument>',
      'with --plan or --workers: an argument for gradlink launch, as --launch-arg=--mpirun=/opt/bin/mpirun; may be repeated',
      collect,
    )
    .option('--output-dir <folder>', 'with --plan: a folder for each run, and the tables');
  return addReportOptions(command).addHelpText('after', examples);
}

/** @throws UsageError for options that do not go together. */
export function trainConfig(options: TrainOptions): TrainConfig {
  const kind: ModelKind = modelKinds[options.model];
  const tokens = kind.inputType === 'int32';
  const dataset = options.dataset ?? (tokens ? 'tokens' : 'cifar10');
  if ((dataset === 'tokens') !== tokens) {
    const fitting = tokens ? 'tokens' : datasetNames.filter((name) => name !== 'tokens').join(', ');
    throw UsageError.of(`--dataset for ${options.model}`, fitting, dataset);
  }
  if (options.dataDir !== undefined && dataset !== 'cifar10') {
    throw UsageError.of('--data-dir', 'an option of --dataset cifar10', `it with ${dataset}`);
  }
  if (options.imageSize !== undefined && (tokens || options.dataDir !== undefined)) {
    throw UsageError.of('--image-size', 'an option of images that are made up', 'it with others');
  }
  const [warmup, perIteration, iterations] = defaults[options.style];
  const counted = options.steps !== undefined;
  return {
    model: options.model,
    dataset,
    dataFolder: options.dataDir,
    imageSize: options.imageSize,
    sequenceLength: options.sequenceLength,
    vocabulary: options.vocabulary,
    classes: options.numClasses,
    batchSize: options.batchSize,
    warmupSteps: options.numWarmupBatches ?? (counted ? 1 : warmup),
    stepsPerIteration: options.numBatchesPerIter ?? (counted ? 1 : perIteration),
    iterations: options.steps ?? options.numIters ?? iterations,
    optimizer: options.optimizer,
    learningRate: options.lr,
    distOptimizer: options.distOptimizer,
    mode: options.mode,
    hook: options.compression,
    bucketCapBytes: options.bucketCapMb === undefined ? undefined : options.bucketCapMb * 2 ** 20,
    dynamicTopology: options.disableDynamicTopology !== true,
    adaptThenCombine: options.atcStyle === true,
    seed: options.seed,
    backend: options.backend,
    allowCpu: options.allowCpu,
    timeline: options.timeline,
    checkpointFolder: options.checkpointDir,
    checkpointEvery: options.checkpointEvery,
  };
}
