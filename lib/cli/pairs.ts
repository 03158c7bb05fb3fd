// `gradlink pairs`: messages between pairs of ranks in the memory of hosts, as OSU's point-to-point programs time them.
import { hostRoom, sizesIn } from './collectives/collectives-options.js';
import type { Io } from './io.js';
import { measured, ranksOf } from './measured-command.js';
import { addTable, givenOf, read, typedOf } from './parse.js';
import type { Register } from './register.js';
import { addReportOptions, ReportOutput, type ReportOptions } from './reports/report-output.js';
import { UsageError } from './usage-error.js';
import { flatOptions } from '../measure/common-run.js';
import { jobSize } from '../measure/job.js';
import { pairKind, pairKinds, pairsTable, type PairKind } from '../measure/pairs/pairs-options.js';
import { run } from '../measure/pairs/pairs-run.js';
import { sizeInBytes, whole } from '../options/kinds.js';
import { optionTable, type ReadOf } from '../options/table.js';
import { pairsTool } from '../report/index.js';

/** What the command has besides. */
const ownTable = optionTable({
  ranks: {
    flag: '-n, --ranks <count>',
    help: "ranks of this process (default: 2, or the job's)",
    kind: whole({ min: 2, max: 1024 }),
  },
  minbytes: {
    flag: '-b, --minbytes <size>',
    help: 'smallest size (default: 1; see -f)',
    kind: sizeInBytes,
  },
  maxbytes: {
    flag: '-e, --maxbytes <size>',
    help: 'largest size (default: 4M; see -f)',
    kind: sizeInBytes,
  },
  stepfactor: {
    flag: '-f, --stepfactor <factor>',
    help: 'factor from size to size; with more than two ranks the sizes are 8 and 1M where neither -b nor -e is given',
    kind: whole({ min: 2, max: 1024 }),
    default: 2,
  },
});

type OwnOptions = ReadOf<typeof ownTable> & ReportOptions;

const defaultRanks = 2;
/** OSU's. */
const defaultSizes = { minbytes: 1, maxbytes: 4 * 2 ** 20 };

const examples = `
Ranks are threads of this process (-n), or, under gradlink launch, mpirun, srun or torchrun, the processes of the job;
then only rank 0 prints. Messages are those of send and receive of a communicator, in the memory of the hosts.

  latency         half of the time of a message there and back
  bandwidth       -W messages one way, then an answer of 4 bytes
  bidirectional   the same both ways at once, each way on a thread of its own; the sum
  message_rate    the first half of the ranks sends to the second, all pairs at once; the sum

Of more than two ranks every pair is measured, in rounds that pair each rank with one other, all pairs of a round at
once; bandwidth each way, one after the other. A pair or a way is slow where it takes 1.5 times as long as the median of
the others, in the median and in the fastest; pairs within a host and between hosts are compared apart. Between hosts
with a rank each, TCP segments that were lost and sent again are told, from 0.1 % of them on.

OSU's names are known: osu_latency, osu_bw, osu_bibw, osu_mbw_mr. -m 1:4096 there is -b 1 -e 4096 here, -x is -w.
Bandwidths are GB/s of 1e9 bytes. K, M and G on the command line are 1024, 1024^2 and 1024^3.

Examples:
  $ gradlink launch -n 2 gradlink pairs                           latency, bandwidth, both ways, messages a second
  $ gradlink launch -n 2 gradlink pairs osu_latency -e 8K
  $ mpirun -n 2 gradlink pairs bandwidth --backend mpi            over MPI, on one host too
  $ gradlink launch -n 16 -H hosts --launcher ssh gradlink pairs  every pair, and which is slow
  $ gradlink pairs latency -n 4 --format json --output pairs.json

Exit status: 0 all right, 1 wrong bytes or a failure, 2 wrong usage.`;

/** Undefined leaves them to the run. */
function sizesOf(options: OwnOptions, ranks: number): readonly number[] | undefined {
  const { minbytes, maxbytes, stepfactor } = options;
  if (minbytes === undefined && maxbytes === undefined && ranks > 2) return undefined;
  const first = minbytes ?? Math.min(defaultSizes.minbytes, maxbytes ?? Infinity);
  const last = maxbytes ?? Math.max(defaultSizes.maxbytes, first);
  return sizesIn(hostRoom(ranks), { minbytes: first, maxbytes: last, stepbytes: 1, stepfactor });
}

async function measure(
  kinds: readonly PairKind[],
  options: OwnOptions,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const ranks = ranksOf(options, defaultRanks);
  if (ranks < 2)
    throw UsageError.of('-n', 'at least 2 ranks', String(ranks), 'A job of one has no pair.');
  const { backend } = givenOf(pairsTable, options);
  if (backend !== undefined && backend !== 'shm' && jobSize() === undefined) {
    throw UsageError.of(
      '--backend',
      'shm for ranks of one process',
      backend,
      'Run it under gradlink launch -n 2, mpirun or srun.',
    );
  }
  const given = {
    ...givenOf(pairsTable, options),
    ...(kinds.length > 0 ? { kinds } : {}),
    sizes: sizesOf(options, ranks),
    ranks,
  };
  const output = new ReportOutput(options, io);
  const asked = {
    commandLine: argv,
    options: flatOptions({ ...typedOf(pairsTable, options), ranks: undefined }),
  };
  return measured({ tool: pairsTool, output, io, unit: 'rounds' }, (events) =>
    run({ ...given, asked }, events),
  );
}

export const registerPairs: Register = (program, io, done, argv) => {
  const one = read(pairKind);
  const each = Object.assign(
    (text: string, before: readonly PairKind[] = []): readonly PairKind[] => [
      ...new Set([...before, one(text)]),
    ],
    { choices: pairKinds },
  );
  const command = program
    .command('pairs')
    .description(
      'latency, bandwidth and message rate between ranks and hosts without GPUs, as OSU times them',
    )
    .argument('[kind...]', `${pairKinds.join(', ')} (default: all)`, each);
  addReportOptions(addTable(addTable(command, ownTable), pairsTable))
    .addHelpText('after', examples)
    .action(async (kinds: readonly PairKind[] | undefined, options: OwnOptions) => {
      done(await measure(kinds ?? [], options, argv, io));
    });
};
