// The benchmark of reducing gradients during the backward pass: `gradlink ddp` without its options, job start and
// printing.
import { Communicator } from '../../communicator/communicator.js';
import type { CaseResult, Report } from '../../results/result.js';
import { ownFile } from '../../files/index.js';
import { Timeline, timelineFile } from '../../files/timeline.js';
import {
  checkEvents,
  givenOptions,
  headOf,
  Steps,
  type Given,
  type RunEvents,
} from '../common-run.js';
import { tfjsPart } from '../tfjs-part.js';
import { ddpCases, type DdpContext } from './cases.js';
import { compareDdp, ddpSteps, type DdpPlan } from './compare.js';
import { ddpTable, type DdpOptions } from './ddp-options.js';
import type { DdpWorkload } from './step.js';
import { communicationAlone, syntheticWorkload } from './synthetic.js';

async function workloadOf(
  options: Given<typeof ddpTable>,
  world: Communicator,
): Promise<DdpWorkload> {
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

async function compare(
  world: Communicator,
  given: Given<typeof ddpTable>,
  events: RunEvents,
): Promise<Report> {
  const { warmup: warmupSteps, originalUnits, timeline: file } = given;
  const workload = await workloadOf(given, world);
  const head = headOf('ddp', given, { workload: workload.description, ranks: world.size });
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
 * Compares modes and bucket sizes; collective in a job, with the same figures for every process.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError if ranks are missing, and Error for a model without TensorFlow.js
 */
export async function run(options: DdpOptions = {}, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(ddpTable, options);
  const world = await Communicator.world();
  try {
    return await compare(world, given, world.rank === 0 ? events : {});
  } finally {
    await world.close();
  }
}
