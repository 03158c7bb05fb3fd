// `gradlink collectives`: one collective over a range of sizes, with nccl-tests' flags and columns.

import type { Command } from 'commander';

import { elementTypes, planGpus, type Plan } from './collectives-gpus.js';
import {
  isNeighborCollective,
  neighborCollectives,
  refuseNeighborOptions,
  runNeighbors,
  type NeighborCollective,
} from './collectives-neighbors.js';
import {
  addOptions,
  collectiveAliases,
  examples,
  hostRoom,
  onceEach,
  toSweep,
  type CollectivesOptions,
} from './collectives-options.js';
import { exitCodes, type Io } from './io.js';
import { version } from '../version.js';
import { choice } from './parse.js';
import { ProgressBar } from './progress/bar.js';
import type { Register } from './register.js';
import { addReportOptions, ReportOutput } from './report-output.js';
import { UsageError } from './usage-error.js';
import { collectives, type Collective } from '../results/bandwidth.js';
import { describeEnvironment } from '../results/environment.js';
import { describeGpus } from '../measure/machine/gpu-environment.js';
import { gpuSweepLimit, type GpuSweepLimit } from '../measure/machine/gpu-sweep-limit.js';
import { askNccl, withChoices, type NcclChoices } from '../measure/collectives/nccl-choices.js';
import {
  outcome,
  schemaVersion,
  type Report,
  type RunInfo,
  type Scalar,
} from '../results/result.js';
import { measureSharedLimit, type SharedLimit } from '../measure/machine/shared-limit.js';
import { jobSize, openWorld, type SweepWorld } from '../measure/collectives/world.js';
import { runSweep, sweepRows, type Sweep } from '../measure/collectives/sweep.js';
import { native } from '../native/load.js';
import { collectivesFooter, collectivesHeader, collectivesRow } from '../report/index.js';
import { packageFile } from '../package-folder.js';

/** At the end of the header: the names of the columns. Above it is what ran, and where. */
const columnLines = 3;

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

/** Ranks in the memory of the host. */
function planHost(collective: Collective, options: CollectivesOptions): Plan {
  const ranks = rankCount(options);
  const engine = options.threads || collective === 'sendrecv' ? 'threads' : 'local';
  return {
    ranks,
    room: hostRoom(ranks),
    open: (timeoutMs) => openWorld(ranks, engine, timeoutMs),
  };
}

async function limitOf(
  world: SweepWorld,
  { machine, ordinals = [] }: Plan,
  lastLevelCacheBytes: number | null,
): Promise<SharedLimit | GpuSweepLimit> {
  return machine === undefined
    ? measureSharedLimit(world, lastLevelCacheBytes)
    : gpuSweepLimit(machine, ordinals);
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
    packageVersion: version,
    commandLine: argv,
    options,
    startedAt: new Date().toISOString(),
  };
}

async function run(
  world: SweepWorld,
  {
    plan,
    sweep,
    choices,
  }: { readonly plan: Plan; readonly sweep: Sweep; readonly choices: NcclChoices },
  cycles: number,
  head: RunInfo,
  output: ReportOutput,
  io: Io,
): Promise<number> {
  const printing = world.rank === 0;
  const print = (lines: readonly string[]): void => {
    if (!printing || !output.showsText) return;
    progress.clear(io.stdout);
    io.stdout.write(lines.map((line) => `${line}\n`).join(''));
  };
  const rows = printing ? cycles * sweepRows(sweep, world.size) : 0;
  const progress = new ProgressBar(io, rows, 'sizes');
  const addon = native();
  const environment = describeEnvironment({
    simdLevel: addon.simdLevel(),
    threads: addon.numThreads(),
  });
  const gpus = plan.machine === undefined ? undefined : describeGpus(plan.machine.gpus);
  const limit = await limitOf(world, plan, environment.lastLevelCacheBytes);
  await world.barrier();
  const header = collectivesHeader({
    run: head,
    environment,
    ...(gpus === undefined ? {} : { gpus }),
  });
  print([
    ...header.slice(0, -columnLines),
    '# Using ranks',
    ...world.ranks.map(
      ({ rank, pid, host, device = 'cpu' }) =>
        `#  Rank ${String(rank).padStart(2)} Group  0 Pid ${String(pid).padStart(6)} on ${host} device ${device}`,
    ),
    ...header.slice(-columnLines),
  ]);
  const cases = [];
  try {
    progress.show(0);
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const results = await runSweep(sweep, { world, limit, environment }, (row) => {
        print(collectivesRow([row.outOfPlace, row.inPlace]));
        progress.advance();
      });
      cases.push(...withChoices(results, choices));
    }
  } finally {
    progress.stop();
  }
  const report: Report = {
    schemaVersion,
    run: head,
    environment,
    ...(gpus === undefined ? {} : { gpus }),
    cases,
  };
  print(collectivesFooter(report));
  if (printing) output.write(report);
  const { ok, error } = outcome(report);
  return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
}

export const registerCollectives: Register = (program, io, done, argv) => {
  const command = program
    .command('collectives')
    .description('time a collective over a range of sizes, with the columns of nccl-tests')
    .argument(
      '<collective>',
      [...collectives, ...neighborCollectives].join(', '),
      choice([...collectives, ...neighborCollectives], collectiveAliases),
    );
  addReportOptions(addOptions(command))
    .addHelpText('after', examples)
    .action(async (collective: Collective | NeighborCollective, options: CollectivesOptions) => {
      if (isNeighborCollective(collective)) {
        done(await runNeighbors(command, collective, options, argv, io));
        return;
      }
      refuseNeighborOptions(collective, options);
      const plan = planGpus(options) ?? planHost(collective, options);
      const types = elementTypes(collective, options.datatype, plan.machine);
      const sweep = {
        ...toSweep(collective, plan.ranks, plan.room, options, types),
        ...(plan.timing === undefined ? {} : { gpu: plan.timing }),
      };
      const destination = options.output ?? options.output_file;
      const format = options.format ?? (options.output_file === undefined ? undefined : 'json');
      const output = new ReportOutput(
        {
          ...(destination === undefined ? {} : { output: destination }),
          ...(format === undefined ? {} : { format }),
        },
        io,
      );
      const choices: NcclChoices = options.algorithms
        ? await askNccl(packageFile('bench/gradlink.js'), onceEach(collective, options))
        : new Map();
      const world = await plan.open(options.timeout * 1000);
      try {
        const head = runInfo(command, collective, argv, world);
        done(await run(world, { plan, sweep, choices }, options.run_cycles, head, output, io));
      } finally {
        await world.close();
      }
    });
};
