/**
 * Graphs over ranks, and schedules that change the graph in every step: `gradlink/topology`.
 *
 * @packageDocumentation
 */
import { publish } from '../caller.js';
import * as entry from './index.js';

export { toDot, toMermaid } from './drawing.js';
export type { DrawingOptions } from './drawing.js';
export {
  exponentialGraph,
  exponentialTwoGraph,
  fullyConnectedGraph,
  meshGrid2DGraph,
  ringGraph,
  starGraph,
  symmetricExponentialGraph,
} from './generators.js';
export type { RingStyle } from './generators.js';
export { averagingGraph, invertNeighbors } from './inference.js';
export {
  exponentialMachineSchedule,
  innerOuterExponentialSchedule,
  innerOuterRingSchedule,
  onePeerSchedule,
  uniformWeights,
} from './schedules.js';
export type { Node, NodeWeights, Rank, RankWeights, WeightsOf } from './rank.js';
export type { Exchange, NodePlace } from './schedules.js';
export { Topology } from './topology.js';
export type { Edge, NeighborWeights } from './topology.js';

publish(entry);
