// `gradlink collectives neighbor_all_reduce` and its hierarchical form: averaging with neighbours beside all_reduce.
import { hostRoom, toSweep, type CollectivesOptions } from './collectives-options.js';
import type { Io } from '../io.js';
import { measured, ranksOf } from '../measured-command.js';
import { ReportOutput } from '../reports/report-output.js';
import { UsageError } from '../usage-error.js';
import { neighborCollectives, type NeighborCollective } from '../../measure/neighbors/plan.js';
import type { NeighborsOptions } from '../../measure/neighbors/neighbors-options.js';
import { run } from '../../measure/neighbors/neighbors-run.js';
import { neighborDtypes, type NeighborDType } from '../../measure/neighbors/sweep.js';
import { neighborsTool } from '../../report/index.js';

const defaultRanks = 4;

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
    throw new UsageError(
      `${name} applies to ${neighborCollectives.join(' and ')}, not ${collective}.`,
    );
  }
}

/** Ranks of a node: the option, the environment's, or all. */
function ranksPerNode(given: number | undefined, size: number): number {
  const fromEnvironment = process.env['GRADLINK_RANKS_PER_NODE'] ?? '';
  const name = given === undefined ? 'GRADLINK_RANKS_PER_NODE' : '--ranks-per-node';
  const perNode = given ?? (fromEnvironment === '' ? size : Number(fromEnvironment));
  if (Number.isInteger(perNode) && perNode > 0 && size % perNode === 0) return perNode;
  throw UsageError.of(name, `a divisor of the ${size} ranks`, String(perNode));
}

function optionsOf(
  collective: NeighborCollective,
  size: number,
  options: CollectivesOptions,
): NeighborsOptions {
  for (const [name, given] of [
    ['-g', options.ngpus],
    ['-t', options.nthreads],
    ['--gpus', options.gpus],
    ['--like-nccl-tests', options.likeNcclTests || undefined],
  ] as const) {
    if (given !== undefined) {
      throw new UsageError(`${collective} needs ranks in host memory: omit ${name}.`);
    }
  }
  const dtypes = options.dtypes.filter((dtype): dtype is NeighborDType =>
    (neighborDtypes as readonly string[]).includes(dtype),
  );
  if (dtypes.length < options.dtypes.length) {
    throw UsageError.of('-d', neighborDtypes.join(' or '), options.dtypes.join(', '));
  }
  const perNode = ranksPerNode(options.ranksPerNode, size);
  const common = toSweep('all_reduce', size, hostRoom(size), options, dtypes);
  return {
    collective,
    ranks: size,
    topology: options.topology,
    dynamic: options.dynamic,
    ranksPerNode: perNode,
    sizes: common.sizes,
    dtypes,
    samples: common.iterations,
    warmup: common.warmup,
    batch: common.batch,
    check: common.check,
    average: common.average,
    shared: common.shared,
    timeoutMs: options.timeoutMs,
  };
}

/** @returns the exit code */
export async function runNeighbors(
  collective: NeighborCollective,
  options: CollectivesOptions,
  argv: readonly string[],
  io: Io,
): Promise<number> {
  const given = optionsOf(collective, ranksOf(options, defaultRanks), options);
  const output = new ReportOutput(options, io);
  const asked = {
    commandLine: argv,
    options: { iters: options.iterations, shared: options.shared },
  };
  return measured({ tool: neighborsTool, output, io, unit: 'sizes' }, (events) =>
    run({ ...given, asked }, events),
  );
}
