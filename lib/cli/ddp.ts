// `gradlink ddp`: how gradients are best reduced while they are computed, as PyTorch's compare_ddp asks.
import type { Io } from './io.js';
import { measured, ranksOf } from './measured-command.js';
import { addTable, givenOf, typedOf } from './parse.js';
import type { Register } from './register.js';
import { runAsJob } from './relaunch.js';
import {
  addReportOptions,
  checkEnding,
  ReportOutput,
  type ReportOptions,
} from './reports/report-output.js';
import { UsageError } from './usage-error.js';
import { writeFileAtomic } from '../files/index.js';
import { ddpTable, type DdpOptions } from '../measure/ddp/ddp-options.js';
import { run } from '../measure/ddp/ddp-run.js';
import { jobSize } from '../measure/job.js';
import { flatOptions } from '../measure/common-run.js';
import { text, whole } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import { chartsOf, chartSvg } from '../report/charts/index.js';
import { ddpTool } from '../report/index.js';
import type { Report } from '../results/result.js';

/** What the command has besides. */
const ownTable = optionTable({
  ranks: {
    flag: '-n, --ranks <count>',
    help: 'processes to start outside of a job (default: 2)',
    kind: whole({ min: 1, max: 4096 }),
  },
  plot: { flag: '--plot <file>', help: 'time over bucket size, as SVG', kind: text() },
});

type OwnOptions = ReadOf<typeof ownTable> & ReportOptions;

const examples = `
Modes: overlap reduces a bucket as soon as its gradients are there, while the backward pass runs on. async reduces all
buckets at once after the backward pass. sync reduces them then one after the other. Forward and backward times of all
ranks go into each figure; the first steps are dropped. Percentages are relative to overlap.

PyTorch's compare_ddp gives overlap buckets of MiB. It gives the other two as many Mi elements, four times the bytes, in
forward order. --original-units does the same. Without it equal bytes are compared.

--synthetic-compute replaces the model by the 161 gradients of resnet50 (97.5 MiB), released on a timetable while the
thread sleeps, as it does when a GPU computes: a number of milliseconds for the backward pass, or the percentage of it
that communication alone takes. They are released in their buckets, where a GPU's copy engine would leave
them, or, with --copy-gradients, copied there. Outside a job, -n processes are started on this host.

Examples:
  $ gradlink ddp --synthetic-compute 60%
  $ gradlink ddp --synthetic-compute 100 --bucket-sizes 3,10,25 --plot ddp.svg --output ddp.json
  $ gradlink ddp -n 4 --model lenet --dataset mnist --batch-size 16 --steps 20 --warmup 5
  $ gradlink launch -n 8 -H hosts --launcher ssh gradlink ddp --model resnet20
  $ gradlink ddp --synthetic-compute 60% --bucket-sizes 10 --steps 10 --timeline trace.json

Exit status: 0 all well, 1 a wrong sum or a failure, 2 wrong usage.`;

const plotWidth = 900;

async function plot(report: Report, file: string): Promise<void> {
  const charts = chartsOf([{ label: 'ddp', report }]);
  const lines = charts.find(({ id }) => id === 'time-ddp-bucket');
  // Two sizes were asked for: check() has seen to it.
  if (lines === undefined) return;
  writeFileAtomic(file, [await chartSvg(lines.spec(plotWidth), 'ddp')]);
}

function check(options: OwnOptions, { bucketSizes = [] }: DdpOptions): void {
  if (options.plot === undefined) return;
  if (bucketSizes.length < 2) {
    throw UsageError.of('--plot', 'two bucket sizes or more', String(bucketSizes.length));
  }
  checkEnding('--plot', options.plot, ['.svg']);
}

async function ddp(options: OwnOptions, argv: readonly string[], io: Io): Promise<number> {
  const given = givenOf(ddpTable, options);
  check(options, given);
  const output = new ReportOutput(options, io);
  const size = jobSize();
  if (size === undefined) return runAsJob(options.ranks ?? 2, ['ddp', ...argv], io);
  // The ranks that this command starts itself were told -n too.
  ranksOf(options, size);
  const { plot: file } = options;
  const asked = { commandLine: argv, options: flatOptions(typedOf(ddpTable, options)) };
  const after = file === undefined ? {} : { after: (report: Report) => plot(report, file) };
  return measured({ tool: ddpTool, output, io, unit: 'steps', ...after }, (events) =>
    run({ ...given, asked }, events),
  );
}

export const registerDdp: Register = (program, io, done, argv) => {
  const command = program
    .command('ddp')
    .description('how gradients are best reduced while they are computed: bucket sizes and modes');
  addReportOptions(addTable(addTable(command, ownTable), ddpTable))
    .addHelpText('after', examples)
    .action(async (options: OwnOptions) => {
      done(await ddp(options, argv, io));
    });
};
