// `gradlink report`: runs as a page, pictures or Markdown.
import { basename, dirname, extname, join } from 'node:path';

import { exitCodes, type Io } from '../io.js';
import { addTable } from '../parse.js';
import { choice, flag, repeated, text } from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';
import { readRuns } from './read-runs.js';
import type { Register } from '../register.js';
import { checkOutput, outputFormat } from './report-output.js';
import { UsageError } from '../usage-error.js';
import { Baselines } from '../../compare/index.js';
import { makeFolders, writeFileAtomic, writeOwnFile } from '../../files/index.js';
import { didYouMean } from '../../nearest.js';
import { printable } from '../../printable.js';
import { chartsOf, type Chart, type LabelledRun } from '../../report/charts/index.js';
import { runsToMarkdown } from '../../report/page/markdown.js';
import { toPage } from '../../report/page/html.js';
import { toSvg } from '../../report/page/svg.js';

const formats = ['html', 'svg', 'md'] as const;
type Format = (typeof formats)[number];

const table = optionTable({
  output: {
    flag: '-o, --output <file>',
    help: 'write here (default: standard output)',
    kind: text(),
  },
  format: {
    flag: '--format <format>',
    help: `${formats.join(', ')} (default: by the ending of --output, else html)`,
    kind: choice(formats, { markdown: 'md' }),
  },
  chart: {
    flag: '--chart <names...>',
    help: 'only these charts; see --list',
    kind: repeated(text()),
  },
  list: { flag: '--list', help: 'list the charts that these runs have', kind: flag },
});

const examples = `
RUN is a report (--output RUN.json of any command that measures), what nccl-tests (its table, or -J), nvbandwidth (its text,
or -j) or an OSU benchmark wrote, a folder of reports, the name of a baseline, or - for standard input. Several runs are
drawn over each other.

html  one page: nothing from a network, one script, which sorts tables; light and dark, for screens, phones and paper
svg   the charts below each other in one picture, for a README
md    tables and words, for an issue; with --output FILE, each chart is a picture beside it: FILE without .md, the
      chart's name, .svg

Examples:
  $ gradlink collectives all_reduce -n 4 --output run.json
  $ gradlink report run.json -o report.html
  $ gradlink report before.json after.json -o both.html
  $ gradlink report run.json --list                       names of the charts
  $ gradlink report run.json --chart bandwidth-all-reduce -o bandwidth.svg
  $ gradlink report run.json --format md
  $ all_reduce_perf -b 8 -e 128M -f 2 -g 2 | gradlink report - -o report.html

Exit status: 0 written, 1 it could not be written, 2 wrong usage or no report.`;

const byEnding: Readonly<Record<string, Format>> = {
  '.html': 'html',
  '.htm': 'html',
  '.svg': 'svg',
  '.md': 'md',
};

/** Those that were there before get their place behind them, or the next number that makes a label which none has. */
function unlike(labels: readonly string[]): string[] {
  const taken = new Set(labels);
  return labels.map((label, index) => {
    if (labels.indexOf(label) === index) return label;
    const numbered = (number: number): string => `${label} (${String(number)})`;
    let number = index + 1;
    while (taken.has(numbered(number))) number += 1;
    taken.add(numbered(number));
    return numbered(number);
  });
}

/** File names without their ending, or longer parts of the paths where those are alike. */
function labels(names: readonly string[]): string[] {
  const short = names.map((name) => (name === '-' ? 'standard input' : basename(name, '.json')));
  const longer = short.map((label, index) => {
    const repeated = short.some((other, at) => at !== index && other === label);
    return repeated ? (names[index] ?? label) : label;
  });
  return unlike(longer.map(printable));
}

/** The runs under all names; of a folder or baseline each by its number, as repeats of one another. */
function loadRuns(names: readonly string[], io: Io): LabelledRun[] {
  const baselines = new Baselines(io.env);
  const called = labels(names);
  const runs = names.flatMap((name, at) => {
    const { reports } = readRuns(name, baselines);
    const label = called[at] ?? name;
    return reports.map((report, index): LabelledRun => {
      if (reports.length === 1) return { label, report };
      return { label: `${label} ${String(index + 1)}`, set: label, report };
    });
  });
  const unique = unlike(runs.map(({ label }) => label));
  return runs.map((run, index) => ({ ...run, label: unique[index] ?? run.label }));
}

function chosenCharts(all: readonly Chart[], names: readonly string[] | undefined): Chart[] {
  if (names === undefined) return [...all];
  return names.map((name) => {
    const chart = all.find(({ id }) => id === name);
    if (chart !== undefined) return chart;
    const ids = all.map(({ id }) => id);
    const known = ids.join(', ');
    throw new UsageError(
      known === ''
        ? `--chart ${name}: no chart can be drawn of this run.`
        : `The chart ${name} is unknown. Expected one of: ${known}.${didYouMean(name, ids)}`,
    );
  });
}

async function markdown(
  runs: readonly LabelledRun[],
  charts: readonly Chart[],
  output: string | undefined,
): Promise<string> {
  const pictures = new Map<string, string>();
  if (output !== undefined) {
    const stem = basename(output, extname(output));
    for (const chart of charts) {
      const file = `${stem}.${chart.id}.svg`;
      writeOwnFile(join(dirname(output), file), [await toSvg([chart])]);
      pictures.set(chart.id, file);
    }
  }
  return runsToMarkdown(runs, charts, pictures);
}

async function write(
  names: readonly string[],
  options: ReadOf<typeof table>,
  io: Io,
): Promise<void> {
  const { output } = options;
  const format = outputFormat(options, byEnding, 'html');
  const runs = loadRuns(names, io);
  const all = chartsOf(runs);
  if (options.list === true) {
    io.stdout.write(all.map(({ id, title }) => `${id}  ${title}\n`).join(''));
    return;
  }
  const charts = chosenCharts(all, options.chart);
  if (format === 'html' && options.chart !== undefined) {
    throw new UsageError('--chart needs --format svg or md: an HTML page has all charts.');
  }
  if (format === 'svg' && charts.length === 0) {
    throw new UsageError('--format svg needs a run that has something to draw. Try html.');
  }
  if (output !== undefined) {
    makeFolders(dirname(output));
    checkOutput(output);
  }
  const text =
    format === 'html'
      ? await toPage(runs)
      : format === 'svg'
        ? await toSvg(charts)
        : await markdown(runs, charts, output);
  if (output === undefined) io.stdout.write(text);
  else writeFileAtomic(output, [text]);
}

export const registerReport: Register = (program, io, done) => {
  const command = program
    .command('report')
    .description('one run or several as a page with charts, as pictures or as Markdown')
    .argument('<runs...>', 'reports, folders of reports, or baselines');
  addTable(command, table)
    .addHelpText('after', examples)
    .action(async (names: readonly string[], options: ReadOf<typeof table>) => {
      await write(names, options, io);
      done(exitCodes.ok);
    });
};
