// `gradlink p2p`: bandwidth and latency between host memory and GPUs, with nvbandwidth's cases and options.
import type { Command } from 'commander';

import { presentGpus } from './gpus.js';
import { exitCodes, type Io } from './io.js';
import { measured } from './measured-command.js';
import { addTable, givenOf, typedOf } from './parse.js';
import type { Register } from './register.js';
import { addReportOptions, ReportOutput, type ReportOptions } from './reports/report-output.js';
import { UsageError } from './usage-error.js';
import { p2pCases, type P2pCase } from '../measure/p2p/cases.js';
import { p2pMatrixCases } from '../measure/p2p/matrix.js';
import { p2pTable } from '../measure/p2p/p2p-options.js';
import { run } from '../measure/p2p/p2p-run.js';
import { flatOptions } from '../measure/common-run.js';
import { flag, repeated, text } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import { didYouMean } from '../nearest.js';
import { p2pTool } from '../report/index.js';
import { mebibyte } from '../results/units.js';

/** What the command has besides. */
const ownTable = optionTable({
  list: { flag: '-l, --list', help: 'list the cases', kind: flag },
  testcase: {
    flag: '-t, --testcase <names...>',
    help: 'only these cases, by name or number',
    kind: repeated(text()),
  },
  prefix: {
    flag: '-p, --prefix <prefixes...>',
    help: 'only cases whose names begin with these',
    kind: repeated(text()),
  },
  matrix: {
    flag: '--matrix',
    help: 'all pairs: bandwidth, both directions, latency; peer access off and on',
    kind: flag,
  },
  quick: {
    flag: '--quick',
    help: 'a first look in seconds: as -b 16 -i 1 --loop-count 4',
    kind: flag,
  },
});

type OwnOptions = ReadOf<typeof ownTable> & ReportOptions;

const examples = `
Names, order and meaning of the cases are those of nvbandwidth; "ce" is a GPU's copy engine, "sm" its multiprocessors.
Data always goes FROM the place of the row TO the place of the column. Each case says which GPU reads or writes.
GB/s is 1e9 bytes a second. Host memory is page-locked, and allocated near its GPU.

A figure is the median of --samples samples of --loop-count copies. All copies of a sample are queued behind a kernel
that waits for a flag. So the host's speed does not count, and copies that disturb each other begin together. After every
sample all bytes are compared. Beside each figure stands the limit of its link, as NVML gives it: NVLinks x their rate,
PCIe generation x width, or the memory bus. Where a figure is low, the likely cause follows.

In a job on several hosts (gradlink launch, mpirun, srun) messages between them are measured instead: between GPUs where
all hosts have them, else between host memory. The slowest host and the slowest link are named.

Examples:
  $ gradlink p2p                                   all cases
  $ gradlink p2p --quick                           the same in seconds, with figures that scatter more
  $ gradlink p2p --list
  $ gradlink p2p -t device_to_device_memcpy_write_ce host_to_device_memcpy_ce
  $ gradlink p2p -p device_to_device --samples 9 --format json --output links.json
  $ gradlink p2p --matrix                          all pairs with peer access off and on, as cuda-samples' peer test

Exit status: 0 all that ran was right, 1 wrong data, a failure, or nothing could run, 2 wrong usage.`;

/** What the options ask for, in the order of the table. */
function chooseCases({ testcase, prefix, matrix }: OwnOptions): readonly P2pCase[] {
  if (testcase !== undefined && prefix !== undefined) {
    throw new UsageError('--testcase and --prefix cannot be combined.');
  }
  if (matrix === true) {
    if (testcase !== undefined || prefix !== undefined) {
      throw new UsageError('--matrix cannot be combined with --testcase or --prefix.');
    }
    return p2pMatrixCases;
  }
  if (prefix !== undefined) {
    const none = prefix.find((start) => !p2pCases.some(({ name }) => name.startsWith(start)));
    if (none !== undefined) {
      throw UsageError.of('--prefix', 'the beginning of a case', none, 'See gradlink p2p --list.');
    }
    return p2pCases.filter(({ name }) => prefix.some((start) => name.startsWith(start)));
  }
  if (testcase === undefined) return p2pCases;
  const chosen = new Set(testcase.map(caseOf));
  return p2pCases.filter((record) => chosen.has(record));
}

function caseOf(text: string): P2pCase {
  const found = /^\d+$/.test(text)
    ? p2pCases[Number(text)]
    : p2pCases.find(({ name }) => name === text);
  if (found === undefined) {
    throw UsageError.of(
      '--testcase',
      `a case or its number below ${p2pCases.length}`,
      text,
      `See gradlink p2p --list.${didYouMean(
        text,
        p2pCases.map(({ name }) => name),
      )}`,
    );
  }
  return found;
}

function listLines(): string[] {
  return p2pCases.map(
    ({ name, what }, index) => `${String(index).padStart(2)} ${name}\n     ${what}`,
  );
}

async function measure(options: OwnOptions, argv: readonly string[], io: Io): Promise<number> {
  const cases = chooseCases(options).map(({ name }) => name);
  const output = new ReportOutput(options, io);
  const given = givenOf(p2pTable, options);
  if (given.gpus !== undefined) presentGpus(given.gpus);
  const quicker = options.quick === true ? undefined : '--quick';
  const asked = { commandLine: argv, options: flatOptions(typedOf(p2pTable, options)) };
  return measured({ tool: p2pTool, output, io, unit: 'figures', quicker }, (events) =>
    run({ ...given, cases, asked }, events),
  );
}

/** Sizes and counts of a first look; what was typed beside it stays. */
const quick = { bufferSize: 16 * mebibyte, samples: 1, loopCount: 4 } as const;

function quickly(options: OwnOptions, command: Command): OwnOptions {
  const typed = (name: string): boolean => command.getOptionValueSource(name) !== 'default';
  const few = Object.entries(quick).filter(([name]) => !typed(name));
  return { ...options, ...Object.fromEntries(few) };
}

export const registerP2p: Register = (program, io, done, argv) => {
  const command = program
    .command('p2p')
    .description('bandwidth and latency between host memory and GPUs, and which link is slow');
  addReportOptions(addTable(addTable(command, ownTable), p2pTable))
    .addHelpText('after', examples)
    .action(async (given: OwnOptions) => {
      const options = given.quick === true ? quickly(given, command) : given;
      if (options.list === true) {
        io.stdout.write(
          listLines()
            .map((line) => `${line}\n`)
            .join(''),
        );
        done(exitCodes.ok);
        return;
      }
      done(await measure(options, argv, io));
    });
};
