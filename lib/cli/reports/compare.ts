// `gradlink compare`: did it get slower?

import { exitCodes } from '../io.js';
import { addTable } from '../parse.js';
import { flag, percent, text } from '../../options/kinds.js';
import { optionTable, type ReadOf } from '../../options/table.js';
import { readable, readRuns } from './read-runs.js';
import type { Register } from '../register.js';
import {
  addOutputOptions,
  checkOutput,
  outputFormat,
  type OutputOptions,
} from './report-output.js';
import { writeText } from '../terminal/terminal.js';
import { UsageError } from '../usage-error.js';
import { Baselines, compareRuns, hasRegressed } from '../../compare/index.js';
import { writeFileAtomic } from '../../files/index.js';
import { comparisonFormats, renderComparison, type ComparisonFormat } from '../../report/index.js';

const table = optionTable({
  tolerance: {
    flag: '--tolerance <percent>',
    help: 'percent below which a difference is ignored',
    kind: percent(0, 1000),
    default: 5,
  },
  confidence: {
    flag: '--confidence <percent>',
    help: 'probability that not one case is called better or worse by chance',
    kind: percent(50, 99.99),
    default: 95,
  },
  ignoreEnvironment: {
    flag: '--ignore-environment',
    help: 'judge even if machines or settings differ',
    kind: flag,
    default: false,
  },
  junit: {
    flag: '--junit <file>',
    help: "write JUnit's XML to this file too",
    kind: text(),
  },
});

type CompareOptions = ReadOf<typeof table> & OutputOptions<ComparisonFormat>;

const examples = `
RUN is a report (--output RUN.json of any command that measures), what nccl-tests, nvbandwidth or an OSU benchmark wrote
(text or JSON), a folder of reports, the name of a baseline, or - for standard input. Several runs of one side show how
much runs differ anyway: where the machine is not quiet, take three or more of the base.
Cases are paired by name and parameters. A case is worse when the whole bootstrap interval of the ratio of medians lies
beyond the tolerance, and the quickest samples moved as well.

Exit status: 0 no regression, 1 a case is worse or failed, or nothing could be compared, 2 wrong usage.

Examples:
  $ gradlink compare before.json after.json
  $ gradlink compare after.json                      with the baseline in use (gradlink baseline use)
  $ gradlink compare release-1 after.json --tolerance 10 --junit compare.xml`;

const byEnding: Readonly<Record<string, ComparisonFormat>> = {
  '.json': 'json',
  '.md': 'markdown',
  '.xml': 'junit',
  '.txt': 'text',
};

function sides(runs: readonly string[], baselines: Baselines): readonly [string, string] {
  const [first, second, ...more] = runs;
  if (first === undefined || more.length > 0) {
    throw UsageError.of(
      'compare',
      'one or two runs',
      String(runs.length),
      'Put the runs of a side into a folder, or save them as a baseline.',
    );
  }
  if (second !== undefined) return [first, second];
  const inUse = readable('the baseline in use', () => baselines.inUse());
  if (inUse === undefined) {
    throw UsageError.of(
      'compare',
      'two runs, or one and a baseline in use',
      'one run and no baseline in use',
      'Name both, or choose one with gradlink baseline use NAME.',
    );
  }
  return [inUse, first];
}

export const registerCompare: Register = (program, io, done) => {
  const command = program
    .command('compare')
    .description('compare two runs case by case; exit status 1 when something got worse')
    .argument('<runs...>', 'BASE and NEW, or NEW alone with the baseline in use');
  addOutputOptions(addTable(command, table), comparisonFormats, 'the comparison')
    .addHelpText('after', examples)
    .action((runs: readonly string[], options: CompareOptions) => {
      const format = outputFormat(options, byEnding, 'text');
      for (const file of [options.output, options.junit]) {
        if (file !== undefined) checkOutput(file);
      }
      const baselines = new Baselines(io.env);
      const [base, next] = sides(runs, baselines).map((name) => readRuns(name, baselines));
      const comparison = compareRuns(base!, next!, {
        tolerance: options.tolerance / 100,
        confidence: options.confidence / 100,
        ignoreEnvironment: options.ignoreEnvironment,
      });
      const text = (room?: number): string => renderComparison(comparison, format, room);
      if (options.output === undefined) writeText(text, format === 'text', io);
      else writeFileAtomic(options.output, [text()]);
      if (options.junit !== undefined) {
        writeFileAtomic(options.junit, [renderComparison(comparison, 'junit')]);
      }
      done(hasRegressed(comparison) ? exitCodes.failure : exitCodes.ok);
    });
};
