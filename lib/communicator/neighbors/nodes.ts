// Nodes of equally many ranks.
import { argumentError, ruleError } from '../../errors.js';
import type { NativeNeighborhood } from '../../native/communicator.js';
import type { Topology } from '../../topology/topology.js';
import { integer } from '../../checks.js';
import type { Group } from '../calls/types.js';
import { neighborhood, readWeights, weight } from '../calls/neighbor-call.js';
import type { NodesFailure } from './nodes-failure.js';

/** A rank's node and its number there. */
export interface PlaceInNodes {
  readonly nodes: number;
  readonly perNode: number;
  readonly node: number;
  /** Its number in its node; 0 is the leader. */
  readonly local: number;
}

/** The nodes of a communicator. */
export interface Nodes<C> {
  readonly place: PlaceInNodes;
  /** The ranks of this node. */
  readonly node: C;
  /** The first rank of each node; null on the others. */
  readonly leaders: C | null;
  readonly topology: Topology;
  readonly weighted: boolean;
  /** Why they can no longer be used. */
  failure?: NodesFailure;
}

/**
 * @param given - ranks per node; when absent from the environment, else all
 * @throws TypeError or RangeError if it does not divide the size.
 */
export function placeInNodes(group: Group, given: unknown): PlaceInNodes {
  const { size, rank } = group;
  const [name, value] = given === undefined ? fromEnvironment(size) : ['ranksPerNode', given];
  const perNode = integer(value, name, 1, size);
  if (size % perNode !== 0) {
    throw argumentError('ERR_INVALID_ARG_VALUE', name, `a divisor of the ${size} ranks`, perNode);
  }
  return {
    nodes: size / perNode,
    perNode,
    node: Math.floor(rank / perNode),
    local: rank % perNode,
  };
}

function fromEnvironment(size: number): [string, number] {
  for (const name of ['GRADLINK_RANKS_PER_NODE', 'OMPI_COMM_WORLD_LOCAL_SIZE', 'MPI_LOCALNRANKS']) {
    const value = process.env[name] ?? '';
    // A communicator of part of a job may be smaller than a node.
    if (value !== '') return [name, Math.min(Number(value), size)];
  }
  return ['ranksPerNode', size];
}

/** Whether equal names are consecutive and equally many. */
export function alikeInRuns(hosts: readonly string[]): boolean {
  const different = new Set(hosts).size;
  const each = hosts.length / different;
  return hosts.every((host, rank) => host === hosts[Math.floor(rank / each) * each]);
}

interface RawMachineWeights {
  readonly selfWeight?: unknown;
  readonly srcMachineWeights?: unknown;
  readonly dstMachineWeights?: unknown;
}

/** The exchange of this node's leader; sums of nodes become averages over ranks. */
export function machineNeighborhood(
  nodes: Nodes<unknown>,
  { selfWeight, srcMachineWeights, dstMachineWeights }: RawMachineWeights,
): NativeNeighborhood {
  const { topology } = nodes;
  const { node, nodes: count, perNode } = nodes.place;
  const ones = new Map(topology.destinations(node).map((to) => [to, 1]));
  const given = [selfWeight, srcMachineWeights, dstMachineWeights].filter(
    (one) => one !== undefined,
  );
  if (given.length === 0) {
    if (nodes.weighted) {
      const own = topology.receiveWeights(node);
      const sources = Object.entries(own.weights).map(([from, w]) => [Number(from), w] as const);
      return neighborhood(own.selfWeight, new Map(sources), ones, perNode);
    }
    const sources = topology.sources(node);
    const equal = new Map(sources.map((from) => [from, 1]));
    return neighborhood(1, equal, ones, perNode * (sources.length + 1));
  }
  if (given.length !== 3) {
    const names = 'selfWeight, srcMachineWeights and dstMachineWeights';
    throw ruleError('ERR_INVALID_ARG_VALUE', `${names} must be given together`);
  }
  const group: Group = { size: count, rank: node, heldRanks: [node], gpus: [], takesLists: false };
  return neighborhood(
    weight(selfWeight, 'selfWeight'),
    readWeights(group, srcMachineWeights, 'srcMachineWeights'),
    readWeights(group, dstMachineWeights, 'dstMachineWeights'),
    perNode,
  );
}
