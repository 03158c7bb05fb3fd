// The options of messages between pairs of ranks, for `gradlink pairs` and its run.
import type { RunOptions } from '../common-run.js';
import { mostRounds } from '../hosts/rounds.js';
import { checkRows, rankRows } from '../collectives/collectives-options.js';
import { choice, flag, list, whole } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';

/** The kinds of measurement; message_rate is of all pairs between two halves at once. */
export const pairKinds = ['latency', 'bandwidth', 'bidirectional', 'message_rate'] as const;
/** One of {@link pairKinds}. */
export type PairKind = (typeof pairKinds)[number];

/** The backends of a job's ranks. */
const pairBackends = ['shm', 'mpi', 'tcp'] as const;

/** OSU's program names. */
const osuNames: Readonly<Record<string, PairKind>> = {
  osu_latency: 'latency',
  osu_multi_lat: 'latency',
  osu_bw: 'bandwidth',
  osu_bibw: 'bidirectional',
  osu_mbw_mr: 'message_rate',
};

export const pairKind = choice(pairKinds, osuNames);

const count = whole({ min: 1, max: 1e6 });

export const pairsTable = optionTable({
  /** Default all. */
  kinds: { kind: list(pairKind), default: [...pairKinds] },
  /** Ranks of this process; default 2. A job has its own number. */
  ranks: { kind: count },
  /** The job's backend; absent: as in `Communicator.world()`. */
  backend: {
    flag: '--backend <name>',
    help: 'what the ranks of a job go over: shm, mpi or tcp (default: as programs of the job have it)',
    kind: choice(pairBackends),
  },
  /** Bytes of a message, ascending; default 1 B to 4 MiB by doubling, and 8 B and 1 MiB for more than two ranks. */
  sizes: { kind: list(whole({ min: 1 })) },
  /** Timed samples; absent: 1000 for latency, 100 for others; above 8 KiB 100 and 20; fewer for slow messages. */
  iterations: {
    flag: '-i, --iters <count>',
    help: 'samples (default: 1000 messages there and back, 100 windows; above 8K 100 and 20)',
    kind: count,
  },
  /** Untimed samples; absent: a tenth of the samples. */
  warmup: {
    flag: '-w, --warmup_iters <count>',
    help: 'samples that are not timed (default: a tenth as many)',
    kind: whole({ min: 0, max: 1e6 }),
  },
  /** Messages in flight before an answer; default 64. */
  window: {
    flag: '-W, --window-size <count>',
    help: 'messages that are sent before an answer is waited for; not for latency',
    kind: count,
    default: 64,
  },
  /** Whether bandwidth is measured in each direction; default for more than two ranks. */
  eachWay: {
    flag: '--each-way',
    help: 'bandwidth from either rank of a pair to the other, one after the other (default: with more than two ranks)',
    kind: flag,
  },
  /** With many ranks: the maximum number of partners per rank; default 63. */
  rounds: {
    flag: '--rounds <count>',
    help: 'with many ranks: partners of each, spread over all (default: 63)',
    kind: whole({ min: 1, max: mostRounds }),
  },
  ...checkRows,
  timeoutMs: rankRows.timeoutMs,
});

/** The measurement and its ranks. In a job every process calls with the same options. */
export interface PairsOptions extends RunOptions, OptionsOf<typeof pairsTable> {}

/** As in OSU: larger messages get fewer repetitions. */
const mostSmall = 8192;

export function iterationsOf(
  kind: PairKind,
  bytes: number,
  given: Pick<PairsOptions, 'iterations' | 'warmup'>,
): { readonly samples: number; readonly warmup: number } {
  const [small, large] = kind === 'latency' ? [1000, 100] : [100, 20];
  const samples = given.iterations ?? (bytes <= mostSmall ? small : large);
  return { samples, warmup: given.warmup ?? Math.ceil(samples / 10) };
}
