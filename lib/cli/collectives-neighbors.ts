// `gradlink collectives neighbor_all_reduce` and its hierarchical form: averaging with neighbours beside all_reduce.
import type { Command } from 'commander';

import { toSweep, hostRoom, type CollectivesOptions } from './collectives-options.js';
import { exitCodes, type Io } from './io.js';
import { version } from '../version.js';
import { ProgressBar } from './progress/bar.js';
import { ReportOutput } from './report-output.js';
import { UsageError } from './usage-error.js';
import { describeEnvironment } from '../results/environment.js';
import {
  neighborOperations,
  planNeighbors,
  type GraphName,
  type NeighborOperation,
} from '../measure/neighbors/plan.js';
import {
  neighborDtypes,
  openNeighborRanks,
  runNeighborSweep,
  type NeighborDType,
  type NeighborSweep,
  neighborRows,
} from '../measure/neighbors/sweep.js';
import {
  outcome,
  schemaVersion,
  type CaseResult,
  type Report,
  type RunInfo,
} from '../results/result.js';
import { measureSharedLimit } from '../measure/machine/shared-limit.js';
import { gatherNumbers, jobSize } from '../measure/collectives/world.js';
import { native } from '../native/load.js';
import { neighborsFooter, neighborsHeader, neighborsRow } from '../report/index.js';

export const neighborCollectives = [
  'neighbor_all_reduce',
  'hierarchical_neighbor_all_reduce',
] as const;
export type NeighborCollective = (typeof neighborCollectives)[number];

export function isNeighborCollective(name: string): name is NeighborCollective {
  return (neighborCollectives as readonly string[]).includes(name);
}

/** Options that mean nothing for the other collectives. */
export function refuseNeighborOptions(collective: string, options: CollectivesOptions): void {
  for (const [name, given] of [
    ['--topology', options.topology],
    ['--dynamic', options.dynamic],
    ['--ranks-per-node', options.ranksPerNode],
  ] as const) {
    if (given === undefined) continue;
    throw UsageError.of(name, neighborCollectives.join(' or '), collective);
  }
}

function rankCount({ ranks }: CollectivesOptions): number {
  const size = jobSize();
  if (size !== undefined && ranks !== undefined && ranks !== size) {
    throw UsageError.of(
      ...([
        '-n',
        `the ${size} ranks of the job that this process belongs to`,
        String(ranks),
      ] as const),
      'Leave -n away under a launcher.',
    );
  }
  return size ?? ranks ?? 4;
}

/** Ranks of a node: the option, the environment's, or all. */
function ranksPerNode(given: number | undefined, size: number): number {
  const fromEnvironment = process.env['GRADLINK_RANKS_PER_NODE'] ?? '';
  const name = given === undefined ? 'GRADLINK_RANKS_PER_NODE' : '--ranks-per-node';
  const perNode = given ?? (fromEnvironment === '' ? size : Number(fromEnvironment));
  if (Number.isInteger(perNode) && perNode > 0 && size % perNode === 0) return perNode;
  throw UsageError.of(name, `a divisor of the ${size} ranks`, String(perNode));
}

function sweepOf(
  collective: NeighborCollective,
  size: number,
  options: CollectivesOptions,
): NeighborSweep {
  for (const [name, given] of [
    ['-g', options.ngpus],
    ['-t', options.nthreads],
    ['--gpus', options.gpus],
  ] as const) {
    if (given !== undefined) {
      throw UsageError.of(name, `ranks in the memory of the host for ${collective}`, 'GPUs');
    }
  }
  const dtypes = options.datatype.filter((dtype): dtype is NeighborDType =>
    (neighborDtypes as readonly string[]).includes(dtype),
  );
  if (dtypes.length < options.datatype.length) {
    throw UsageError.of('-d', neighborDtypes.join(' or '), options.datatype.join(', '));
  }
  const graph: GraphName = options.topology ?? 'exp2';
  const perNode = ranksPerNode(options.ranksPerNode, size);
  const common = toSweep('all_reduce', size, hostRoom(size), options, dtypes);
  const operations: NeighborOperation[] = neighborOperations.filter(
    (name) => name !== 'hierarchical_neighbor_all_reduce' || collective === name,
  );
  return {
    operations,
    plan: planNeighbors(size, perNode, graph, options.dynamic === true),
    sizes: common.sizes,
    dtypes,
    samples: common.iterations,
    warmup: common.warmup,
    ...(common.batch === undefined ? {} : { batch: common.batch }),
    check: common.check,
    average: common.average,
    shared: common.shared,
  };
}

/** @returns the exit code */
export async function runNeighbors(
  command: Command,
  collective: NeighborCollective,
  options: CollectivesOptions,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const sweep = sweepOf(collective, rankCount(options), options);
  const output = new ReportOutput(options, io);
  const { plan } = sweep;
  const ranks = await openNeighborRanks(plan.size, options.timeout * 1000);
  try {
    const [first] = ranks.members;
    const printing = first?.rank === 0;
    const progress = new ProgressBar(io, printing ? neighborRows(sweep) : 0, 'sizes');
    const print = (lines: readonly string[]): void => {
      if (!printing || !output.showsText) return;
      progress.clear(io.stdout);
      io.stdout.write(lines.map((line) => `${line}\n`).join(''));
    };
    const addon = native();
    const environment = describeEnvironment({
      simdLevel: addon.simdLevel(),
      threads: addon.numThreads(),
    });
    const limit = await measureSharedLimit(
      {
        rank: ranks.processes > 1 ? first!.rank : 0,
        gather: (values) =>
          ranks.processes > 1 ? gatherNumbers(first!, values) : Promise.resolve([values]),
      },
      environment.lastLevelCacheBytes,
    );
    const run: RunInfo = {
      tool: command.name(),
      packageVersion: version,
      commandLine: argv,
      options: {
        ...{ collective, ranks: plan.size, topology: plan.graphName, dynamic: plan.dynamic },
        ...{ ranksPerNode: plan.perNode, iters: options.iters, shared: sweep.shared },
      },
      startedAt: new Date().toISOString(),
    };
    print(neighborsHeader({ run, environment }));
    const cases: CaseResult[] = [];
    try {
      progress.show(0);
      const results = await runNeighborSweep({ ranks, sweep, limit, environment }, (row) => {
        print(row.map(neighborsRow));
        progress.advance();
      });
      cases.push(...results);
    } finally {
      progress.stop();
    }
    const report: Report = { schemaVersion, run, environment, cases };
    print(neighborsFooter(report));
    if (printing) output.write(report);
    const { ok, error } = outcome(report);
    return error === 0 && ok > 0 ? exitCodes.ok : exitCodes.failure;
  } finally {
    await ranks.close();
  }
}
