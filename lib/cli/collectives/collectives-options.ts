// Options of `gradlink collectives`, and the sweep that they ask for.
import { totalmem } from 'node:os';

import type { Command } from 'commander';

import { caseValuesAsked, ncclTestsTable } from './collectives-nccl-tests.js';
import { addTable, givenOf } from '../parse.js';
import type { ReportOptions } from '../reports/report-output.js';
import { UsageError } from '../usage-error.js';
import { collectivesTable } from '../../measure/collectives/collectives-options.js';
import { sweepSizes, type Sweep } from '../../measure/collectives/sweep.js';
import { graphRows } from '../../measure/neighbors/neighbors-options.js';
import {
  byteCount,
  flag,
  ordinals,
  sizeInBytes,
  text,
  whole,
  type Kind,
} from '../../options/kinds.js';
import {
  filled,
  optionTable,
  type Filled,
  type OptionsOf,
  type ReadOf,
} from '../../options/table.js';
import { collectives, traitsOf, type Collective } from '../../results/bandwidth.js';
import { sizeText } from '../../results/units.js';
import type { AnyDType } from '../../tensor/dtype.js';

const mostRanks = 1024;
const rankCount = whole({ min: 1, max: mostRanks });
const upTo = (max: number): Kind<number> => whole({ min: 0, max });

/** Which ranks and sizes. */
const rangeTable = optionTable({
  ranks: {
    flag: '--ranks <count>',
    help: "ranks of this process (default: 2, or the job's)",
    kind: rankCount,
  },
  /** See {@link withCounts}. */
  n: {
    flag: '-n <count>',
    help: 'as --ranks; beside -g, -t or --gpus as --iters, as in nccl-tests',
    kind: whole({ min: 1 }),
  },
  minbytes: {
    flag: '-b, --minbytes <size>',
    help: 'smallest size',
    kind: sizeInBytes,
    default: 32 * 2 ** 20,
  },
  maxbytes: {
    flag: '-e, --maxbytes <size>',
    help: 'largest size (default: 32M, or -b where that is larger)',
    kind: sizeInBytes,
  },
  stepbytes: {
    flag: '-i, --stepbytes <size>',
    help: 'step from size to size, while -f is 1',
    kind: byteCount,
    default: 2 ** 20,
  },
  stepfactor: {
    flag: '-f, --stepfactor <factor>',
    help: 'factor from size to size; 1: use -i',
    kind: whole({ min: 1, max: 1024 }),
    default: 1,
  },
  root: {
    flag: '-r, --root <rank>',
    help: 'root of broadcast, reduce, gather and scatter; -1: every rank in turn',
    kind: whole({ min: -1 }),
    default: 0,
  },
});

/** Where ranks are GPUs. */
const gpuTable = optionTable({
  output_file: {
    flag: '-J, --output_file <file>',
    help: 'as --output FILE --format json',
    kind: text(),
  },
  ngpus: {
    flag: '-g, --ngpus <count>',
    help: 'ranks are GPUs: this many per thread',
    kind: rankCount,
  },
  nthreads: {
    flag: '-t, --nthreads <count>',
    help: 'threads of this process, with -g GPUs each; every GPU then has its own',
    kind: rankCount,
  },
  gpus: {
    flag: '--gpus <list>',
    help: 'the GPUs to take, such as 0,2 (default: the first ones)',
    kind: ordinals,
  },
  cudagraph: {
    flag: '-G, --cudagraph <count>',
    help: 'capture the calls of a sample as a CUDA graph and launch it this many times; 0: no graph',
    kind: upTo(1e6),
    default: 0,
  },
  local_register: {
    flag: '-R, --local_register <0-2>',
    help: 'register memory with NCCL: 0 no, 1 each rank, 2 symmetric windows',
    kind: upTo(2),
    default: 0,
  },
  blocking: {
    flag: '-z, --blocking <0-3>',
    help: 'wait for each GPU call: 0 no, 1 for it and then for all ranks, 2 for it alone, 3 for it and then, untimed, for all ranks',
    kind: upTo(3),
    default: 0,
  },
  unalign: {
    flag: '-u, --unalign <index>',
    help: 'on GPUs: arrays begin at this element of their memory',
    kind: upTo(4096),
    default: 0,
  },
  algorithms: {
    flag: '--algorithms',
    help: 'say which algorithm and protocol NCCL chose; runs each size once more, in another process',
    kind: flag,
  },
});

/** What the command has besides. */
export type OwnOptions = ReadOf<typeof rangeTable> & ReadOf<typeof gpuTable> & ReportOptions;

type OfSweep = Omit<Filled<typeof collectivesTable>, 'ranks' | 'gpus' | 'collective'>;
type OfGraphs = OptionsOf<typeof graphRows>;

/** Those of the tables by the names of programs, and the command's own. */
export type CollectivesOptions = OwnOptions & OfGraphs & OfSweep;

/** As typed, with what -n stands for: with GPUs nccl-tests' number of iterations, else ranks. */
export function withCounts(
  typed: OwnOptions & { readonly iters?: number },
  itersGiven: boolean,
): OwnOptions {
  const { n, ...others } = typed;
  if (n === undefined) return typed;
  const onGpus = [typed.ngpus, typed.nthreads, typed.gpus].some((one) => one !== undefined);
  const [name, given] = onGpus ? ['--iters', itersGiven] : ['--ranks', typed.ranks !== undefined];
  if (given) throw new UsageError(`-n and ${name} cannot be combined: they are the same here.`);
  if (onGpus) return { ...others, iters: n } as OwnOptions;
  if (n > mostRanks) {
    throw UsageError.of(
      '-n',
      `at most ${String(mostRanks)} ranks`,
      String(n),
      `For iterations use --iters ${String(n)}.`,
    );
  }
  return { ...others, ranks: n };
}

/** @param typed as commander has them */
export function collectivesOptions(typed: OwnOptions): CollectivesOptions {
  const given: OfSweep = filled(collectivesTable, givenOf(collectivesTable, typed), 'collectives');
  return { ...given, ...givenOf(graphRows, typed), ...typed };
}

export const examples = `
Ranks are those of this process (-n, --ranks), each with its own arrays in one memory, or, under gradlink launch, mpirun
or srun, the processes of the job; then only rank 0 prints.

With -g, -t or --gpus ranks are GPUs, and NCCL moves their data: -t x -g of this process, or the one of each process
of a job. Times are then those of the devices' own clocks (-z: of the host's).

Differences from nccl-tests: without -g, -t or --gpus -n is the number of RANKS in host memory, and --iters that of
samples. With -t each GPU has a thread of its own. An unknown name is an error, not a default. On small sizes a sample times several calls together, unless
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
export const collectiveAliases: Readonly<Record<string, Collective>> =
  Object.fromEntries<Collective>([
    ...collectives.map((name) => [`${name}_perf`, name] as const),
    ['all_to_all', 'alltoall'],
    ['send_recv', 'sendrecv'],
    ['all_to_all_v', 'alltoallv'],
  ]);

export function addOptions(command: Command): Command {
  for (const table of [rangeTable, collectivesTable, gpuTable, graphRows, ncclTestsTable]) {
    addTable(command, table);
  }
  return command;
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
    '-o': list(options.ops),
    '-d': list(options.dtypes),
    '-r': options.root,
    '-T': options.timeoutMs / 1000,
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

/**
 * The sizes of a range whose arrays fit: a rank has an input and an output.
 *
 * @throws UsageError
 */
export function sizesIn(room: Room, range: Parameters<typeof sweepSizes>[0]): readonly number[] {
  const { minbytes, maxbytes } = range;
  if (maxbytes < minbytes) {
    throw UsageError.of('-e', `at least the ${String(minbytes)} bytes of -b`, String(maxbytes));
  }
  const sizes = sweepSizes(range);
  if (sizes === undefined) {
    throw UsageError.of(
      '-b, -e, -i and -f',
      'at most 4096 sizes',
      'more',
      'Raise -i, or use -f 2.',
    );
  }
  // Their share of the largest size where it is one of all ranks together.
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
  return sizes;
}

/** Everything that can be known to be wrong before a rank is opened. */
export function toSweep(
  collective: Collective,
  ranks: number,
  room: Room,
  options: CollectivesOptions,
  types: readonly AnyDType[],
): Sweep {
  const sizes = sizesIn(room, {
    ...options,
    maxbytes: options.maxbytes ?? Math.max(options.minbytes, 32 * 2 ** 20),
  });
  if (options.root >= ranks) {
    throw UsageError.of('-r', `a rank below ${String(ranks)}, or -1 for all`, String(options.root));
  }
  const { rooted } = traitsOf(collective);
  const everyRoot = Array.from({ length: ranks }, (_, rank) => rank);
  return {
    collective,
    sizes,
    dtypes: types,
    ops: options.ops,
    roots: rooted && options.root === -1 ? everyRoot : [Math.max(options.root, 0)],
    iterations: options.iterations,
    batch: options.batch,
    warmup: options.warmup,
    check: options.check,
    average: options.average,
    shared: options.shared,
    timeoutMs: options.timeoutMs,
    seed: options.seed,
    likeNcclTests: options.likeNcclTests,
    ...caseValuesAsked(options),
  };
}
