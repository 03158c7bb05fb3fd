// Inverts the neighbour lists of all ranks.
import { argumentError } from '../errors.js';
import { aNumber, integer, listOf } from '../checks.js';
import { Topology } from './topology.js';
import type { Edge } from './topology.js';

const neighborLists = listOf(listOf(aNumber));
/** The maximum size of a graph. */
const maxRanks = 2 ** 16;

/**
 * Inverts neighbour lists: for each rank those that name it, ascending.
 *
 * @param lists - for each rank the ranks it sends to (the result: those it receives from), or the other way round.
 * @throws TypeError or RangeError for a rank that does not exist, the rank itself, or a repeated one.
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
 * The graph in which each rank sends to these, with averaging weights: those of received data and a rank's own are
 * equal and sum to one.
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
