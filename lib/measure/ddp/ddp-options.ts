// The options of the comparison of reduce modes, for `gradlink ddp` and its run.
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

/** The length of the backward pass: absolute, or such that communication alone is this percentage of it. */
export interface SyntheticCompute {
  /** The amount of `unit`. */
  readonly value: number;
  /** The unit of `value`. */
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
  /** In MiB; the gradient that reaches the size closes a bucket. Default 3, 5, 10, 15, 20, 25 and 27. */
  bucketSizes: {
    flag: '--bucket-sizes <list>',
    help: 'sizes of buckets in MiB; the gradient that reaches one closes the bucket',
    kind: list(above(0)),
    default: [3, 5, 10, 15, 20, 25, 27],
  },
  /** In MiB; a small first bucket starts early; default 1. */
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
  /** Timed steps; default 100. */
  steps: { flag: '--steps <count>', help: 'steps that are timed', kind: count, default: 100 },
  /** Untimed steps first; default 20. */
  warmup: {
    flag: '--warmup <count>',
    help: 'steps before those, which are dropped',
    kind: count,
    default: 20,
  },
  /** Whether `async` and `sync` have buckets of Mi elements, like PyTorch's compare_ddp. */
  originalUnits: {
    flag: '--original-units',
    help: 'async and sync buckets in Mi elements, as in compare_ddp',
    kind: flag,
    default: false,
  },
  /** Replaces the model and TensorFlow.js by the gradients of resnet50 on a schedule. */
  syntheticCompute: {
    flag: '--synthetic-compute <ms|percent>',
    help: 'no model: gradients of resnet50 on a timetable',
    kind: syntheticCompute,
  },
  /** Whether synthetic gradients are copied into their buckets, as TensorFlow.js's are. */
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
  /** With synthetic samples; default cifar10. */
  dataset: {
    flag: '--dataset <name>',
    help: `${datasetNames.join(', ')}, synthetic`,
    kind: choice(datasetNames),
    default: 'cifar10',
  },
  /** Samples per rank, the same in every step; default 8. */
  batchSize: {
    flag: '--batch-size <count>',
    help: 'samples of each rank',
    kind: count,
    default: 8,
  },
  /** Default the fastest installed one. */
  backend: {
    flag: '--backend <name>',
    help: `of TensorFlow.js: ${backendNames.join(', ')}`,
    kind: choice(backendNames),
  },
  /** Whether `'node-gpu'` may compute on the CPU if there is no GPU. */
  allowCpu: {
    flag: '--allow-cpu',
    help: 'let node-gpu compute on the CPU where TensorFlow finds no GPU',
    kind: flag,
  },
  /** A Chrome trace of the steps of `overlap`: one file per rank, with its number in the name. */
  timeline: {
    flag: '--timeline <file>',
    help: "Chrome trace of overlap's steps; one file a rank",
    kind: text(),
  },
});

/** The comparison. In a job every process calls with the same options; without a job there is one rank. */
export interface DdpOptions extends RunOptions, OptionsOf<typeof ddpTable> {}
