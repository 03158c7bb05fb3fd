// Ranks and nodes are both small integers. These types tell them apart where one is taken for the other, and take plain
// numbers everywhere: only what is known to be one kind is refused where the other belongs.

declare const kind: unique symbol;

/** A rank of a communicator, or a vertex of a graph over ranks: 0 to `size - 1`. Any number will do. */
export type Rank = number & { readonly [kind]?: 'rank' };

/** A node: so many ranks that follow each other, counted from 0. Any number will do, but no {@link Rank}. */
export type Node = number & { readonly [kind]?: 'node' };

/** Weights by rank: `{ 1: 0.5, 3: 0.5 }`. */
export interface RankWeights {
  readonly [rank: number]: number;
  readonly [kind]?: 'rank';
}

/** Weights by node; weights by rank do not pass for them. */
export interface NodeWeights {
  readonly [node: number]: number;
  readonly [kind]?: 'node';
}

/** The weights that belong to ranks or to nodes. */
export type WeightsOf<V extends Rank | Node> = [V] extends [Rank] ? RankWeights : NodeWeights;
