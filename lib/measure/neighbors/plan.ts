// What averaging with neighbours does in each step of a measurement: who hears of whom, and how many bytes that sends.
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

/** What stands in one table: everybody's sum is what the others are measured against. */
export const neighborOperations = [
  'all_reduce',
  'neighbor_all_reduce',
  'hierarchical_neighbor_all_reduce',
] as const;
export type NeighborOperation = (typeof neighborOperations)[number];

/** Those that can be asked for. */
export const neighborCollectives = [
  'neighbor_all_reduce',
  'hierarchical_neighbor_all_reduce',
] as const satisfies readonly NeighborOperation[];
/** One of {@link neighborCollectives}. */
export type NeighborCollective = (typeof neighborCollectives)[number];

/** Graphs, as the command line names them. */
export const graphNames = [
  'exp2',
  'symmetric_exp',
  'ring',
  'one_way_ring',
  'mesh',
  'star',
  'full',
] as const;
/** Who is a neighbour of whom, as the command line names it. */
export type GraphName = (typeof graphNames)[number];

/** The graphs by their names. */
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
  /** Ranks of a node; all, where there is one node. */
  readonly perNode: number;
  readonly graphName: GraphName;
  readonly graph: Topology;
  /** Of nodes. */
  readonly nodeGraph: Topology;
  /** One neighbour a step, each step another. */
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

/** The exchanges of a rank of a graph, step after step; of a graph that does not change there is one. */
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
  // As many steps as the rank with the most destinations needs to meet them all.
  const steps = Math.max(1, ...ranksOf(graph).map((one) => graph.destinations(one).length));
  const schedule = onePeerSchedule(graph, rank);
  return Array.from({ length: steps }, () => schedule.next().value);
}

const ranksOf = (graph: Topology) => Array.from({ length: graph.size }, (_, rank) => rank);

/** What a rank's result is made of: the factor of each rank's data. */
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

/** What one call on `bytes` of each rank passes between processes; undefined of sums inside hosts first. */
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
  /** By the rank that sends most, on average over the steps. */
  readonly perRank: number;
  /** To other hosts, by the host that sends most. */
  readonly perHost: number;
}

/**
 * What one call on `bytes` of each rank must send, each message counted once: all_reduce as a ring does, over ranks and
 * over hosts.
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
  // The first rank of a node takes part in its sum, speaks for it, and passes the result on.
  const inside = perNode > 1 ? ring(perNode) + bytes : 0;
  return { perRank: inside + outside * bytes, perHost: outside * bytes };
}
