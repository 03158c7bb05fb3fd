// `gradlink collectives`: one collective over a range of sizes, with nccl-tests' flags and columns.
import type { Command } from 'commander';

import { elementTypes, planGpus } from './collectives-gpus.js';
import {
  isNeighborCollective,
  refuseNeighborOptions,
  runNeighbors,
} from './collectives-neighbors.js';
import { splitAsked } from './collectives-nccl-tests.js';
import {
  addOptions,
  collectiveAliases,
  collectivesOptions,
  examples,
  hostRoom,
  onceEach,
  toSweep,
  withCounts,
  type CollectivesOptions,
  type OwnOptions,
} from './collectives-options.js';
import type { Io } from '../io.js';
import { measured, ranksOf } from '../measured-command.js';
import { read, typedOf } from '../parse.js';
import { choice } from '../../options/kinds.js';
import type { Register } from '../register.js';
import { addReportOptions, ReportOutput } from '../reports/report-output.js';
import { UsageError } from '../usage-error.js';
import { askNccl, parseNcclLog } from '../../measure/collectives/nccl-choices.js';
import { collectivesTable } from '../../measure/collectives/collectives-options.js';
import { run } from '../../measure/collectives/collectives-run.js';
import { neighborCollectives, type NeighborCollective } from '../../measure/neighbors/plan.js';
import { flatOptions, type Asked } from '../../measure/common-run.js';
import { collectivesTool } from '../../report/index.js';
import { collectives, type Collective } from '../../results/bandwidth.js';

const defaultRanks = 2;

/** nccl-tests' -J is a destination of its own, in JSON. */
function outputOf(options: CollectivesOptions, io: Io): ReportOutput {
  const { output_file: json } = options;
  const destination = options.output ?? json;
  const format = options.format ?? (json === undefined ? undefined : 'json');
  return new ReportOutput(
    {
      ...(destination === undefined ? {} : { output: destination }),
      ...(format === undefined ? {} : { format }),
    },
    io,
  );
}

async function measure(
  collective: Collective,
  options: CollectivesOptions,
  asked: Asked,
  io: Io,
): Promise<number> {
  refuseNeighborOptions(collective, options);
  const gpus = planGpus(options);
  const advice = 'Omit -n under a launcher. For iterations use --iters.';
  const ranks = gpus?.ranks ?? ranksOf(options, defaultRanks, advice);
  const types = elementTypes(collective, options.dtypes, gpus?.machine);
  const { split, each } = splitAsked(options, ranks, io.env);
  const sweep = toSweep(collective, each, gpus?.room ?? hostRoom(ranks), options, types);
  const output = outputOf(options, io);
  const choices = options.algorithms
    ? { choices: parseNcclLog(await askNccl(onceEach(collective, options))) }
    : {};
  const place =
    gpus === undefined
      ? { ranks, threads: options.threads }
      : { gpus: gpus.gpus, gpu: gpus.timing, threads: (options.nthreads ?? 1) > 1 };
  const { cycles } = options;
  return measured({ tool: collectivesTool, output, io, unit: 'sizes' }, (events) =>
    run({ ...sweep, ...place, ...choices, cycles, split, asked }, events),
  );
}

export const registerCollectives: Register = (program, io, done, argv) => {
  const command: Command = program
    .command('collectives')
    .description('time a collective over a range of sizes, with the columns of nccl-tests')
    .argument(
      '<collective>',
      [...collectives, ...neighborCollectives].join(', '),
      read(choice([...collectives, ...neighborCollectives], collectiveAliases)),
    );
  addReportOptions(addOptions(command))
    .addHelpText('after', examples)
    .action(async (collective: Collective | NeighborCollective, given: OwnOptions) => {
      const typed = withCounts(given, command.getOptionValueSource('iters') === 'cli');
      const options = collectivesOptions(typed);
      if (isNeighborCollective(collective)) {
        if (options.split !== undefined) {
          throw new UsageError('--split is not of neighbours: use --ranks-per-node.');
        }
        done(await runNeighbors(collective, options, argv, io));
        return;
      }
      // How many ranks there are the run says.
      const asked = {
        commandLine: argv,
        options: flatOptions({ ...typedOf(collectivesTable, typed), ranks: undefined }),
      };
      done(await measure(collective, options, asked, io));
    });
};
