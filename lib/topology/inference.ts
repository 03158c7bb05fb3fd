// From everybody's list in one direction to everybody's list in the other.
import { argumentError } from '../errors.js';
import { aNumber, integer, listOf } from '../checks.js';
import { Topology } from './topology.js';
import type { Edge } from './topology.js';

const neighborLists = listOf(listOf(aNumber));
/** As many as a graph may have. */
const maxRanks = 2 ** 16;

/**
 * The other direction of everybody's neighbour lists: who names each rank, ascending.
 *
 * @param lists - for each rank the ranks it sends to (the result: those it receives from), or the other way round.
 * @throws TypeError or RangeError for a rank that does not exist, the rank itself, or one named twice.
 */
export function invertNeighbors(lists: readonly (readonly number[])[]): number[][] {
  neighborLists(lists, 'the neighbour lists');
  integer(lists.length, 'the number of neighbour lists', 0, maxRanks);
  const inverse = lists.map((): number[] => []);
  lists.forEach((list, rank) => {
    const seen = new Set<number>();
    list.forEach((other) => {
      integer(other, `a neighbour of rank ${rank}`, 0, lists.length - 1);
      if (other === rank || seen.has(other)) {
        throw argumentError(
          'ERR_INVALID_ARG_VALUE',
          `the neighbours of rank ${rank}`,
          'other ranks, each once',
          { text: other === rank ? 'the rank itself' : `${other} twice` },
        );
      }
      seen.add(other);
      inverse[other]!.push(rank);
    });
  });
  return inverse;
}

/**
 * The graph in which each rank sends to these, with weights that average: what each rank receives, its own included, is
 * weighted equally and sums to one.
 *
 * @param destinations - for each rank the ranks it sends to.
 */
export function averagingGraph(destinations: readonly (readonly number[])[]): Topology {
  const edges: Edge[] = [];
  invertNeighbors(destinations).forEach((sources, to) => {
    const weight = 1 / (sources.length + 1);
    for (const from of [...sources, to]) edges.push({ from, to, weight });
  });
  return Topology.fromEdges(destinations.length, edges);
}
