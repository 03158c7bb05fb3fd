// The benchmark of reducing gradients while they are computed: all that `gradlink ddp` does but reading its options,
// starting a job and printing.
import { Communicator } from '../../communicator/communicator.js';
import type { CaseResult, Report } from '../../results/result.js';
import { reduceModes, type ReduceMode } from '../../train/buckets/types.js';
import { ownFile } from '../../files/index.js';
import { Timeline, timelineFile } from '../../files/timeline.js';
import { integer, oneOf } from '../../checks.js';
import {
  checkEvents,
  flatOptions,
  headOf,
  optionsOf,
  Steps,
  type Defaults,
  type RunEvents,
  type RunOptions,
} from '../run.js';
import { tfjsPart } from '../tfjs-part.js';
import { ddpCases, type DdpContext } from './cases.js';
import { compareDdp, ddpSteps, type DdpPlan } from './compare.js';
import type { DdpWorkload, ModelWorkloadOptions } from './step.js';
import { communicationAlone, syntheticWorkload } from './synthetic.js';

/** Length of the timetable: as it is, or as what communication alone is so many percent of. */
export interface SyntheticCompute {
  readonly value: number;
  readonly unit: 'milliseconds' | 'percent';
}

/** What to compare. In a job every process calls with the same options; outside one there is one rank. */
export interface DdpOptions
  extends RunOptions, Partial<Omit<ModelWorkloadOptions, 'rank' | 'size'>> {
  /** MiB; a bucket is closed by the gradient that brings it there. Default 3, 5, 10, 15, 20, 25 and 27. */
  readonly bucketSizes?: readonly number[];
  /** MiB of the first bucket, which begins early; default 1. */
  readonly firstBucket?: number;
  /** Default all three. */
  readonly modes?: readonly ReduceMode[];
  /** Steps that are timed; default 100. */
  readonly steps?: number;
  /** Steps before that are dropped; default 20. */
  readonly warmup?: number;
  /** `async` and `sync` with buckets of Mi elements, as PyTorch's compare_ddp has them. */
  readonly originalUnits?: boolean;
  /** No model, and so no TensorFlow.js: the gradients of resnet50 on a timetable. */
  readonly syntheticCompute?: SyntheticCompute;
  /** Synthetic gradients are copied into their buckets, as those of TensorFlow.js. */
  readonly copyGradients?: boolean;
  /** A Chrome trace of the steps of `overlap`: a file for each rank, with its number in the name. */
  readonly timeline?: string;
}

const others = ['syntheticCompute', 'backend', 'allowCpu', 'timeline'] as const;
const defaults: Defaults<DdpOptions, (typeof others)[number]> = {
  model: 'lenet',
  dataset: 'cifar10',
  batchSize: 8,
  bucketSizes: [3, 5, 10, 15, 20, 25, 27],
  firstBucket: 1,
  modes: reduceModes,
  steps: 100,
  warmup: 20,
  originalUnits: false,
  copyGradients: false,
};

type Given = DdpOptions & typeof defaults;

async function workloadOf(options: Given, world: Communicator): Promise<DdpWorkload> {
  const { syntheticCompute: compute, copyGradients: copies } = options;
  if (compute === undefined) {
    const { modelWorkload } = await tfjsPart(() => import('./model.js'));
    const { model, dataset, batchSize, backend, allowCpu } = options;
    const { rank, size } = world;
    return modelWorkload({ model, dataset, batchSize, backend, allowCpu, rank, size });
  }
  if (compute.unit === 'milliseconds') {
    return syntheticWorkload({ backwardSeconds: compute.value / 1e3, copies });
  }
  const communication = await communicationAlone(world);
  return syntheticWorkload({ backwardSeconds: communication / (compute.value / 100), copies });
}

/** Every option with its value, as reports have them. */
export function usedOptions(options: DdpOptions): ReturnType<typeof flatOptions> {
  const { originalUnits, copyGradients, syntheticCompute: compute } = options;
  const share = compute?.unit === 'percent' ? '%' : '';
  return flatOptions({
    ...options,
    originalUnits: originalUnits === true,
    copyGradients: copyGradients === true,
    syntheticCompute: compute === undefined ? null : `${compute.value}${share}`,
  });
}

async function compare(world: Communicator, given: Given, events: RunEvents): Promise<Report> {
  const { warmup: warmupSteps, originalUnits, timeline: file } = given;
  const workload = await workloadOf(given, world);
  const { commandLine = [], options = usedOptions(given) } = given.asked ?? {};
  const head = headOf('ddp', {
    asked: {
      commandLine,
      options: { workload: workload.description, ...options, ranks: world.size },
    },
  });
  events.onStart?.(head, []);
  const context: DdpContext = {
    model: workload.model,
    synthetic: workload.synthetic,
    ranks: world.size,
    gradientBytes: workload.gradientBytes,
    gradients: workload.gradients,
    warmupSteps,
    originalUnits,
  };
  const timeline =
    file === undefined
      ? undefined
      : new Timeline(ownFile(timelineFile(file, world.rank)), { rank: world.rank });
  const plan: DdpPlan = {
    ...given,
    firstBucketMebibytes: given.firstBucket,
    warmupSteps,
    timeline,
  };
  const steps = new Steps(events, ddpSteps(plan));
  const cases: CaseResult[] = [];
  try {
    await compareDdp(
      world,
      workload,
      plan,
      (rows) => {
        const results = ddpCases(rows, context);
        cases.push(...results);
        events.onCases?.(results);
      },
      () => {
        steps.advance();
      },
    );
  } finally {
    timeline?.close();
  }
  return { ...head, cases };
}

/**
 * Compares modes and bucket sizes; every process of a job calls it alike and gets the same figures.
 *
 * @throws RangeError or TypeError with a code for options that cannot be
 * @throws GradlinkError where ranks do not come, and Error where a model is asked for without TensorFlow.js
 */
export async function run(options: DdpOptions = {}, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = optionsOf(options, defaults, others);
  for (const mode of given.modes) oneOf(mode, 'modes', reduceModes);
  integer(given.steps, 'steps', 1, 2 ** 31 - 1);
  integer(given.warmup, 'warmup', 1, 2 ** 31 - 1);
  const world = await Communicator.world();
  try {
    return await compare(world, given, world.rank === 0 ? events : {});
  } finally {
    await world.close();
  }
}
