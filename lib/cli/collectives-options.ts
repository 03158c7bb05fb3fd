// Options of `gradlink collectives`, and the sweep that they ask for.
import { totalmem } from 'node:os';

import { InvalidArgumentError, Option, type Command } from 'commander';

import { didYouMean } from '../nearest.js';
import {
  addNcclTestsOptions,
  ncclTestsSweep,
  type NcclTestsOptions,
} from './collectives-nccl-tests.js';
import { offering, read } from './parse.js';
import { above, byteCount, choice, ordinals, whole } from '../options/kinds.js';
import type { ReportOptions } from './report-output.js';
import { UsageError } from './usage-error.js';
import { reduceOps, type ReduceOp } from '../communicator/reduce-op.js';
import { collectives, traitsOf, type Collective } from '../results/bandwidth.js';
import { sizeText } from '../results/units.js';
import { graphNames, type GraphName } from '../measure/neighbors/plan.js';
import { averages, sweepSizes, type Sweep } from '../measure/collectives/sweep.js';
import { dtypeNames, type AnyDType } from '../tensor/dtype.js';

export interface CollectivesOptions extends ReportOptions, NcclTestsOptions {
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
  /** All of them where `all` was asked for, those that only GPUs have too. */
  readonly datatype: readonly AnyDType[];
  readonly root: number;
  readonly timeout: number;
  readonly average: number;
  readonly shared?: true;
  readonly threads?: true;
  readonly seed: number;
  readonly output_file?: string;
  // Where ranks are GPUs.
  readonly ngpus?: number;
  readonly nthreads?: number;
  readonly gpus?: readonly number[];
  readonly cudagraph: number;
  readonly local_register: number;
  readonly blocking: number;
  readonly algorithms?: true;
  // Where ranks average with neighbours.
  readonly topology?: GraphName;
  readonly dynamic?: true;
  readonly ranksPerNode?: number;
}

export const examples = `
Ranks are those of this process (-n), each with its own arrays in one memory, or, under gradlink launch, mpirun or
srun, the processes of the job; then only rank 0 prints.

With -g, -t or --gpus ranks are GPUs, and NCCL moves their data: -t x -g of this process, or the one of each process
of a job. Times are then those of the devices' own clocks (-z: of the host's).

Differences to nccl-tests: -n is the number of RANKS in host memory, and --iters that of iterations. With -t each GPU has a
thread of its own. An unknown name is an error, not a default. On small sizes a sample times several calls together, unless
-m gives their number; on GPUs they are one group of NCCL. -T covers initialisation too. The two last columns are the share of
the limit. In host memory the limit is the machine's own copy bandwidth for the bytes that must be moved. Between GPUs it is
NCCL's own estimate where it has one, else the links of a GPU for the bytes of busbw.

algbw = size / time. busbw = algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter, alltoall,
gather and scatter (whose size is that of all ranks' parts together), x 1 for the others. GB/s is 1e9 bytes a second; K, M and G
on the command line are 1024, 1024^2 and 1024^3. #wrong counts the elements that are not right to the bit.

Examples:
  $ gradlink collectives all_reduce -b 8 -e 128M -f 2 -n 4
  $ gradlink collectives reduce_scatter -n 2 -d all -o sum -b 1M -e 1M
  $ gradlink launch -n 2 gradlink collectives all_reduce -b 1M -e 64M -f 2 --shared
  $ gradlink collectives all_reduce -b 8 -e 128M -f 2 -g 4
  $ gradlink launch -n 4 gradlink collectives all_reduce -b 1M -e 1G -f 2 -g 1
  $ gradlink launch -n 4 gradlink collectives neighbor_all_reduce -b 1M -e 64M -f 4 --topology exp2 --dynamic
  $ gradlink collectives all_gather -n 4 --format json --output all_gather.json

Exit status: 0 all right, 1 wrong results or a failure, 2 wrong usage.`;

// nccl-tests' names, and ours.
const typeAliases: Readonly<Record<string, AnyDType>> = {
  half: 'float16',
  float: 'float32',
  double: 'float64',
  f8e4m3: 'float8e4m3',
  f8e5m2: 'float8e5m2',
  fp8_e4m3: 'float8e4m3',
  fp8_e5m2: 'float8e5m2',
};
export const collectiveAliases: Readonly<Record<string, Collective>> =
  Object.fromEntries<Collective>([
    ...collectives.map((name) => [`${name}_perf`, name] as const),
    ['all_to_all', 'alltoall'],
    ['send_recv', 'sendrecv'],
    ['all_to_all_v', 'alltoallv'],
  ]);

/** One name, or `all` of them. */
function oneOrAll<T extends string>(
  names: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): (text: string) => readonly T[] {
  const one = choice(names, aliases);
  return offering([...names, 'all'], (text) => {
    if (text === 'all') return names;
    try {
      return [one.parse(text)];
    } catch {
      const all = [...names, ...Object.keys(aliases), 'all'];
      throw new InvalidArgumentError(`Expected one of: ${all.join(', ')}.${didYouMean(text, all)}`);
    }
  });
}

export function addOptions(command: Command): Command {
  const count = read(whole({ min: 1 }));
  const upTo = (max: number): ((text: string) => number) => read(whole({ min: 0, max }));
  command
    .option(
      '-n, --ranks <count>',
      'ranks of this process (default: 2; a job has its own)',
      read(whole({ min: 1, max: 1024 })),
    )
    .option('-b, --minbytes <size>', 'smallest size', read(byteCount), 32 * 2 ** 20)
    .option(
      '-e, --maxbytes <size>',
      'largest size (default: 32M, or -b where that is larger)',
      read(byteCount),
    )
    .option(
      '-i, --stepbytes <size>',
      'step from size to size, while -f is 1',
      read(byteCount),
      2 ** 20,
    )
    .option(
      '-f, --stepfactor <factor>',
      'factor from size to size; 1: -i counts',
      read(whole({ min: 1, max: 1024 })),
      1,
    )
    .option('--iters <count>', 'timed samples of each size', count, 20)
    .option('-w, --warmup_iters <count>', 'calls before the first sample', upTo(1e6), 5)
    .option(
      '-m, --agg_iters <count>',
      'calls that a sample times together, on GPUs in one NCCL group (default: 100, 10 or 1 by size, each for itself)',
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
      "element type, nccl-tests' names too (float8 on GPUs alone), or all that there are",
      oneOrAll(dtypeNames, typeAliases),
      ['float32'],
    )
    .option(
      '-r, --root <rank>',
      'root of broadcast, reduce, gather and scatter; -1: every rank in turn',
      read(whole({ min: -1 })),
      0,
    )
    .option(
      '-T, --timeout <seconds>',
      'a call, or the meeting of the ranks, that takes longer fails',
      read(above(0)),
      30,
    )
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
    .option(
      '-g, --ngpus <count>',
      'ranks are GPUs: this many a thread',
      read(whole({ min: 1, max: 1024 })),
    )
    .option(
      '-t, --nthreads <count>',
      'threads of this process, with -g GPUs each; every GPU then has its own',
      read(whole({ min: 1, max: 1024 })),
    )
    .option(
      '--gpus <list>',
      'the GPUs to take, such as 0,2 (default: the first ones)',
      read(ordinals),
    )
    .option(
      '-G, --cudagraph <count>',
      'capture the calls of a sample as a CUDA graph and launch it this many times; 0: no graph',
      upTo(1e6),
      0,
    )
    .option(
      '-R, --local_register <0-2>',
      'register memory with NCCL: 0 no, 1 each rank, 2 symmetric windows',
      upTo(2),
      0,
    )
    .option(
      '-z, --blocking <0-3>',
      'wait for each GPU call: 0 no, 1 and for all ranks, 2 alone, 3 and for all ranks, untimed',
      upTo(3),
      0,
    )
    .option(
      '--topology <graph>',
      `of neighbor_all_reduce: ${graphNames.join(', ')} (default: exp2)`,
      read(choice(graphNames)),
    )
    .option('--dynamic', 'of neighbor_all_reduce: one neighbour a step, each step another')
    .option(
      '--ranks-per-node <count>',
      'of neighbor_all_reduce: ranks that count as one host (default: GRADLINK_RANKS_PER_NODE, or all)',
      count,
    )
    .option(
      '--algorithms',
      'say which algorithm and protocol NCCL chose; runs each size once more, in another process',
    );
  return addNcclTestsOptions(command);
}

/** Arguments that run every size of a sweep on GPUs once, for what NCCL logs. */
export function onceEach(collective: Collective, options: CollectivesOptions): string[] {
  const list = (given: readonly string[]): string =>
    given.length > 1 ? 'all' : (given[0] ?? 'all');
  const values: Readonly<Record<string, string | number | undefined>> = {
    '-b': options.minbytes,
    '-e': options.maxbytes,
    '-i': options.stepbytes,
    '-f': options.stepfactor,
    '-o': list(options.op),
    '-d': list(options.datatype),
    '-r': options.root,
    '-T': options.timeout,
    '-g': options.ngpus,
    '-t': options.nthreads,
    '--gpus': options.gpus?.join(','),
    '-R': options.local_register,
    '--iters': 1,
    '-w': 0,
    '-m': 1,
    '-u': options.unalign,
    '-c': 0,
  };
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return ['collectives', collective, ...given.flat().map(String)];
}

/** Where the arrays of all ranks must fit. */
export interface Room {
  readonly bytes: number;
  /** `15.63 GiB of memory`. */
  readonly words: string;
  /** Ranks that share it. */
  readonly ranks: number;
}

export function hostRoom(ranks: number): Room {
  const bytes = totalmem();
  return { bytes, words: `${sizeText(bytes)} of memory`, ranks };
}

/** Everything that can be known to be wrong before a rank is opened. */
export function toSweep(
  collective: Collective,
  ranks: number,
  room: Room,
  options: CollectivesOptions,
  types: readonly AnyDType[],
): Sweep {
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
  if (perRank * room.ranks > room.bytes) {
    const needed = sizeText(perRank * room.ranks);
    throw UsageError.of(
      '-e',
      `sizes whose arrays fit into the ${room.words}`,
      `${String(maxbytes)} bytes, which takes ${needed} for ${String(room.ranks)} ranks`,
      'Use a smaller -e or fewer ranks.',
    );
  }
  const { rooted } = traitsOf(collective);
  const everyRoot = Array.from({ length: ranks }, (_, rank) => rank);
  return {
    collective,
    sizes,
    dtypes: types,
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
    ...ncclTestsSweep(options),
  };
}
