// Schedules that change the graph in every step, so that each step is one message per rank and all data spreads within
// a period. Every rank computes its schedule locally, and they agree.
import { argumentError } from '../errors.js';
import { anObject, aNumber, having, integer, listOf } from '../checks.js';
import type { Node, Rank, WeightsOf } from './rank.js';
import { Topology } from './topology.js';

/** The exchange of a rank or node in one step. */
export interface Exchange<V extends Rank | Node = Rank> {
  /** The ranks or nodes to send to. */
  readonly destinations: readonly V[];
  /** The ranks or nodes to receive from, ascending. */
  readonly sources: readonly V[];
}

/** A rank's place among nodes with equally many ranks: node n holds the ranks from n * ranksPerNode on. */
export interface NodePlace {
  /** Number of ranks. */
  readonly size: number;
  /** Ranks per node, a divisor of size. */
  readonly ranksPerNode: number;
  /** This rank, from 0. */
  readonly rank: number;
}

interface Place {
  readonly nodes: number;
  readonly perNode: number;
  readonly node: number;
  readonly local: number;
}

const nobody: Exchange<Rank & Node> = Object.freeze({ destinations: [], sources: [] });

/**
 * Each rank sends to one of its destinations per step, in the order of their upward distance. It receives from every
 * rank that sends to it in that step. Endless; a rank without destinations only receives.
 *
 * `onePeerSchedule<Node>(graph, node)` is the same for a graph of nodes.
 */
export function onePeerSchedule<V extends Rank | Node = Rank>(
  topology: Topology,
  rank: number,
): Generator<Exchange<V>, never>;
export function onePeerSchedule(
  topology: Topology,
  rank: number,
): Generator<Exchange<number>, never> {
  if (!(topology instanceof Topology)) {
    throw argumentError('ERR_INVALID_ARG_TYPE', 'topology', 'a Topology', topology);
  }
  integer(rank, 'rank', 0, topology.size - 1);
  const orders = new Map(
    [rank, ...topology.sources(rank)].map((from) => [from, clockwise(topology, from)]),
  );
  const own = orders.get(rank)!;
  return endless((t) => ({
    destinations: own.length === 0 ? [] : [own[t % own.length]!],
    sources: topology.sources(rank).filter((from) => {
      const order = orders.get(from)!;
      return order[t % order.length] === rank;
    }),
  }));
}

function clockwise(topology: Topology, from: number): number[] {
  const distance = (to: number) => (to - from + topology.size) % topology.size;
  return topology.destinations(from).sort((a, b) => distance(a) - distance(b));
}

/**
 * Node m sends to the nodes at distances 1, 2, 4, … in turn, for hierarchical averaging. With one node the lists are
 * empty.
 */
export function exponentialMachineSchedule(place: NodePlace): Generator<Exchange<Node>, never> {
  const { nodes, node } = checkedPlace(place);
  return endless((t) => {
    if (nodes === 1) return nobody;
    const distance = powerAt(t, nodes - 1);
    return one((node + distance) % nodes, modulo(node - distance, nodes));
  });
}

/**
 * In each step one rank of every node exchanges with the same rank of the next node, and the others exchange in a ring
 * inside their node: the network carries one message per node. With one node the selected rank is idle.
 *
 * @throws RangeError for nodes of one or two ranks: with two, nothing would pass between them.
 */
export function innerOuterRingSchedule(place: NodePlace): Generator<Exchange, never> {
  const { nodes, perNode, node, local } = checkedInnerOuter(place);
  return endless((t) => {
    const outgoing = t % perNode;
    if (local === outgoing) return outside(nodes, perNode, node, local, 1);
    const past = (start: number, step: number) => {
      const next = modulo(start + step, perNode);
      return next === outgoing ? modulo(next + step, perNode) : next;
    };
    return inside(perNode, node, past(local, 1), past(local, -1));
  });
}

/**
 * As {@link innerOuterRingSchedule} with distances 1, 2, 4, … between nodes and inside a node, where the rank that
 * exchanges outside is skipped.
 *
 * @throws RangeError for nodes of one or two ranks.
 */
export function innerOuterExponentialSchedule(place: NodePlace): Generator<Exchange, never> {
  const { nodes, perNode, node, local } = checkedInnerOuter(place);
  return endless((t) => {
    const outgoing = t % perNode;
    if (local === outgoing) return outside(nodes, perNode, node, local, powerAt(t, nodes - 1));
    const distance = powerAt(t, perNode - 2);
    const past = (toOutgoing: number) => (distance >= toOutgoing ? distance + 1 : distance);
    const to = modulo(local + past(modulo(outgoing - local, perNode)), perNode);
    const from = modulo(local - past(modulo(local - outgoing, perNode)), perNode);
    return inside(perNode, node, to, from);
  });
}

/** Equal weights for the own and the received data of a rank or node, for a dynamic neighborAllReduce. */
export function uniformWeights<V extends Rank | Node = Rank>(
  exchange: Exchange<V>,
): {
  /** Weight of this rank's own array. */
  selfWeight: number;
  /** Weight of each source's data. */
  srcWeights: WeightsOf<V>;
  /** Factor of the data sent to each destination. */
  dstWeights: WeightsOf<V>;
} {
  exchangeOfRanks(exchange, 'exchange');
  const { destinations, sources } = exchange;
  const weight = 1 / (sources.length + 1);
  return {
    selfWeight: weight,
    srcWeights: Object.fromEntries(sources.map((from) => [from, weight])),
    dstWeights: Object.fromEntries(destinations.map((to) => [to, 1])),
  };
}

const exchangeOfRanks = having({ destinations: listOf(aNumber), sources: listOf(aNumber) });

function outside(
  nodes: number,
  perNode: number,
  node: number,
  local: number,
  distance: number,
): Exchange {
  if (nodes === 1) return nobody;
  const on = (other: number) => modulo(other, nodes) * perNode + local;
  return one(on(node + distance), on(node - distance));
}

function inside(perNode: number, node: number, to: number, from: number): Exchange {
  return one(node * perNode + to, node * perNode + from);
}

const one = (to: number, from: number) => ({ destinations: [to], sources: [from] });

/** The power of two for this step, up to the limit; 1 if there is none. */
function powerAt(t: number, limit: number): number {
  const powers = limit < 1 ? 1 : 32 - Math.clz32(limit);
  return 2 ** (t % powers);
}

const modulo = (value: number, by: number) => ((value % by) + by) % by;

function checkedPlace(place: NodePlace): Place {
  anObject(place, 'place');
  const { size, ranksPerNode, rank } = place;
  integer(size, 'size', 1, 2 ** 16);
  integer(ranksPerNode, 'ranksPerNode', 1, size);
  integer(rank, 'rank', 0, size - 1);
  if (size % ranksPerNode !== 0) {
    const expected = `a divisor of the ${size} ranks`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'ranksPerNode', expected, ranksPerNode);
  }
  return {
    nodes: size / ranksPerNode,
    perNode: ranksPerNode,
    node: Math.floor(rank / ranksPerNode),
    local: rank % ranksPerNode,
  };
}

/** While one rank of a node exchanges outside, the others need at least two to exchange inside. */
function checkedInnerOuter(place: NodePlace): Place {
  const checked = checkedPlace(place);
  if (checked.perNode > 2) return checked;
  const expected =
    'at least 3 (with fewer, ranks of a node never exchange; use onePeerSchedule, or exponentialMachineSchedule with hierarchicalNeighborAllReduce)';
  throw argumentError('ERR_OUT_OF_RANGE', 'ranksPerNode', expected, checked.perNode);
}

function* endless<V extends Rank | Node>(
  step: (t: number) => Exchange<V>,
): Generator<Exchange<V>, never> {
  for (let t = 0; ; ++t) yield step(t);
}
