// The options of a sweep: `gradlink collectives` and its run have them from here, and the sweep of neighbours its own part.
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

/** One name is typed, or `all` of them. */
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

/** How often: for each sweep, of neighbours too. */
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
  /** Calls that one sample times together; absent: by size, so that reading the clock does not count. */
  batch: {
    flag: '-m, --agg_iters <count>',
    help: 'calls that a sample times together, on GPUs in one NCCL group (default: 100, 10 or 1 by size, each by itself)',
    kind: count,
  },
});

/** Whether results are compared with what is expected. */
export const checkRows = optionTable({
  /** Every element is compared before the timing; default true. */
  check: {
    flag: '-c, --check <0|1>',
    help: 'check every element before the timing and of the last timed call',
    kind: zeroOrOne,
    default: true,
  },
});

export const rankRows = optionTable({
  /** Until all ranks have met, and of each call; default 30,000. */
  timeoutMs: {
    flag: '-T, --timeout <seconds>',
    help: 'a call, or joining the ranks, fails after this long',
    kind: inUnits(milliseconds, 1000, above(0)),
    default: defaultTimeoutMs,
  },
  /** How the times of a job's processes become one; default mean. */
  average: {
    flag: '-a, --average <0-3>',
    help: "times of a job's processes: 0 rank 0's, 1 mean, 2 min, 3 max",
    kind: numbered(averages),
    default: 'mean',
  },
  /** Arrays from allocShared. */
  shared: {
    flag: '--shared',
    help: 'arrays from allocShared: nothing is staged between processes',
    kind: flag,
    default: false,
  },
});

export const collectivesTable = optionTable({
  /** What is timed. */
  collective: { kind: choice(collectives) },
  /** Timed samples of each case; default 20. */
  iterations: {
    flag: '--iters <count>',
    help: 'timed samples of each size',
    kind: count,
    default: 20,
  },
  ...callRows,
  /** How often the whole sweep is made; default 1. */
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
  /** Of those that have one; default 0. */
  roots: { kind: list(whole({ min: 0 })), default: [0] },
  ...rankRows,
  /**
   * A communicator and a thread for each rank of this process, as worker threads have them. Default: one for all, where
   * the collective can.
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
  /** Ranks of this process in the memory of the host; default 2. A job has its own number. */
  ranks: { kind: count },
  /** Of a job: groups of ranks that each time the same at once, by their numbers; absent: all are one. */
  split: {
    flag: '--split <rule>',
    help: "groups of a job's ranks that run at once: AND, OR, MOD or DIV of a rank's number, such as MOD:8 for rails (default: NCCL_TESTS_SPLIT)",
    kind: splitRule,
  },
  /** Ranks are these GPUs, one each. In a job they are all its GPUs, dealt out to the ranks in turn. */
  gpus: { kind: ordinals },
  /** Where ranks are GPUs. */
  gpu: { kind: ofPrograms<NativeGpuTimingOptions>(anObject) },
  /**
   * Where ranks are GPUs: as nccl-tests times, so that its number is printed: `iterations` calls back to back by the host's
   * clock, their mean, and arrays that shift from call to call through memory of the largest size.
   */
  likeNcclTests: {
    flag: '--like-nccl-tests',
    help: "on GPUs: the number that nccl-tests prints: --iters calls back to back by the host's clock, their mean, arrays shifted through -e bytes",
    kind: flag,
    default: false,
  },
  /** What NCCL chose for each size, to be noted beside the cases. */
  choices: { kind: ofPrograms<NcclChoices>(anObject) },
  /** Least, most and 99th percentile of the samples, and how they vary. */
  perIteration: {
    flag: '-I, --per_iter_timing <0|1>',
    help: 'a line for each case: least, most and 99th percentile of its samples, and how they vary',
    kind: zeroOrOne,
    default: false,
  },
  /** Samples at the beginning that these leave out. */
  perIterationSkip: {
    flag: '-K, --per_iter_skip <count>',
    help: 'samples at the beginning that -I leaves out',
    kind: whole({ min: 0 }),
    default: 0,
  },
  /** Where ranks are GPUs: the host's time for queueing a call. */
  cpuTime: {
    flag: '-C, --report_cputime <0|1>',
    help: 'on GPUs: the time that queueing a call takes',
    kind: zeroOrOne,
    default: false,
  },
  /** When the case was measured, in seconds since 1970. */
  timestamps: {
    flag: '-S, --report_timestamps <0|1>',
    help: 'when each case was measured',
    kind: zeroOrOne,
    default: false,
  },
});

/** What to measure, and on which ranks. In a job every process calls with the same options. */
export interface CollectivesOptions
  extends RunOptions, Omit<OptionsOf<typeof collectivesTable>, 'collective'> {
  /** Which one is timed. */
  readonly collective: Collective;
}
