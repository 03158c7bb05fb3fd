// The benchmark of neighbour averaging against all_reduce: `gradlink collectives neighbor_all_reduce` without its
// options and printing.
import type { HostSweepLimit } from '../collectives/sweep.js';
import type { CaseResult, Report } from '../../results/result.js';
import { oneOf } from '../../checks.js';
import { argumentError } from '../../errors.js';
import { gatherNumbers, rankCount } from '../job.js';
import { coresLimitOfJob } from '../machine/cores-limit.js';
import { measureSharedLimit } from '../machine/shared-limit.js';
import { sizedLimit } from '../machine/sized-limit.js';
import { checkEvents, givenOptions, headOf, Steps, type RunEvents } from '../common-run.js';
import { neighborsTable, type NeighborsOptions } from './neighbors-options.js';
import { neighborCollectives, neighborOperations, planNeighbors } from './plan.js';
import {
  neighborRows,
  openNeighborRanks,
  runNeighborSweep,
  type NeighborRanks,
  type NeighborSweep,
} from './sweep.js';

const defaultRanks = 4;

/** The processes for shared limits; ranks of one process count as one. */
function peersOf({ members: [first], processes }: NeighborRanks): {
  rank: number;
  gather: (values: readonly number[]) => Promise<readonly (readonly number[])[]>;
} {
  if (first === undefined || processes === 1) {
    return { rank: 0, gather: (values) => Promise.resolve([values]) };
  }
  return { rank: first.rank, gather: (values) => gatherNumbers(first, values) };
}

/**
 * Times neighbour averaging and `all_reduce` alternately; collective in a job, with the same figures for every process.
 *
 * @throws RangeError or TypeError with a code for invalid options
 * @throws GradlinkError ERR_TIMEOUT if ranks are missing
 */
export async function run(options: NeighborsOptions, events: RunEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(neighborsTable, options);
  const { topology, dynamic, timeoutMs } = given;
  const collective = oneOf(given.collective, 'collective', neighborCollectives);
  const size = rankCount(given.ranks, defaultRanks);
  const { ranksPerNode = size } = given;
  if (size % ranksPerNode !== 0) {
    const expected = `a divisor of the ${size} ranks`;
    throw argumentError('ERR_OUT_OF_RANGE', 'ranksPerNode', expected, ranksPerNode);
  }
  const sweep: NeighborSweep = {
    ...given,
    operations: neighborOperations.filter(
      (name) => name !== 'hierarchical_neighbor_all_reduce' || collective === name,
    ),
    plan: planNeighbors(size, ranksPerNode, topology, dynamic),
  };
  const ranks = await openNeighborRanks(size, timeoutMs);
  try {
    const [first] = ranks.members;
    const tell = first?.rank === 0 ? events : {};
    const head = headOf('collectives', given, {
      collective,
      ranks: size,
      topology,
      dynamic,
      ranksPerNode,
    });
    const { environment } = head;
    const { lastLevelCacheBytes } = environment;
    const peers = peersOf(ranks);
    const shared = await measureSharedLimit(peers, lastLevelCacheBytes);
    const inJob = first !== undefined && ranks.processes > 1;
    const cores =
      inJob && !given.shared ? await coresLimitOfJob(first, shared.availableCores) : undefined;
    const limit: HostSweepLimit = {
      ...shared,
      sized: sizedLimit(peers, shared, lastLevelCacheBytes),
      ...(cores === undefined ? {} : { cores }),
    };
    tell.onStart?.(head, []);
    const steps = new Steps(tell, neighborRows(sweep));
    const cases: CaseResult[] = await runNeighborSweep(
      { ranks, sweep, limit, environment },
      (row) => {
        tell.onCases?.(row);
        steps.advance();
      },
    );
    return { ...head, cases };
  } finally {
    await ranks.close();
  }
}
