// Types that distinguish ranks from nodes, which are both small integers. Plain numbers are accepted everywhere: only a
// value known to be of the other kind is refused.

declare const kind: unique symbol;

/** A rank of a communicator, or a vertex of a graph over ranks: 0 to `size - 1`. Plain numbers are accepted. */
export type Rank = number & { readonly [kind]?: 'rank' };

/** A node: a fixed number of consecutive ranks, numbered from 0. Plain numbers are accepted, but not a {@link Rank}. */
export type Node = number & { readonly [kind]?: 'node' };

/** Weights by rank: `{ 1: 0.5, 3: 0.5 }`. */
export interface RankWeights {
  readonly [rank: number]: number;
  readonly [kind]?: 'rank';
  /** Excludes lists, whose numbers are indices. */
  readonly length?: never;
}

/** Weights by node; weights by rank are not accepted. */
export interface NodeWeights {
  readonly [node: number]: number;
  readonly [kind]?: 'node';
  /** Excludes lists, whose numbers are indices. */
  readonly length?: never;
}

/** The weights for ranks or for nodes. */
export type WeightsOf<V extends Rank | Node> = [V] extends [Rank] ? RankWeights : NodeWeights;
