// The options of neighbour averaging, for `gradlink collectives` and its run.
import type { RunOptions } from '../common-run.js';
import { callRows, checkRows, rankRows } from '../collectives/collectives-options.js';
import { choice, flag, list, whole } from '../../options/kinds.js';
import { optionTable, type OptionsOf } from '../../options/table.js';
import { graphNames, neighborCollectives, type NeighborCollective } from './plan.js';
import { neighborDtypes } from './sweep.js';

const count = whole({ min: 1 });

/** Options that other collectives lack. */
export const graphRows = optionTable({
  /** The graph of neighbours; default `exp2`. */
  topology: {
    flag: '--topology <graph>',
    help: `with neighbor_all_reduce: ${graphNames.join(', ')} (default: exp2)`,
    kind: choice(graphNames),
    default: 'exp2',
    ownDefault: true,
  },
  /** Whether each step has a single, changing neighbour. Default: all neighbours in every step. */
  dynamic: {
    flag: '--dynamic',
    help: 'with neighbor_all_reduce: one neighbour a step, a different one each step',
    kind: flag,
    default: false,
  },
  /** Ranks that count as one host, a divisor of the ranks; default all. */
  ranksPerNode: {
    flag: '--ranks-per-node <count>',
    help: 'with neighbor_all_reduce: ranks that count as one host (default: GRADLINK_RANKS_PER_NODE, or all)',
    kind: count,
  },
});

export const neighborsTable = optionTable({
  /** The hierarchical form is measured together with the plain one, and both with `all_reduce`. */
  collective: { kind: choice(neighborCollectives) },
  /** Ranks of this process; default 4. A job has its own number. */
  ranks: { kind: count },
  ...callRows,
  /** Default float32. */
  dtypes: { kind: list(choice(neighborDtypes)), default: ['float32'] },
  /** Timed samples of each case; default 20. */
  samples: { kind: count, default: 20 },
  ...checkRows,
  ...rankRows,
  ...graphRows,
});

/** The measurement and its ranks. In a job every process calls with the same options. */
export interface NeighborsOptions
  extends RunOptions, Omit<OptionsOf<typeof neighborsTable>, 'collective'> {
  /** Timed together with `all_reduce`. */
  readonly collective: NeighborCollective;
}
