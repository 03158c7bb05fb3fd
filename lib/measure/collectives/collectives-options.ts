// The options of a sweep, for `gradlink collectives` and its run; a neighbour sweep shares some.
import type { RunOptions } from '../common-run.js';
import { anObject } from '../../checks.js';
import { reduceOps } from '../../communicator/calls/reduce-op.js';
import type { NativeGpuTimingOptions } from '../../native/measure.js';
import { didYouMean } from '../../nearest.js';
import {
  above,
  choice,
  flag,
  inUnits,
  list,
  milliseconds,
  numbered,
  ofPrograms,
  ordinals,
  whole,
  WrongValue,
  zeroOrOne,
  type Kind,
} from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { collectives, type Collective } from '../../results/bandwidth.js';
import { mebibyte } from '../../results/units.js';
import { dtypeNames, type AnyDType } from '../../tensor/dtype.js';
import { defaultTimeoutMs } from '../../time.js';
import type { NcclChoices } from './nccl-choices.js';
import { splitRule } from './split.js';
import { averages } from './sweep.js';

const count = whole({ min: 1 });

const typeAliases: Readonly<Record<string, AnyDType>> = {
  half: 'float16',
  float: 'float32',
  double: 'float64',
  f8e4m3: 'float8e4m3',
  f8e5m2: 'float8e5m2',
  fp8_e4m3: 'float8e4m3',
  fp8_e5m2: 'float8e5m2',
};

/** Accepts one name, or `all`. */
function oneOrAll<T extends string>(
  names: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): Kind<readonly T[]> {
  const one = choice(names, aliases);
  return {
    ...list(one),
    parse(text) {
      if (text === 'all') return names;
      try {
        return [one.parse(text)];
      } catch {
        const all = [...names, ...Object.keys(aliases), 'all'];
        throw new WrongValue(`Expected one of: ${all.join(', ')}.${didYouMean(text, all)}`);
      }
    },
    choices: [...names, 'all'],
  };
}

/** Sizes and repetitions, also of neighbour sweeps. */
export const callRows = optionTable({
  /** Bytes of a rank's array, ascending; default 32 MiB. */
  sizes: { kind: list(whole({ min: 1 })), default: [32 * mebibyte] },
  /** Calls before the first sample; default 5. */
  warmup: {
    flag: '-w, --warmup_iters <count>',
    help: 'calls before the first sample',
    kind: whole({ min: 0, max: 1e6 }),
    default: 5,
  },
  /** Calls per sample; absent: by size, so that reading the clock does not count. */
  batch: {
    flag: '-m, --agg_iters <count>',
    help: 'calls that a sample times together, on GPUs in one NCCL group (default: 100, 10 or 1 by size, each by itself)',
    kind: count,
  },
});

/** The comparison of results. */
export const checkRows = optionTable({
  /** Whether every element is compared before the timing; default true. */
  check: {
    flag: '-c, --check <0|1>',
    help: 'check every element before the timing and of the last timed call',
    kind: zeroOrOne,
    default: true,
  },
});

export const rankRows = optionTable({
  /** Until all ranks have joined, and of each call; default 30,000. */
  timeoutMs: {
    flag: '-T, --timeout <seconds>',
    help: 'a call, or joining the ranks, fails after this long',
    kind: inUnits(milliseconds, 1000, above(0)),
    default: defaultTimeoutMs,
  },
  /** How the times of a job's processes are combined; default mean. */
  average: {
    flag: '-a, --average <0-3>',
    help: "times of a job's processes: 0 rank 0's, 1 mean, 2 min, 3 max",
    kind: numbered(averages),
    default: 'mean',
  },
  /** Whether arrays are from allocShared. */
  shared: {
    flag: '--shared',
    help: 'arrays from allocShared: nothing is staged between processes',
    kind: flag,
    default: false,
  },
});

export const collectivesTable = optionTable({
  /** The collective to time. */
  collective: { kind: choice(collectives) },
  /** Timed samples of each case; default 20. */
  iterations: {
    flag: '--iters <count>',
    help: 'timed samples of each size',
    kind: count,
    default: 20,
  },
  ...callRows,
  /** Repetitions of the whole sweep; default 1. */
  cycles: {
    flag: '-N, --run_cycles <count>',
    help: 'repeat the whole table',
    kind: count,
    default: 1,
  },
  ...checkRows,
  /** Default sum. */
  ops: {
    flag: '-o, --op <name>',
    help: 'sum, prod, min, max, avg or all',
    kind: oneOrAll(reduceOps),
    default: ['sum'],
  },
  /** Default float32. */
  dtypes: {
    flag: '-d, --datatype <type>',
    help: "element type, or all; nccl-tests' names too (float8 on GPUs only)",
    kind: oneOrAll(dtypeNames, typeAliases),
    default: ['float32'],
  },
  /** For collectives with a root; default 0. */
  roots: { kind: list(whole({ min: 0 })), default: [0] },
  ...rankRows,
  /**
   * Whether each rank of this process has its own communicator and thread, as worker threads do. Default: one for all,
   * if the collective allows it.
   */
  threads: {
    flag: '--threads',
    help: 'each rank has its own communicator and thread, as worker threads do',
    kind: flag,
    default: false,
  },
  /** Of the data; default 0. */
  seed: {
    flag: '--seed <number>',
    help: 'of the data',
    kind: whole({ min: 0, max: 2 ** 31 }),
    default: 0,
  },
  /** Ranks of this process in host memory; default 2. A job has its own number. */
  ranks: { kind: count },
  /** In a job, groups of ranks by number that each time the same collective in parallel; absent: a single group. */
  split: {
    flag: '--split <rule>',
    help: "groups of a job's ranks that run at once: AND, OR, MOD or DIV of a rank's number, such as MOD:8 for rails (default: NCCL_TESTS_SPLIT)",
    kind: splitRule,
  },
  /** One GPU per rank. In a job all its GPUs, assigned to the ranks in turn. */
  gpus: { kind: ordinals },
  /** Options for GPU ranks. */
  gpu: { kind: ofPrograms<NativeGpuTimingOptions>(anObject) },
  /**
   * For GPU ranks: times like nccl-tests, to print its number. `iterations` calls back to back by the host's clock,
   * their mean, and arrays that shift from call to call through memory of the largest size.
   */
  likeNcclTests: {
    flag: '--like-nccl-tests',
    help: "on GPUs: the number that nccl-tests prints: --iters calls back to back by the host's clock, their mean, arrays shifted through -e bytes",
    kind: flag,
    default: false,
  },
  /** NCCL's choices by size, added to the cases. */
  choices: { kind: ofPrograms<NcclChoices>(anObject) },
  /** Whether to report minimum, maximum, 99th percentile and deviation of the samples. */
  perIteration: {
    flag: '-I, --per_iter_timing <0|1>',
    help: 'a line for each case: least, most and 99th percentile of its samples, and how they vary',
    kind: zeroOrOne,
    default: false,
  },
  /** Initial samples that these leave out. */
  perIterationSkip: {
    flag: '-K, --per_iter_skip <count>',
    help: 'samples at the beginning that -I leaves out',
    kind: whole({ min: 0 }),
    default: 0,
  },
  /** For GPU ranks: whether to report the host's time for queueing a call. */
  cpuTime: {
    flag: '-C, --report_cputime <0|1>',
    help: 'on GPUs: the time that queueing a call takes',
    kind: zeroOrOne,
    default: false,
  },
  /** Whether to report when the case was measured, in seconds since 1970. */
  timestamps: {
    flag: '-S, --report_timestamps <0|1>',
    help: 'when each case was measured',
    kind: zeroOrOne,
    default: false,
  },
});

/** The measurement and its ranks. In a job every process calls with the same options. */
export interface CollectivesOptions
  extends RunOptions, Omit<OptionsOf<typeof collectivesTable>, 'collective'> {
  /** The collective to time. */
  readonly collective: Collective;
}
