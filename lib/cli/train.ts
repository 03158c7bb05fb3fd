// `gradlink train`: trains a network on this process's rank of a job, and reports in the way of one of four benchmarks.
import type { Command } from 'commander';

import { exitCodes, type Io } from './io.js';
import { version } from '../version.js';
import { ProgressBar } from './progress/bar.js';
import type { Register } from './register.js';
import { ReportOutput } from './report-output.js';
import { runElasticDl, runTianshu } from './train-grid.js';
import { addTrainOptions, trainConfig, type TrainOptions } from './train-options.js';
import { UsageError } from './usage-error.js';
import { readJob } from '../communicator/job.js';
import { describeEnvironment } from '../results/environment.js';
import {
  outcome,
  schemaVersion,
  type CaseResult,
  type Report,
  type RunInfo,
  type Scalar,
} from '../results/result.js';
import { trainCase } from '../measure/train/case.js';
import { native } from '../native/load.js';
import { endLines, iterLine, startLines, type TrainStyle } from '../report/train-lines.js';
import { elasticDlTable, gridRows, gridTable, targetEfficiency } from '../report/train-tables.js';
import type { TrainResult } from '../measure/train/types.js';

function runInfo(command: Command, argv: readonly string[], workers: number): RunInfo {
  const options: Record<string, Scalar> = { workers };
  for (const [name, value] of Object.entries(command.opts<Record<string, unknown>>())) {
    options[name] = Array.isArray(value) ? value.join(',') : (value as Scalar);
  }
  return {
    tool: 'train',
    packageVersion: version,
    commandLine: argv,
    options,
    startedAt: new Date().toISOString(),
  };
}

function trainReport(run: RunInfo, cases: Report['cases']): Report {
  const addon = native();
  const environment = describeEnvironment({
    simdLevel: addon.simdLevel(),
    threads: addon.numThreads(),
  });
  return { schemaVersion, run, environment, cases };
}

/** A run in TianShu's style is a cell of a grid by where it ran. */
function placedCase(style: TrainStyle, made: CaseResult, result: TrainResult): CaseResult {
  if (style !== 'tianshu') return made;
  const { workers, machines } = result;
  const place = { machines, devicesPerMachine: workers / machines };
  return { ...made, parameters: { ...made.parameters, ...place } };
}

async function trainHere(
  command: Command,
  options: TrainOptions,
  argv: readonly string[],
  output: ReportOutput,
  io: Io,
): Promise<number> {
  const config = trainConfig(options);
  const print = (lines: readonly string[]): void => {
    if (!output.showsText) return;
    bar?.clear(io.stdout);
    io.stdout.write(lines.map((line) => `${line}\n`).join(''));
  };
  let bar: ProgressBar | undefined;
  const { style } = options;
  const asLines = style === 'bluefog' || style === 'horovod';
  let backend = '';
  // Loads TensorFlow.js, which an installation may lack.
  const { trainOnRank } = await import('../measure/train/rank.js');
  const training = trainOnRank(config, {
    onStart(workers, name) {
      backend = name;
      if (asLines) print(startLines(config, workers, name));
    },
    onIteration(iteration, rate) {
      const name = config.dataset === 'tokens' ? 'sentence' : 'img';
      if (asLines) print([iterLine(iteration, rate, backend, name)]);
    },
    onStep(step, steps) {
      bar ??= new ProgressBar(io, steps, 'steps');
      bar.show(step);
    },
  });
  const result = await training.finally(() => bar?.stop());
  if (result === undefined) return exitCodes.ok;
  const report = trainReport(runInfo(command, argv, result.workers), [
    placedCase(style, trainCase(config, result), result),
  ]);
  if (asLines) print(endLines(style, config, result));
  else if (style === 'elasticdl') print(elasticDlTable(report.cases));
  else print(gridTable(gridRows(report.cases, targetEfficiency)));
  output.write(report);
  return outcome(report).error === 0 ? exitCodes.ok : exitCodes.failure;
}

/** Options that start jobs of their own, each with the style that has it. */
function refuseMeaningless(options: TrainOptions): void {
  if (options.workers !== undefined && options.style !== 'elasticdl') {
    throw UsageError.of('--workers', 'an option of --style elasticdl', `it with ${options.style}`);
  }
  if (options.plan !== undefined && options.style !== 'tianshu') {
    throw UsageError.of('--plan', 'an option of --style tianshu', `it with ${options.style}`);
  }
  if ((options.plan === undefined) !== (options.outputDir === undefined)) {
    throw UsageError.of('--plan and --output-dir', 'both or none', 'one of them');
  }
  const starts = options.workers !== undefined || options.plan !== undefined;
  if (starts && readJob() !== undefined) {
    const expected = 'to be started by itself: it starts jobs';
    throw UsageError.of('gradlink train with --workers or --plan', expected, 'a place in a job');
  }
}

export const registerTrain: Register = (program, io, done, argv) => {
  const command = program
    .command('train')
    .description(
      'train a network on all workers of a job and report throughput and where a step goes',
    );
  addTrainOptions(command).action(async (options: TrainOptions) => {
    refuseMeaningless(options);
    const output = new ReportOutput(options, io);
    const { workers, plan, outputDir } = options;
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
        : await runTianshu(command, options, outputDir ?? '', io, print);
    const report = trainReport(runInfo(command, argv, Math.max(...(workers ?? [1]))), cases);
    output.write(report);
    const { ok, error } = outcome(report);
    done(error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure);
  });
};
