// The options of the comparison of ways to reduce gradients: `gradlink ddp` and its run have them from here.
import type { RunOptions } from '../common-run.js';
import { aPositive, having, oneOfWords } from '../../checks.js';
import {
  above,
  choice,
  flag,
  list,
  text,
  whole,
  WrongValue,
  type Kind,
} from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { reduceModes } from '../../train/buckets/types.js';
import { backendNames, datasetNames, modelNames } from '../../train/names.js';

/** Length of the timetable: as it is, or as what communication alone is so many percent of. */
export interface SyntheticCompute {
  /** How much of `unit` a pass takes. */
  readonly value: number;
  /** What `value` counts. */
  readonly unit: 'milliseconds' | 'percent';
}

const syntheticCompute: Kind<SyntheticCompute> = {
  parse(typed) {
    const [, number, sign] = /^(\d+(?:\.\d+)?)(%?)$/.exec(typed) ?? [];
    const value = Number(number);
    if (!(value > 0)) {
      throw new WrongValue('Expected milliseconds such as 100, or a share such as 60%.');
    }
    return { value, unit: sign === '%' ? 'percent' : 'milliseconds' };
  },
  check: having({ value: aPositive, unit: oneOfWords(['milliseconds', 'percent']) }),
  show: ({ value, unit }) => `${value}${unit === 'percent' ? '%' : ''}`,
};

const count = whole({ min: 1, max: 1e6 });

export const ddpTable = optionTable({
  /** MiB; the gradient that reaches it closes a bucket. Default 3, 5, 10, 15, 20, 25 and 27. */
  bucketSizes: {
    flag: '--bucket-sizes <list>',
    help: 'sizes of buckets in MiB; the gradient that reaches one closes the bucket',
    kind: list(above(0)),
    default: [3, 5, 10, 15, 20, 25, 27],
  },
  /** MiB of the first bucket, which begins early; default 1. */
  firstBucket: {
    flag: '--first-bucket <MiB>',
    help: 'size of the first bucket, which begins early',
    kind: above(0),
    default: 1,
  },
  /** Default all three. */
  modes: {
    flag: '--modes <list>',
    help: `some of ${reduceModes.join(', ')}`,
    kind: list(choice(reduceModes)),
    default: reduceModes,
  },
  /** Steps that are timed; default 100. */
  steps: { flag: '--steps <count>', help: 'steps that are timed', kind: count, default: 100 },
  /** Steps before that are dropped; default 20. */
  warmup: {
    flag: '--warmup <count>',
    help: 'steps before those, which are dropped',
    kind: count,
    default: 20,
  },
  /** `async` and `sync` with buckets of Mi elements, as PyTorch's compare_ddp has them. */
  originalUnits: {
    flag: '--original-units',
    help: 'async and sync buckets in Mi elements, as in compare_ddp',
    kind: flag,
    default: false,
  },
  /** No model, and so no TensorFlow.js: the gradients of resnet50 on a timetable. */
  syntheticCompute: {
    flag: '--synthetic-compute <ms|percent>',
    help: 'no model: gradients of resnet50 on a timetable',
    kind: syntheticCompute,
  },
  /** Synthetic gradients are copied into their buckets, as those of TensorFlow.js. */
  copyGradients: {
    flag: '--copy-gradients',
    help: 'copy synthetic gradients into their buckets, as tfjs does',
    kind: flag,
    default: false,
  },
  /** Default lenet. */
  model: {
    flag: '--model <name>',
    help: modelNames.join(', '),
    kind: choice(modelNames),
    default: 'lenet',
  },
  /** Of made-up samples; default cifar10. */
  dataset: {
    flag: '--dataset <name>',
    help: `${datasetNames.join(', ')}, synthetic`,
    kind: choice(datasetNames),
    default: 'cifar10',
  },
  /** Samples of each rank's batch, which is the same in every step; default 8. */
  batchSize: {
    flag: '--batch-size <count>',
    help: 'samples of each rank',
    kind: count,
    default: 8,
  },
  /** Default the fastest that is installed. */
  backend: {
    flag: '--backend <name>',
    help: `of TensorFlow.js: ${backendNames.join(', ')}`,
    kind: choice(backendNames),
  },
  /** Whether `'node-gpu'` may compute on the CPU where there is no GPU. */
  allowCpu: {
    flag: '--allow-cpu',
    help: 'let node-gpu compute on the CPU where TensorFlow finds no GPU',
    kind: flag,
  },
  /** A Chrome trace of the steps of `overlap`: a file for each rank, with its number in the name. */
  timeline: {
    flag: '--timeline <file>',
    help: "Chrome trace of overlap's steps; one file a rank",
    kind: text(),
  },
});

/** What to compare. In a job every process calls with the same options; outside one there is one rank. */
export interface DdpOptions extends RunOptions, OptionsOf<typeof ddpTable> {}
