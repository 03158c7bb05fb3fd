// `gradlink collectives`: one collective over a range of sizes, with nccl-tests' flags and columns.
import { totalmem } from 'node:os';

import { InvalidArgumentError, Option, type Command } from 'commander';

import { exitCodes, type Io } from './io.js';
import { packageVersion } from './package-version.js';
import { byteCount, choice, decimal, integer } from './parse.js';
import type { Register } from './register.js';
import { addReportOptions, ReportOutput, type ReportOptions } from './report-output.js';
import { UsageError } from './usage-error.js';
import { reduceOps, type ReduceOp } from '../communicator/reduce-op.js';
import { collectives, type Collective } from '../measure/bandwidth.js';
import { describeEnvironment } from '../measure/environment.js';
import { measureMemoryLimit } from '../measure/memory-limit.js';
import {
  outcome,
  schemaVersion,
  type Report,
  type RunInfo,
  type Scalar,
} from '../measure/result.js';
import { jobSize, openWorld, type SweepWorld } from '../measure/sweep-world.js';
import { averages, collectiveTraits, runSweep, sweepSizes, type Sweep } from '../measure/sweep.js';
import { native } from '../native.js';
import { collectivesFooter, collectivesHeader, collectivesRow } from '../report/index.js';
import { dtypes, type DType } from '../tensor/dtype.js';

/** Of the header: what ran, and where. The columns' names follow. */
const titleLines = 2;

interface CollectivesOptions extends ReportOptions {
  readonly ranks?: number;
  readonly minbytes: number;
  readonly maxbytes?: number;
  readonly stepbytes: number;
  readonly stepfactor: number;
  readonly iters: number;
  readonly warmup_iters: number;
  readonly agg_iters?: number;
  readonly run_cycles: number;
  readonly check: number;
  readonly op: readonly ReduceOp[];
  readonly datatype: readonly DType[];
  readonly root: number;
  readonly timeout: number;
  readonly average: number;
  readonly shared?: true;
  readonly threads?: true;
  readonly seed: number;
  readonly output_file?: string;
}

const examples = `
Ranks are those of this process (-n), each with its own arrays in one memory, or, under gradlink launch, mpirun or
srun, the processes of the job; then only rank 0 prints.

Differences to nccl-tests: -n is the number of RANKS here and --iters that of iterations; a name that is not known is
an error instead of a default; a sample times several calls together on small sizes, unless -m says how many; the two
last columns are the share of the machine's own copy bandwidth that was reached, by the bytes that must be moved.
There is no GPU in this version: -g, -t and the flags of CUDA do not exist.

algbw = size / time. busbw = algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter, alltoall,
gather and scatter (whose size is that of all ranks' parts together), x 1 for the others. GB is 1e9 bytes; K, M and G
on the command line are 1024, 1024^2 and 1024^3. #wrong counts the elements that are not right to the bit.

Examples:
  $ gradlink collectives all_reduce -b 8 -e 128M -f 2 -n 4
  $ gradlink collectives reduce_scatter -n 2 -d all -o sum -b 1M -e 1M
  $ gradlink launch -n 2 gradlink collectives all_reduce -b 1M -e 64M -f 2 --shared
  $ gradlink collectives all_gather -n 4 --format json --output all_gather.json

Exit status: 0 all right, 1 wrong results or a failure, 2 wrong usage.`;

// nccl-tests' names, and ours.
const typeAliases: Readonly<Record<string, DType>> = {
  half: 'float16',
  float: 'float32',
  double: 'float64',
};
const collectiveAliases: Readonly<Record<string, Collective>> = Object.fromEntries<Collective>([
  ...collectives.map((name) => [`${name}_perf`, name] as const),
  ['all_to_all', 'alltoall'],
  ['send_recv', 'sendrecv'],
]);

/** One name, or `all` of them. */
function oneOrAll<T extends string>(
  names: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): (text: string) => readonly T[] {
  const one = choice(names, aliases);
  return (text) => {
    if (text === 'all') return names;
    try {
      return [one(text)];
    } catch {
      const all = [...names, ...Object.keys(aliases), 'all'];
      throw new InvalidArgumentError(`Expected one of: ${all.join(', ')}.`);
    }
  };
}

function addOptions(command: Command): Command {
  const count = integer({ min: 1 });
  const upTo = (max: number): ((text: string) => number) => integer({ min: 0, max });
  return command
    .option(
      '-n, --ranks <count>',
      'ranks of this process (default: 2; a job has its own)',
      integer({ min: 1, max: 1024 }),
    )
    .option('-b, --minbytes <size>', 'smallest size', byteCount, 32 * 2 ** 20)
    .option(
      '-e, --maxbytes <size>',
      'largest size (default: 32M, or -b where that is larger)',
      byteCount,
    )
    .option('-i, --stepbytes <size>', 'step from size to size, while -f is 1', byteCount, 2 ** 20)
    .option(
      '-f, --stepfactor <factor>',
      'factor from size to size; 1: -i counts',
      integer({ min: 1, max: 1024 }),
      1,
    )
    .option('--iters <count>', 'timed samples of each size', count, 20)
    .option('-w, --warmup_iters <count>', 'calls before the first sample', upTo(1e6), 5)
    .option(
      '-m, --agg_iters <count>',
      'calls that a sample times together (default: 100, 10 or 1 by size)',
      count,
    )
    .option('-N, --run_cycles <count>', 'repeat the whole table', count, 1)
    .option(
      '-c, --check <0|1>',
      'check every element before the timing and of the last timed call',
      upTo(1),
      1,
    )
    .option('-o, --op <name>', 'sum, prod, min, max, avg or all', oneOrAll(reduceOps), ['sum'])
    .option(
      '-d, --datatype <type>',
      "element type, nccl-tests' names too, or all",
      oneOrAll(dtypes, typeAliases),
      ['float32'],
    )
    .option(
      '-r, --root <rank>',
      'root of broadcast, reduce, gather and scatter; -1: every rank in turn',
      integer({ min: -1 }),
      0,
    )
    .option('-T, --timeout <seconds>', 'a call that takes longer fails', decimal(0), 30)
    .option(
      '-a, --average <0-3>',
      "times of a job's processes: 0 rank 0's, 1 mean, 2 min, 3 max",
      upTo(3),
      1,
    )
    .option('--shared', 'arrays from allocShared: nothing is staged between processes')
    .option(
      '--threads',
      'each rank has a communicator and thread of its own, as worker threads have',
    )
    .option('--seed <number>', 'of the data', upTo(2 ** 31), 0)
    .addOption(new Option('-J, --output_file <file>', 'as --output FILE --format json'))
    .addOption(new Option('-g, --ngpus <count>').hideHelp())
    .addOption(new Option('-t, --nthreads <count>').hideHelp());
}

/** Everything that can be known to be wrong before a rank is opened. */
function toSweep(collective: Collective, ranks: number, options: CollectivesOptions): Sweep {
  const maxbytes = options.maxbytes ?? Math.max(options.minbytes, 32 * 2 ** 20);
  if (maxbytes < options.minbytes) {
    throw UsageError.of(
      '-e',
      `at least the ${String(options.minbytes)} bytes of -b`,
      String(maxbytes),
    );
  }
  const sizes = sweepSizes({ ...options, maxbytes });
  if (sizes === undefined) {
    throw UsageError.of(
      '-b, -e, -i and -f',
      'at most 4096 sizes',
      'more',
      'Raise -i, or use -f 2.',
    );
  }
  if (options.root >= ranks) {
    throw UsageError.of('-r', `a rank below ${String(ranks)}, or -1 for all`, String(options.root));
  }
  // Every rank's input and output; their share of the largest size where it is one of all ranks together.
  const perRank = 2 * maxbytes;
  if (perRank * ranks > totalmem()) {
    const needed = ((perRank * ranks) / 1e9).toFixed(1);
    throw UsageError.of(
      '-e',
      `sizes whose arrays fit into the ${(totalmem() / 1e9).toFixed(1)} GB of memory`,
      `${String(maxbytes)} bytes, which takes ${needed} GB for ${String(ranks)} ranks`,
      'Use a smaller -e or fewer ranks.',
    );
  }
  const { rooted } = collectiveTraits[collective];
  const everyRoot = Array.from({ length: ranks }, (_, rank) => rank);
  return {
    collective,
    sizes,
    dtypes: options.datatype,
    ops: options.op,
    roots: rooted && options.root === -1 ? everyRoot : [Math.max(options.root, 0)],
    iterations: options.iters,
    ...(options.agg_iters === undefined ? {} : { batch: options.agg_iters }),
    warmup: options.warmup_iters,
    check: options.check !== 0,
    average: averages[options.average] ?? 'mean',
    shared: options.shared === true,
    timeoutMs: options.timeout * 1000,
    seed: options.seed,
  };
}

function rankCount(options: CollectivesOptions): number {
  const size = jobSize();
  if (size !== undefined && options.ranks !== undefined && options.ranks !== size) {
    throw UsageError.of(
      '-n',
      `the ${String(size)} ranks of the job that this process belongs to`,
      String(options.ranks),
      'Leave -n away under a launcher.',
    );
  }
  return size ?? options.ranks ?? 2;
}

function runInfo(
  command: Command,
  collective: Collective,
  argv: readonly string[],
  world: SweepWorld,
): RunInfo {
  const options: Record<string, Scalar> = { collective, ranks: world.size };
  for (const [name, value] of Object.entries(command.opts<Record<string, unknown>>())) {
    if (name !== 'ranks')
      options[name] = Array.isArray(value) ? value.join(',') : (value as Scalar);
  }
  return {
    tool: 'collectives',
    packageVersion: packageVersion(),
    commandLine: argv,
    options,
    startedAt: new Date().toISOString(),
  };
}

async function run(
  world: SweepWorld,
  sweep: Sweep,
  cycles: number,
  head: RunInfo,
  output: ReportOutput,
  io: Io,
): Promise<number> {
  const printing = world.rank === 0;
  const print = (lines: readonly string[]): void => {
    if (printing && output.showsText) io.stdout.write(lines.map((line) => `${line}\n`).join(''));
  };
  const addon = native();
  const environment = describeEnvironment({
    simdLevel: addon.simdLevel(),
    threads: addon.numThreads(),
  });
  // One process measures the memory, while the others wait: together they would share it.
  const limit = printing
    ? await measureMemoryLimit(environment.lastLevelCacheBytes)
    : { copyBytesPerSecond: 0, threads: addon.numThreads() };
  await world.barrier();
  const header = collectivesHeader({ run: head, environment });
  print([
    ...header.slice(0, titleLines),
    '# Using ranks',
    ...world.ranks.map(
      ({ rank, pid, host }) =>
        `#  Rank ${String(rank).padStart(2)} Group  0 Pid ${String(pid).padStart(6)} on ${host} device cpu`,
    ),
    ...header.slice(titleLines),
  ]);
  const cases = [];
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    const results = await runSweep(sweep, { world, limit, environment }, (row) => {
      print(collectivesRow([row.outOfPlace, row.inPlace]));
    });
    cases.push(...results);
  }
  const report: Report = { schemaVersion, run: head, environment, cases };
  print(collectivesFooter(report));
  if (printing) output.write(report);
  const { ok, error } = outcome(report);
  return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
}

export const registerCollectives: Register = (program, io, done, argv) => {
  const command = program
    .command('collectives')
    .description('time a collective over a range of sizes, with the columns of nccl-tests')
    .argument('<collective>', collectives.join(', '), choice(collectives, collectiveAliases));
  addReportOptions(addOptions(command))
    .addHelpText('after', examples)
    .action(
      async (
        collective: Collective,
        options: CollectivesOptions & { ngpus?: string; nthreads?: string },
      ) => {
        const gpuFlag = options.ngpus === undefined ? '-t' : '-g';
        if (options.ngpus !== undefined || options.nthreads !== undefined) {
          const advice = 'Use -n RANKS, or gradlink launch.';
          throw UsageError.of(
            gpuFlag,
            'no flag of GPUs: this version has no GPU backend',
            gpuFlag,
            advice,
          );
        }
        const ranks = rankCount(options);
        const sweep = toSweep(collective, ranks, options);
        const destination = options.output ?? options.output_file;
        const format = options.format ?? (options.output_file === undefined ? undefined : 'json');
        const output = new ReportOutput(
          {
            ...(destination === undefined ? {} : { output: destination }),
            ...(format === undefined ? {} : { format }),
          },
          io,
        );
        const engine = options.threads || collective === 'sendrecv' ? 'threads' : 'local';
        const world = await openWorld(ranks, engine, sweep.timeoutMs);
        try {
          const head = runInfo(command, collective, argv, world);
          done(await run(world, sweep, options.run_cycles, head, output, io));
        } finally {
          await world.close();
        }
      },
    );
};
