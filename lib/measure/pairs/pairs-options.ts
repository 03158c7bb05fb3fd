// The options of messages between pairs of ranks: `gradlink pairs` and its run have them from here.
import type { RunOptions } from '../common-run.js';
import { mostRounds } from '../hosts/rounds.js';
import { checkRows, rankRows } from '../collectives/collectives-options.js';
import { choice, flag, list, whole } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';

/** What is measured of a pair; message_rate of all pairs of two halves at once. */
export const pairKinds = ['latency', 'bandwidth', 'bidirectional', 'message_rate'] as const;
/** One of {@link pairKinds}. */
export type PairKind = (typeof pairKinds)[number];

/** What ranks of a job may go over. */
const pairBackends = ['shm', 'mpi', 'tcp'] as const;

/** The names of OSU's programs. */
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
  /** What the ranks of a job go over; absent: as `Communicator.world()` has it. */
  backend: {
    flag: '--backend <name>',
    help: 'what the ranks of a job go over: shm, mpi or tcp (default: as programs of the job have it)',
    kind: choice(pairBackends),
  },
  /** Bytes of a message, ascending; default 1 B to 4 MiB by doubling, of more than two ranks 8 B and 1 MiB. */
  sizes: { kind: list(whole({ min: 1 })) },
  /** Timed samples; absent: 1000 of latency, 100 of others; of more than 8 KiB 100 and 20; fewer of slow messages. */
  iterations: {
    flag: '-i, --iters <count>',
    help: 'samples (default: 1000 messages there and back, 100 windows; above 8K 100 and 20)',
    kind: count,
  },
  /** Samples that are not timed; absent: a tenth as many. */
  warmup: {
    flag: '-w, --warmup_iters <count>',
    help: 'samples that are not timed (default: a tenth as many)',
    kind: whole({ min: 0, max: 1e6 }),
  },
  /** Messages on their way before an answer; default 64. */
  window: {
    flag: '-W, --window-size <count>',
    help: 'messages that are sent before an answer is waited for; not for latency',
    kind: count,
    default: 64,
  },
  /** Whether bandwidth is measured from either rank of a pair to the other; default of more than two ranks. */
  eachWay: {
    flag: '--each-way',
    help: 'bandwidth from either rank of a pair to the other, one after the other (default: with more than two ranks)',
    kind: flag,
  },
  /** Of many ranks: so many other ranks each has for a partner at most; default 63. */
  rounds: {
    flag: '--rounds <count>',
    help: 'with many ranks: partners of each, spread over all (default: 63)',
    kind: whole({ min: 1, max: mostRounds }),
  },
  ...checkRows,
  timeoutMs: rankRows.timeoutMs,
});

/** What to measure, and between which ranks. In a job every process calls with the same options. */
export interface PairsOptions extends RunOptions, OptionsOf<typeof pairsTable> {}

/** OSU's: larger messages are sent less often. */
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
