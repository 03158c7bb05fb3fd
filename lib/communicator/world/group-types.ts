// Further arguments of a WorldGroup's calls.
import { argumentError } from '../../errors.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import type { Rank } from '../../topology/rank.js';
import type {
  GossipOptions,
  HierarchicalOptions,
  NeighborGatherOptions,
  NeighborOptions,
  WindowOptions,
} from '../calls/types.js';

/** The weights of one rank of a {@link WorldGroup}: as in {@link NeighborOptions}. */
export type GroupWeights = Pick<NeighborOptions, 'selfWeight' | 'srcWeights' | 'dstWeights'>;

/** Options of {@link WorldGroup.neighborAllReduce}. */
export interface GroupNeighborOptions extends Pick<NeighborOptions, 'checkTopology'> {
  /** The weights of each rank held here, in their order; the topology's when absent. */
  neighbors?: readonly GroupWeights[] | undefined;
}

/** The lists of one rank of a {@link WorldGroup}: as in {@link NeighborGatherOptions}. */
export type GroupLists = Pick<NeighborGatherOptions, 'srcRanks' | 'dstRanks' | 'srcCounts'>;

/** Options of {@link WorldGroup.neighborAllGather}. */
export interface GroupGatherOptions {
  /** The lists of each rank held here, in their order; the topology's when absent. */
  neighbors?: readonly GroupLists[] | undefined;
}

/** The peer of one rank of a {@link WorldGroup}: as in {@link GossipOptions}. */
export type GroupPair = Pick<GossipOptions, 'peer' | 'selfWeight' | 'pairWeight'>;

/** Options of {@link WorldGroup.pairGossip}. */
export interface GroupGossipOptions {
  /** The peer of each rank held here; null: it takes no part. */
  pairs: readonly (GroupPair | null)[];
}

/** Options of {@link WorldGroup.createWindow}. */
export type GroupWindowOptions = Omit<WindowOptions, 'name'>;

/** Options of {@link WorldGroup.hierarchicalNeighborAllReduce}. */
export interface GroupHierarchicalOptions {
  /** The node weights of each rank held here; the topology's when absent. Those of each node's first rank are used. */
  machines?: readonly HierarchicalOptions[] | undefined;
}

/** The two ends of a message of a {@link WorldGroup}. */
export interface MessageEnds {
  /** The rank that sends. */
  from: Rank;
  /** The rank that receives. */
  to: Rank;
}

/** A message of {@link WorldGroup.sendReceive}: its ends, and the buffer of the end that is held here. */
export interface GroupMessage extends MessageEnds {
  /** The buffer to send or to receive into. */
  data: DeviceBuffer;
}

/** The messages of {@link WorldGroup.sendReceive}. */
export interface GroupMessagesOf {
  /** From ranks held here. */
  send?: readonly GroupMessage[] | undefined;
  /** To ranks held here. */
  receive?: readonly GroupMessage[] | undefined;
}

export function eachOf(held: number, values: unknown, name: string): readonly unknown[] {
  if (Array.isArray(values) && values.length === held) return values as readonly unknown[];
  const expected = `an array of ${held}, one for each rank held here`;
  throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, values);
}
