// What `gradlink ddp` may be asked.
import { InvalidArgumentError, type Command } from 'commander';

import { choice, decimal, integer, list } from './parse.js';
import type { ReportOptions } from './report-output.js';
import type { SyntheticCompute } from '../measure/ddp/run.js';
import { reduceModes, type ReduceMode } from '../train/buckets/types.js';
import {
  backendNames,
  datasetNames,
  modelNames,
  type BackendName,
  type DatasetName,
  type ModelName,
} from '../train/names.js';

export interface DdpOptions extends ReportOptions {
  readonly ranks?: number;
  readonly bucketSizes: readonly number[];
  readonly firstBucket: number;
  readonly modes: readonly ReduceMode[];
  readonly steps: number;
  readonly warmup: number;
  readonly originalUnits?: true;
  readonly syntheticCompute?: SyntheticCompute;
  readonly copyGradients?: true;
  readonly model: ModelName;
  readonly dataset: DatasetName;
  readonly batchSize: number;
  readonly backend?: BackendName;
  readonly allowCpu?: true;
  readonly plot?: string;
  readonly timeline?: string;
}

export const ddpExamples = `
Modes: overlap reduces a bucket as soon as its gradients are there, while the backward pass runs on. async reduces all
buckets at once after the backward pass. sync reduces them then one after the other. Forward and backward times of all
ranks go into each figure; the first steps are dropped. Percentages are differences to overlap.

PyTorch's compare_ddp gives overlap buckets of MiB. It gives the other two as many Mi elements, four times the bytes, in
forward order. --original-units does the same. Without it equal bytes are compared.

--synthetic-compute replaces the model by the 161 gradients of resnet50 (97.5 MiB), released on a timetable while the
thread sleeps, as it does when a GPU computes: a number of milliseconds for the backward pass, or a percentage that
communication alone shall take of it. They are released in their buckets, where a GPU's copy engine would leave
them, or, with --copy-gradients, copied there. Outside a job, -n processes are started on this host.

Examples:
  $ gradlink ddp --synthetic-compute 60%
  $ gradlink ddp --synthetic-compute 100 --bucket-sizes 3,10,25 --plot ddp.svg --output ddp.json
  $ gradlink ddp -n 4 --model lenet --dataset mnist --batch-size 16 --steps 20 --warmup 5
  $ gradlink launch -n 8 -H hosts --launcher ssh gradlink ddp --model resnet20
  $ gradlink ddp --synthetic-compute 60% --bucket-sizes 10 --steps 10 --timeline trace.json

Exit status: 0 all well, 1 a wrong sum or a failure, 2 wrong usage.`;

function syntheticCompute(text: string): SyntheticCompute {
  const [, number, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = Number(number);
  if (number === undefined || !(value > 0)) {
    throw new InvalidArgumentError('Expected milliseconds such as 100, or a share such as 60%.');
  }
  return { value, unit: percent === '%' ? 'percent' : 'milliseconds' };
}

export function addDdpOptions(command: Command): Command {
  return command
    .option(
      '-n, --ranks <count>',
      'processes to start where this is no rank of a job (default: 2)',
      integer({ min: 1, max: 4096 }),
    )
    .option(
      '--bucket-sizes <list>',
      'MiB; a bucket is closed by the gradient that brings it there',
      list(decimal(0)),
      [3, 5, 10, 15, 20, 25, 27],
    )
    .option('--first-bucket <MiB>', 'size of the first bucket, which begins early', decimal(0), 1)
    .option('--modes <list>', `of ${reduceModes.join(', ')}`, list(choice(reduceModes)), [
      ...reduceModes,
    ])
    .option('--steps <count>', 'steps that are timed', integer({ min: 1, max: 1e6 }), 100)
    .option('--warmup <count>', 'steps before that are dropped', integer({ min: 1, max: 1e6 }), 20)
    .option('--original-units', 'async and sync with Mi elements, as compare_ddp has it')
    .option(
      '--synthetic-compute <ms|percent>',
      'no model: gradients of resnet50 on a timetable',
      syntheticCompute,
    )
    .option(
      '--copy-gradients',
      'synthetic gradients are copied into their buckets, as those of tfjs',
    )
    .option('--model <name>', modelNames.join(', '), choice(modelNames), 'lenet')
    .option(
      '--dataset <name>',
      `${datasetNames.join(', ')}, made up`,
      choice(datasetNames),
      'cifar10',
    )
    .option('--batch-size <count>', 'samples of each rank', integer({ min: 1, max: 1e6 }), 8)
    .option(
      '--backend <name>',
      `of TensorFlow.js: ${backendNames.join(', ')}`,
      choice(backendNames),
    )
    .option('--allow-cpu', 'let node-gpu compute on the CPU where TensorFlow finds no GPU')
    .option('--plot <file>', 'time over bucket size, as SVG')
    .option('--timeline <file>', "Chrome trace of overlap's steps; a file for each rank");
}
