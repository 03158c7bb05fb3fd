// `gradlink train`: trains a network on this process's rank of a job, and reports in the way of one of four benchmarks.
import type { Command } from 'commander';

import type { Io } from '../io.js';
import { exitCodeOf, measured } from '../measured-command.js';
import { typedOf } from '../parse.js';
import type { Register } from '../register.js';
import { ReportOutput } from '../reports/report-output.js';
import { runElasticDl, runPlan } from './grid.js';
import { addTrainOptions, trainConfig, type OwnTrainOptions } from './train-options.js';
import { UsageError } from '../usage-error.js';
import { readJob } from '../../communicator/joining/job.js';
import { flatOptions, headOf } from '../../measure/common-run.js';
import { trainTable } from '../../measure/train/train-options.js';
import { run } from '../../measure/train/train-run.js';
import { trainTool } from '../../report/index.js';
import { endLines, iterLine, startLines } from '../../report/train-lines.js';
import type { Report } from '../../results/result.js';

/** Lines of a run as they come, in the style of the benchmark that it stands in for. */
async function trainHere(
  command: Command,
  options: OwnTrainOptions,
  argv: readonly string[],
  output: ReportOutput,
  io: Io,
): Promise<number> {
  const config = trainConfig(options);
  const { style } = options;
  const asLines = style === 'bluefog' || style === 'horovod';
  const tool = {
    head: () => [],
    rows: () => [],
    foot: ({ cases }: Report, room?: number) => (asLines ? [] : trainTool.rows(cases, room)),
  };
  let device: 'GPU' | 'CPU' = 'CPU';
  const asked = { commandLine: argv, options: flatOptions(typedOf(trainTable, command.opts())) };
  return measured({ tool, output, io, unit: 'steps' }, (events, print) =>
    run(
      { ...config, placed: style === 'tianshu', asked },
      {
        ...events,
        onTraining(workers, backend) {
          ({ device } = backend);
          if (asLines) print(startLines(config, workers, device));
        },
        onIteration(iteration, rate) {
          const name = config.dataset === 'tokens' ? 'sentence' : 'img';
          if (asLines) print([iterLine(iteration, rate, device, name)]);
        },
        onResult(result) {
          if (asLines) print(endLines(style, config, result));
        },
      },
    ),
  );
}

const isGridStyle = (style: string): boolean => style === 'tianshu' || style === 'elasticdl';

/** Options that start jobs of their own, each with the style that has it. */
function refuseMeaningless(options: OwnTrainOptions): void {
  if (options.workers !== undefined && options.style !== 'elasticdl') {
    throw new UsageError('--workers needs --style elasticdl.');
  }
  if (options.plan !== undefined && !isGridStyle(options.style)) {
    throw new UsageError('--plan needs --style tianshu or elasticdl.');
  }
  if (options.plan !== undefined && options.workers !== undefined) {
    throw new UsageError(
      '--workers cannot be combined with --plan: the plan has an entry for them, workers: [1, 2].',
    );
  }
  if ((options.plan === undefined) !== (options.outputDir === undefined)) {
    throw new UsageError('--plan and --output-dir must be given together.');
  }
  const starts = options.workers !== undefined || options.plan !== undefined;
  const { launchArg = [] } = options;
  if (!starts && launchArg.length > 0) {
    throw new UsageError('--launch-arg needs --plan or --workers.');
  }
  // A run's report comes back through the output of its job.
  const altered = launchArg.find((one) => ['--tag-output', '--dry-run'].includes(one));
  if (altered !== undefined) {
    throw new UsageError(`--launch-arg cannot be ${altered}, which changes the output of a run.`);
  }
  if (starts && readJob() !== undefined) {
    throw new UsageError(
      'gradlink train with --workers or --plan starts jobs itself: run it outside of a job.',
    );
  }
}

export const registerTrain: Register = (program, io, done, argv) => {
  const command = program
    .command('train')
    .description(
      'train a network on all workers of a job and report throughput and where a step goes',
    );
  addTrainOptions(command).action(async (options: OwnTrainOptions) => {
    refuseMeaningless(options);
    const output = new ReportOutput(options, io);
    const { workers, plan, outputDir } = options;
    const gridStyle = options.style === 'elasticdl' ? 'elasticdl' : 'tianshu';
    if (workers === undefined && plan === undefined) {
      done(await trainHere(command, options, argv, output, io));
      return;
    }
    const print = (text: string): void => {
      if (output.showsText) io.stdout.write(text);
    };
    const cases =
      plan === undefined
        ? await runElasticDl(command, options, io, print)
        : await runPlan(command, options, gridStyle, outputDir ?? '', io, print);
    const asked = { commandLine: argv, options: flatOptions(typedOf(trainTable, command.opts())) };
    const report = {
      ...headOf('train', { asked }, { workers: Math.max(...(workers ?? [1])) }),
      cases,
    };
    output.write(report);
    done(exitCodeOf(report));
  });
};
