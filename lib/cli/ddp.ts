// `gradlink ddp`: how gradients are best reduced while they are computed, as PyTorch's compare_ddp asks.
import { writeFileSync } from 'node:fs';

import type { Command } from 'commander';

import { addDdpOptions, ddpExamples, type DdpOptions } from './ddp-options.js';
import { exitCodes, type Io } from './io.js';
import { version } from '../version.js';
import { ProgressBar } from './progress/bar.js';
import type { Register } from './register.js';
import { runAsJob } from './relaunch.js';
import { addReportOptions, checkOutput, ReportOutput } from './report-output.js';
import { UsageError } from './usage-error.js';
import { Communicator } from '../communicator/communicator.js';
import { ddpCases, type DdpContext } from '../measure/ddp/cases.js';
import { compareDdp, ddpSteps, type DdpPlan } from '../measure/ddp/compare.js';
import type { DdpWorkload } from '../measure/ddp/step.js';
import { communicationAlone, syntheticWorkload } from '../measure/ddp/synthetic.js';
import { describeEnvironment } from '../results/environment.js';
import {
  outcome,
  schemaVersion,
  type CaseResult,
  type Report,
  type Scalar,
} from '../results/result.js';
import { jobSize } from '../measure/collectives/world.js';
import { native } from '../native/load.js';
import { chartsOf, chartSvg } from '../report/charts/index.js';
import { ddpFooter, ddpHeader, ddpSizeLines } from '../report/index.js';
import { Timeline, timelineFile } from '../train/timeline.js';

const plotWidth = 900;

async function workloadOf(options: DdpOptions, world: Communicator): Promise<DdpWorkload> {
  const { syntheticCompute: compute } = options;
  const copies = options.copyGradients === true;
  if (compute === undefined) {
    // TensorFlow.js is loaded only where it is used.
    const { modelWorkload } = await import('../measure/ddp/model.js');
    const { model, dataset, batchSize, backend } = options;
    const { rank, size } = world;
    return modelWorkload({ model, dataset, batchSize, backend, rank, size });
  }
  if (compute.unit === 'milliseconds') {
    return syntheticWorkload({ backwardSeconds: compute.value / 1e3, copies });
  }
  const communication = await communicationAlone(world);
  return syntheticWorkload({ backwardSeconds: communication / (compute.value / 100), copies });
}

async function plot(report: Report, file: string): Promise<void> {
  const charts = chartsOf([{ label: 'ddp', report }]);
  const lines = charts.find(({ id }) => id === 'time-ddp-bucket');
  // Two sizes were asked for: check() has seen to it.
  if (lines === undefined) return;
  writeFileSync(file, await chartSvg(lines.spec(plotWidth), 'ddp'));
}

/** Every option with its value, as reports have them. */
function usedOptions(options: DdpOptions): Record<string, Scalar> {
  const { syntheticCompute: compute } = options;
  const share = compute?.unit === 'percent' ? '%' : '';
  return {
    ...Object.fromEntries(
      Object.entries(options).map(([name, value]: [string, unknown]) => [
        name,
        Array.isArray(value) ? value.join(',') : (value as Scalar),
      ]),
    ),
    originalUnits: options.originalUnits === true,
    copyGradients: options.copyGradients === true,
    syntheticCompute: compute === undefined ? null : `${compute.value}${share}`,
  };
}

async function run(
  world: Communicator,
  options: DdpOptions,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const printing = world.rank === 0;
  const output = printing ? new ReportOutput(options, io) : undefined;
  const print = (lines: readonly string[]): void => {
    if (output?.showsText !== true) return;
    progress.clear(io.stdout);
    io.stdout.write(lines.map((line) => `${line}\n`).join(''));
  };
  const plan: DdpPlan = {
    bucketSizes: options.bucketSizes,
    firstBucketMebibytes: options.firstBucket,
    modes: options.modes,
    warmupSteps: options.warmup,
    steps: options.steps,
    originalUnits: options.originalUnits === true,
  };
  const progress = new ProgressBar(io, printing ? ddpSteps(plan) : 0, 'steps');
  const workload = await workloadOf(options, world);
  const addon = native();
  const head = {
    schemaVersion,
    run: {
      tool: 'ddp',
      packageVersion: version,
      commandLine: argv,
      options: { workload: workload.description, ...usedOptions(options), ranks: world.size },
      startedAt: new Date().toISOString(),
    },
    environment: describeEnvironment({
      simdLevel: addon.simdLevel(),
      threads: addon.numThreads(),
    }),
  } as const;
  print(ddpHeader(head));
  const context: DdpContext = {
    model: workload.model,
    synthetic: workload.synthetic,
    ranks: world.size,
    gradientBytes: workload.gradientBytes,
    gradients: workload.gradients,
    warmupSteps: options.warmup,
    originalUnits: options.originalUnits === true,
  };
  const timeline =
    options.timeline === undefined
      ? undefined
      : new Timeline(timelineFile(options.timeline, world.rank), { rank: world.rank });
  const cases: CaseResult[] = [];
  try {
    progress.show(0);
    await compareDdp(
      world,
      workload,
      { ...plan, timeline },
      (rows) => {
        const results = ddpCases(rows, context);
        cases.push(...results);
        print(ddpSizeLines(results));
      },
      () => {
        progress.advance();
      },
    );
  } finally {
    progress.stop();
    timeline?.close();
  }
  const report: Report = { ...head, cases };
  print(ddpFooter(report));
  output?.write(report);
  if (printing && options.plot !== undefined) await plot(report, options.plot);
  const { ok, error } = outcome(report);
  return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
}

function check(options: DdpOptions): void {
  if (options.output !== undefined) checkOutput(options.output);
  if (options.plot === undefined) return;
  if (options.bucketSizes.length < 2) {
    throw UsageError.of('--plot', 'two bucket sizes or more', String(options.bucketSizes.length));
  }
  if (!options.plot.endsWith('.svg')) {
    throw UsageError.of('--plot', 'a file that ends in .svg', options.plot);
  }
}

async function ddp(options: DdpOptions, argv: readonly string[], io: Io): Promise<number> {
  check(options);
  const size = jobSize();
  if (size === undefined) return runAsJob(options.ranks ?? 2, ['ddp', ...argv], io);
  if (options.ranks !== undefined && options.ranks !== size) {
    // The ranks that this command starts itself were told -n too.
    throw UsageError.of('-n', `the ${size} ranks of the job`, String(options.ranks));
  }
  const world = await Communicator.world();
  try {
    return await run(world, options, argv, io);
  } finally {
    await world.close();
  }
}

export const registerDdp: Register = (program, io, done, argv) => {
  const command: Command = program
    .command('ddp')
    .description('how gradients are best reduced while they are computed: bucket sizes and modes');
  addReportOptions(addDdpOptions(command))
    .addHelpText('after', ddpExamples)
    .action(async (options: DdpOptions) => {
      done(await ddp(options, argv, io));
    });
};
