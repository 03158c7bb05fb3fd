// An immutable weighted directed graph over ranks.
import { argumentError } from '../errors.js';
import { anIterable, anObject, arrayOf, finiteNumber, integer } from '../checks.js';
import { secondModulus } from './spectrum.js';

/** An edge: `from` sends to `to` with this weight. */
export interface Edge {
  /** The rank that sends. */
  readonly from: number;
  /** The rank that receives. */
  readonly to: number;
  /** The receiver's weight of the data. */
  readonly weight: number;
}

/** The weights of a rank's received or sent data: its own, and one per neighbour. */
export interface NeighborWeights {
  /** The weight of the rank's edge to itself; 0 without one. */
  readonly selfWeight: number;
  /** By neighbour in ascending order, without the rank itself. */
  readonly weights: Readonly<Record<number, number>>;
}

/** The maximum number of ranks, as for a communicator. */
const maxSize = 2 ** 16;
/** The maximum number of edges: all pairs of 2048 ranks, which temporarily take about 1.3 GiB. */
const maxEdges = 2 ** 22;
/** The maximum number of ranks for a full matrix: 128 MiB. */
const maxMatrix = 2 ** 12;
/** The maximum number of ranks for eigenvalues, which take cubic time. */
const maxSpectrum = 2 ** 11;
/** Rounding tolerance of a sum of weights. */
const tolerance = 1e-12;

/**
 * A weighted directed graph over the ranks 0 to `size - 1`. `weight(i, j)` is the weight of the edge from i to j: i
 * sends to j. Edges have nonzero weights; a rank's edge to itself is the weight of its own data.
 *
 * Immutable. Create it with {@link Topology.fromMatrix}, {@link Topology.fromEdges} or a generator such as
 * {@link exponentialGraph}.
 */
export class Topology {
  /** The number of ranks. */
  readonly size: number;
  /** For each rank, weights by destination and by source, both ascending. */
  readonly #to: readonly ReadonlyMap<number, number>[];
  readonly #from: readonly ReadonlyMap<number, number>[];
  #second: number | undefined;

  private constructor(size: number, edges: Iterable<Edge>) {
    integer(size, 'size', 1, maxSize);
    const to = Array.from({ length: size }, () => new Map<number, number>());
    const from = Array.from({ length: size }, () => new Map<number, number>());
    const ascending = [...checkedEdges(size, edges)].sort((a, b) => a.from - b.from || a.to - b.to);
    for (const edge of ascending) {
      if (to[edge.from]!.has(edge.to)) {
        throw argumentError('ERR_INVALID_ARG_VALUE', 'edges', 'each edge once', {
          text: `${edge.from} to ${edge.to} twice`,
        });
      }
      to[edge.from]!.set(edge.to, edge.weight);
      from[edge.to]!.set(edge.from, edge.weight);
    }
    this.size = size;
    this.#to = to;
    this.#from = from;
  }

  /**
   * The graph of a square matrix: `rows[i][j]` is the weight of the edge from i to j, 0 without an edge.
   *
   * @throws TypeError if it is not square or a weight is not finite; RangeError as {@link fromEdges}.
   */
  static fromMatrix(rows: readonly (readonly number[])[]): Topology {
    const list = arrayOf(rows, 'rows', 'an array of rows');
    const size = integer(list.length, 'the number of rows', 1, maxSize);
    return new Topology(size, edgesOfMatrix(list, size));
  }

  /**
   * The graph with these edges.
   *
   * @throws TypeError or RangeError for a rank that does not exist, a repeated edge, a weight that is 0 or not finite,
   *   more than 65,536 ranks, or more than 4,194,304 edges.
   */
  static fromEdges(size: number, edges: Iterable<Edge>): Topology {
    return new Topology(size, edges);
  }

  /** The weight of the edge between two ranks; 0 without one. */
  weight(from: number, to: number): number {
    this.#rank(to, 'to');
    return this.#to[this.#rank(from, 'from')]!.get(to) ?? 0;
  }

  /** All edges, ascending by `from`, then `to`. */
  *edges(): IterableIterator<Edge> {
    for (let from = 0; from < this.size; ++from) {
      for (const [to, weight] of this.#to[from]!) yield { from, to, weight };
    }
  }

  /**
   * The weights as rows: `matrix()[i][j]` is `weight(i, j)`.
   *
   * @throws RangeError for more than 4096 ranks.
   */
  matrix(): number[][] {
    this.#atMost(maxMatrix, 'matrix()');
    const rows = this.#to.map(() => new Array<number>(this.size).fill(0));
    for (const { from, to, weight } of this.edges()) rows[from]![to] = weight;
    return rows;
  }

  /** Ranks that send to this one, ascending, without itself. */
  sources(rank: number): number[] {
    return [...this.#from[this.#rank(rank)]!.keys()].filter((other) => other !== rank);
  }

  /** Ranks that this one sends to, ascending, without itself. */
  destinations(rank: number): number[] {
    return [...this.#to[this.#rank(rank)]!.keys()].filter((other) => other !== rank);
  }

  /** The weights at `rank` of its own data and its sources'. */
  receiveWeights(rank: number): NeighborWeights {
    return without(this.#from[this.#rank(rank)]!, rank);
  }

  /** The weights of the data of `rank` there and at its destinations. */
  sendWeights(rank: number): NeighborWeights {
    return without(this.#to[this.#rank(rank)]!, rank);
  }

  /** Whether the other graph has the same ranks, edges and weights. Isomorphic graphs need not be equivalent. */
  isEquivalent(other: Topology | null | undefined): boolean {
    if (!(other instanceof Topology) || other.size !== this.size) return false;
    return this.#to.every((mine, rank) => {
      const theirs = other.#to[rank]!;
      return (
        mine.size === theirs.size && [...mine].every(([to, weight]) => theirs.get(to) === weight)
      );
    });
  }

  /** Whether all ranks have the same total number of edges, in and out. */
  isRegular(): boolean {
    const degree = (rank: number) => this.#to[rank]!.size + this.#from[rank]!.size;
    return this.#to.every((_, rank) => degree(rank) === degree(0));
  }

  /**
   * Whether the weights of each rank's sent data, including its own share, sum to one, so that sums are preserved
   * (required for push-sum).
   */
  isSendStochastic(): boolean {
    return this.#to.every(sumsToOne);
  }

  /**
   * Whether the weights of each rank's received data, including its own, sum to one, so that equal values stay equal.
   */
  isReceiveStochastic(): boolean {
    return this.#from.every(sumsToOne);
  }

  /**
   * The second largest modulus of the eigenvalues of {@link matrix}; 0 for one rank. With doubly stochastic weights,
   * each step shrinks the distance to the average by this factor.
   *
   * @throws RangeError for more than 2048 ranks.
   */
  secondEigenvalue(): number {
    this.#atMost(maxSpectrum, 'secondEigenvalue()');
    return (this.#second ??= secondModulus(this.matrix()));
  }

  /** `1 - secondEigenvalue()`: 0 if averages never converge, 1 if one step is enough. */
  spectralGap(): number {
    return 1 - this.secondEigenvalue();
  }

  #atMost(ranks: number, what: string): void {
    integer(this.size, `the size of a graph with ${what}`, 1, ranks);
  }

  #rank(rank: number, name = 'rank'): number {
    return integer(rank, name, 0, this.size - 1);
  }
}

function without(weights: ReadonlyMap<number, number>, rank: number): NeighborWeights {
  const others: Record<number, number> = {};
  for (const [other, weight] of weights) if (other !== rank) others[other] = weight;
  return { selfWeight: weights.get(rank) ?? 0, weights: others };
}

function sumsToOne(weights: ReadonlyMap<number, number>): boolean {
  let sum = 0;
  for (const weight of weights.values()) sum += weight;
  return Math.abs(sum - 1) <= tolerance;
}

function* edgesOfMatrix(rows: readonly unknown[], size: number): Generator<Edge> {
  for (let from = 0; from < size; ++from) {
    const row = rows[from];
    if (!Array.isArray(row) || row.length !== size) {
      throw argumentError('ERR_INVALID_ARG_VALUE', `rows[${from}]`, `an array of ${size}`, row);
    }
    for (let to = 0; to < size; ++to) {
      const weight: unknown = row[to];
      if (weight === 0) continue;
      yield { from, to, weight: finiteNumber(weight, `rows[${from}][${to}]`) };
    }
  }
}

function* checkedEdges(size: number, given: Iterable<Edge>): Generator<Edge> {
  anIterable(given, 'edges');
  let i = 0;
  for (const edge of given as Iterable<unknown>) {
    const name = `edges[${i}]`;
    if (i >= maxEdges) {
      throw argumentError('ERR_OUT_OF_RANGE', 'edges', `at most ${maxEdges}`, { text: 'more' });
    }
    anObject(edge, name);
    const { from, to, weight } = edge as Edge;
    integer(from, `${name}.from`, 0, size - 1);
    integer(to, `${name}.to`, 0, size - 1);
    if (finiteNumber(weight, `${name}.weight`) === 0) {
      const expected = 'a number other than 0 (leave the edge out)';
      throw argumentError('ERR_INVALID_ARG_VALUE', `${name}.weight`, expected, weight);
    }
    yield { from, to, weight };
    i += 1;
  }
}
