// An immutable weighted directed graph over ranks: who sends to whom, and how much it counts.
import { argumentError } from '../errors.js';
import { anIterable, anObject, arrayOf, finiteNumber, integer } from '../checks.js';
import { secondModulus } from './spectrum.js';

/** One edge: `from` sends to `to`, where it counts `weight` times. */
export interface Edge {
  /** The rank that sends. */
  readonly from: number;
  /** The rank that receives. */
  readonly to: number;
  /** That the receiver gives to what arrives. */
  readonly weight: number;
}

/** What a rank receives, or sends: its own weight and one for each neighbour. */
export interface NeighborWeights {
  /** The weight of the edge from the rank to itself; 0 where there is none. */
  readonly selfWeight: number;
  /** By neighbour, without the rank itself; in ascending order. */
  readonly weights: Readonly<Record<number, number>>;
}

/** The most ranks a graph may have: as a communicator. */
const maxSize = 2 ** 16;
/** The most edges: all pairs of 2048 ranks, which take some 1.3 GiB while they are made. */
const maxEdges = 2 ** 22;
/** The most ranks of which all pairs are laid out: 128 MiB. */
const maxMatrix = 2 ** 12;
/** The most ranks whose eigenvalues are computed, in a time that grows with their cube. */
const maxSpectrum = 2 ** 11;
/** How far a sum of weights may be from 1: rounding of as many terms as a row has, not a mistake. */
const tolerance = 1e-12;

/**
 * A weighted directed graph over the ranks 0 to `size - 1`. `weight(i, j)` is the weight of the edge from i to j: i
 * sends to j. An edge has a weight other than 0; a rank's edge to itself is the weight of its own data.
 *
 * Immutable. Made by {@link Topology.fromMatrix}, {@link Topology.fromEdges} or a generator such as
 * {@link exponentialGraph}.
 */
export class Topology {
  /** How many ranks there are. */
  readonly size: number;
  /** Of each rank, weights by destination and by source, both ascending. */
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
   * The graph of a square matrix: `rows[i][j]` is the weight of the edge from i to j, 0 where there is none.
   *
   * @throws TypeError where it is not square or a weight is not finite; RangeError as {@link fromEdges}.
   */
  static fromMatrix(rows: readonly (readonly number[])[]): Topology {
    const list = arrayOf(rows, 'rows', 'an array of rows');
    const size = integer(list.length, 'the number of rows', 1, maxSize);
    return new Topology(size, edgesOfMatrix(list, size));
  }

  /**
   * The graph with these edges.
   *
   * @throws TypeError or RangeError for a rank that does not exist, an edge given twice, a weight that is 0 or not finite; for
   *   more than 65,536 ranks or 4,194,304 edges.
   */
  static fromEdges(size: number, edges: Iterable<Edge>): Topology {
    return new Topology(size, edges);
  }

  /** The weight of the edge between two ranks; 0 where there is none. */
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
   * @throws RangeError for more than 4096 ranks, whose pairs are too many to lay out.
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

  /** What the data of `rank` and of its sources counts at `rank`. */
  receiveWeights(rank: number): NeighborWeights {
    return without(this.#from[this.#rank(rank)]!, rank);
  }

  /** What the data of `rank` counts there and at its destinations. */
  sendWeights(rank: number): NeighborWeights {
    return without(this.#to[this.#rank(rank)]!, rank);
  }

  /** Whether the other has the same ranks, edges and weights. Graphs that are only isomorphic are not equivalent. */
  isEquivalent(other: Topology | null | undefined): boolean {
    if (!(other instanceof Topology) || other.size !== this.size) return false;
    return this.#to.every((mine, rank) => {
      const theirs = other.#to[rank]!;
      return (
        mine.size === theirs.size && [...mine].every(([to, weight]) => theirs.get(to) === weight)
      );
    });
  }

  /** Whether all ranks have the same number of edges, in and out together. */
  isRegular(): boolean {
    const degree = (rank: number) => this.#to[rank]!.size + this.#from[rank]!.size;
    return this.#to.every((_, rank) => degree(rank) === degree(0));
  }

  /** Whether what each rank sends, its own share included, sums to one: sums are kept (push-sum needs this). */
  isSendStochastic(): boolean {
    return this.#to.every(sumsToOne);
  }

  /** Whether what each rank receives, its own share included, sums to one: equal values stay as they are. */
  isReceiveStochastic(): boolean {
    return this.#from.every(sumsToOne);
  }

  /**
   * The second largest modulus of the eigenvalues of {@link matrix}; 0 for one rank. Where weights are doubly
   * stochastic, the distance to the average shrinks by this factor in each step.
   *
   * @throws RangeError for more than 2048 ranks.
   */
  secondEigenvalue(): number {
    this.#atMost(maxSpectrum, 'secondEigenvalue()');
    return (this.#second ??= secondModulus(this.matrix()));
  }

  /** `1 - secondEigenvalue()`: 0 where averages never meet, 1 where one step is enough. */
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
