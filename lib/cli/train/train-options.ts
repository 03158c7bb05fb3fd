// The options of `gradlink train`, and what they come to.
import type { Command } from 'commander';

import { addTable, givenOf } from '../parse.js';
import { addReportOptions, type ReportOptions } from '../reports/report-output.js';
import { UsageError } from '../usage-error.js';
import { trainTable } from '../../measure/train/train-options.js';
import type { TrainConfig } from '../../measure/train/types.js';
import { choice, list, repeated, text, whole } from '../../options/kinds.js';
import { filled, optionTable, type ReadOf } from '../../options/table.js';
import { trainStyles, type TrainStyle } from '../../report/train-lines.js';
import { modelKinds, type ModelKind } from '../../train/models/index.js';
import { datasetNames } from '../../train/names.js';

/** What the command has besides. */
const positive = whole({ min: 1, max: 1_000_000_000 });

const ownTable = optionTable({
  steps: {
    flag: '--steps <count>',
    help: 'measure this many steps, each by itself',
    kind: positive,
  },
  style: {
    flag: '--style <name>',
    help: `the benchmark to measure and print like: ${trainStyles.join(', ')}`,
    kind: choice(trainStyles),
    default: 'bluefog',
  },
  workers: {
    flag: '--workers <counts>',
    help: 'with elasticdl: start a job of each of these sizes, 1,2,4',
    kind: list(positive),
  },
  plan: {
    flag: '--plan <file>',
    help: 'with tianshu and elasticdl: the grid to run, in YAML',
    kind: text(),
  },
  launchArg: {
    flag: '--launch-arg <argument>',
    help: 'with --plan or --workers: an argument for gradlink launch, as --launch-arg=--mpirun=/opt/bin/mpirun; may be repeated',
    kind: repeated(text()),
  },
  outputDir: {
    flag: '--output-dir <folder>',
    help: 'with --plan: a folder for each run, and the tables',
    kind: text(),
  },
});

export type OwnTrainOptions = ReadOf<typeof ownTable> & ReportOptions;

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
@tensorflow/tfjs-backend-wasm

Examples:
  $ gradlink launch -n 2 gradlink train --model mobilenetv2 --dataset cifar10 --batch-size 8 --steps 3
  $ gradlink launch -n 4 gradlink train --style bluefog --dist-optimizer neighbor_allreduce
  $ gradlink train --style elasticdl --workers 1,2,4 --model mobilenetv2 --batch-size 64
  $ gradlink train --style tianshu --plan plan.yaml --output-dir runs
  $ gradlink launch -n 4 --elastic gradlink train --checkpoint-dir checkpoints --checkpoint-every 100 --steps 1000

Exit status: 0 all well, 1 a run failed, 2 wrong usage.`;

export function addTrainOptions(command: Command): Command {
  addTable(addTable(command, trainTable), ownTable);
  return addReportOptions(command).addHelpText('after', examples);
}

/** @throws UsageError for options that do not go together. */
export function trainConfig(options: OwnTrainOptions): TrainConfig {
  const given = givenOf(trainTable, options);
  const all = filled(trainTable, given, 'train');
  const { model, dataFolder, imageSize } = all;
  const kind: ModelKind = modelKinds[model];
  const tokens = kind.inputType === 'int32';
  const dataset = all.dataset ?? (tokens ? 'tokens' : 'cifar10');
  if ((dataset === 'tokens') !== tokens) {
    const fitting = tokens ? 'tokens' : datasetNames.filter((name) => name !== 'tokens').join(', ');
    throw UsageError.of(`--dataset for ${model}`, fitting, dataset);
  }
  if (dataFolder !== undefined && dataset !== 'cifar10') {
    throw new UsageError('--data-dir needs --dataset cifar10.');
  }
  if (imageSize !== undefined && (tokens || dataFolder !== undefined)) {
    throw new UsageError('--image-size applies to synthetic image data sets only.');
  }
  const [warmup, perIteration, iterations] = defaults[options.style];
  if (all.shard && all.distOptimizer !== 'gradient_allreduce') {
    throw new UsageError('--shard needs --dist-optimizer gradient_allreduce.');
  }
  const counted = options.steps !== undefined;
  return {
    ...all,
    dataset,
    warmupSteps: given.warmupSteps ?? (counted ? 1 : warmup),
    stepsPerIteration: given.stepsPerIteration ?? (counted ? 1 : perIteration),
    iterations: options.steps ?? given.iterations ?? iterations,
  };
}
