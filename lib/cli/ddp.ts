// `gradlink ddp`: how gradients are best reduced while they are computed, as PyTorch's compare_ddp asks.
import type { Command } from 'commander';

import { addDdpOptions, ddpExamples, type DdpOptions } from './ddp-options.js';
import type { Io } from './io.js';
import { measured, ranksOf } from './measured-command.js';
import { without } from './parse.js';
import type { Register } from './register.js';
import { runAsJob } from './relaunch.js';
import { addReportOptions, checkOutput, ReportOutput } from './report-output.js';
import { UsageError } from './usage-error.js';
import { writeFileAtomic } from '../files/index.js';
import { run, usedOptions } from '../measure/ddp/run.js';
import { jobSize } from '../measure/job.js';
import { chartsOf, chartSvg } from '../report/charts/index.js';
import { ddpTool } from '../report/index.js';
import type { Report } from '../results/result.js';

const plotWidth = 900;

async function plot(report: Report, file: string): Promise<void> {
  const charts = chartsOf([{ label: 'ddp', report }]);
  const lines = charts.find(({ id }) => id === 'time-ddp-bucket');
  // Two sizes were asked for: check() has seen to it.
  if (lines === undefined) return;
  writeFileAtomic(file, [await chartSvg(lines.spec(plotWidth), 'ddp')]);
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
  // The ranks that this command starts itself were told -n too.
  ranksOf(options, size);
  const { plot: file } = options;
  const others = without(options, ['ranks', 'format', 'output', 'plot']);
  const output = new ReportOutput(options, io);
  const asked = { commandLine: argv, options: usedOptions(options) };
  const after = file === undefined ? {} : { after: (report: Report) => plot(report, file) };
  return measured({ tool: ddpTool, output, io, unit: 'steps', ...after }, (events) =>
    run({ ...others, asked }, events),
  );
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
