// The steps of neighbour averaging in a measurement: exchanges, and bytes sent.
import { collectiveCrossing, type Crossing } from '../../results/crossing.js';
import {
  exponentialTwoGraph,
  fullyConnectedGraph,
  meshGrid2DGraph,
  ringGraph,
  starGraph,
  symmetricExponentialGraph,
} from '../../topology/generators.js';
import type { Node, Rank } from '../../topology/rank.js';
import { onePeerSchedule, type Exchange } from '../../topology/schedules.js';
import type { Topology } from '../../topology/topology.js';

/** The operations of one table; all_reduce is the baseline. */
export const neighborOperations = [
  'all_reduce',
  'neighbor_all_reduce',
  'hierarchical_neighbor_all_reduce',
] as const;
export type NeighborOperation = (typeof neighborOperations)[number];

/** Operations that can be requested. */
export const neighborCollectives = [
  'neighbor_all_reduce',
  'hierarchical_neighbor_all_reduce',
] as const satisfies readonly NeighborOperation[];
/** One of {@link neighborCollectives}. */
export type NeighborCollective = (typeof neighborCollectives)[number];

/** Graphs by their command-line names. */
export const graphNames = [
  'exp2',
  'symmetric_exp',
  'ring',
  'one_way_ring',
  'mesh',
  'star',
  'full',
] as const;
/** A graph's command-line name. */
export type GraphName = (typeof graphNames)[number];

export const graphs = {
  exp2: exponentialTwoGraph,
  symmetric_exp: (size: number) => symmetricExponentialGraph(size),
  ring: (size: number) => ringGraph(size),
  one_way_ring: (size: number) => ringGraph(size, 'right'),
  mesh: (size: number) => meshGrid2DGraph(size),
  star: (size: number) => starGraph(size),
  full: fullyConnectedGraph,
} as const satisfies Readonly<Record<GraphName, (size: number) => Topology>>;

export interface NeighborPlan {
  readonly size: number;
  /** Ranks per node; all with a single node. */
  readonly perNode: number;
  readonly graphName: GraphName;
  readonly graph: Topology;
  /** Of nodes. */
  readonly nodeGraph: Topology;
  /** Whether each step has a single, changing neighbour. */
  readonly dynamic: boolean;
}

export function planNeighbors(
  size: number,
  perNode: number,
  graphName: GraphName,
  dynamic: boolean,
): NeighborPlan {
  return {
    size,
    perNode,
    graphName,
    dynamic,
    graph: graphs[graphName](size),
    nodeGraph: graphs[graphName](size / perNode),
  };
}

/** A rank's exchanges per step; one step for a static graph. */
export function exchangesOf<V extends Rank | Node = Rank>(
  graph: Topology,
  rank: number,
  dynamic: boolean,
): readonly Exchange<V>[];
export function exchangesOf(
  graph: Topology,
  rank: number,
  dynamic: boolean,
): readonly Exchange<number>[] {
  if (!dynamic) {
    return [{ sources: graph.sources(rank), destinations: graph.destinations(rank) }];
  }
  // Enough steps for the rank with the most destinations to reach them all.
  const steps = Math.max(1, ...ranksOf(graph).map((one) => graph.destinations(one).length));
  const schedule = onePeerSchedule(graph, rank);
  return Array.from({ length: steps }, () => schedule.next().value);
}

const ranksOf = (graph: Topology) => Array.from({ length: graph.size }, (_, rank) => rank);

/** The factors of all ranks' data in a rank's result. */
export function factorsOf(
  plan: NeighborPlan,
  operation: NeighborOperation,
  rank: number,
  step: number,
): ReadonlyMap<number, number> {
  const { size, perNode } = plan;
  if (operation === 'all_reduce') {
    return new Map(Array.from({ length: size }, (_, other) => [other, 1]));
  }
  const nodes = operation === 'hierarchical_neighbor_all_reduce';
  const graph = nodes ? plan.nodeGraph : plan.graph;
  const own = nodes ? Math.floor(rank / perNode) : rank;
  const steps = exchangesOf(graph, own, plan.dynamic);
  const heard = [own, ...steps[step % steps.length]!.sources];
  const width = nodes ? perNode : 1;
  const share = 1 / (heard.length * width);
  return new Map(
    heard.flatMap((one) =>
      Array.from({ length: width }, (_, local) => [one * width + local, share] as const),
    ),
  );
}

/** Bytes between processes for a call on `bytes` per rank; undefined for sums within hosts. */
export function neighborCrossing(
  plan: NeighborPlan,
  operation: NeighborOperation,
  bytes: number,
): Crossing | undefined {
  if (operation === 'all_reduce') return collectiveCrossing('all_reduce', bytes, plan.size);
  if (operation !== 'neighbor_all_reduce') return undefined;
  const mean = (counts: readonly number[]) =>
    counts.reduce((sum, one) => sum + one, 0) / counts.length;
  const parts = ranksOf(plan.graph).map((rank) => {
    const steps = exchangesOf(plan.graph, rank, plan.dynamic);
    return {
      put: bytes * mean(steps.map(({ destinations }) => Math.min(destinations.length, 1))),
      get: bytes * mean(steps.map(({ sources }) => sources.length)),
    };
  });
  return { parts, formula: 'a rank writes S for others + reads S of each source' };
}

export interface SentBytes {
  /** Of the rank that sends most, averaged over the steps. */
  readonly perRank: number;
  /** To other hosts, of the host that sends most. */
  readonly perHost: number;
}

/**
 * The bytes that a call on `bytes` per rank must send, counting each message once; all_reduce as a ring over ranks and
 * hosts.
 */
export function sentBytes(
  plan: NeighborPlan,
  operation: NeighborOperation,
  bytes: number,
): SentBytes {
  const { size, perNode } = plan;
  const nodes = size / perNode;
  const ring = (n: number) => ((2 * (n - 1)) / n) * bytes;
  if (operation === 'all_reduce') return { perRank: ring(size), perHost: ring(nodes) };
  if (operation === 'neighbor_all_reduce') {
    const lists = ranksOf(plan.graph).map((rank) => exchangesOf(plan.graph, rank, plan.dynamic));
    const mean = (rank: number, counts: (to: number) => boolean) =>
      lists[rank]!.reduce((sum, { destinations }) => sum + destinations.filter(counts).length, 0) /
      lists[rank]!.length;
    const hostOf = (rank: number) => Math.floor(rank / perNode);
    const hosts = Array.from({ length: nodes }, (_, host) =>
      lists.reduce(
        (sum, _list, rank) =>
          hostOf(rank) === host ? sum + mean(rank, (to) => hostOf(to) !== host) : sum,
        0,
      ),
    );
    return {
      perRank: bytes * Math.max(...lists.map((_list, rank) => mean(rank, () => true))),
      perHost: bytes * Math.max(...hosts),
    };
  }
  const outside = Math.max(
    ...ranksOf(plan.nodeGraph).map((node) => {
      const steps = exchangesOf(plan.nodeGraph, node, plan.dynamic);
      return steps.reduce((sum, { destinations }) => sum + destinations.length, 0) / steps.length;
    }),
  );
  // A node's first rank takes part in its sum, exchanges it, and distributes the result.
  const inside = perNode > 1 ? ring(perNode) + bytes : 0;
  return { perRank: inside + outside * bytes, perHost: outside * bytes };
}
