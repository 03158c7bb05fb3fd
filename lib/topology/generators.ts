// The graphs of decentralised averaging, with BlueFog's names and weights.
import { argumentError } from '../errors.js';
import { arrayOf, integer, oneOf } from '../checks.js';
import { Topology } from './topology.js';
import type { Edge } from './topology.js';

/** The direction of a ring: both, only to the rank below, only to the rank above. */
export type RingStyle = 'both' | 'left' | 'right';

const maxSize = 2 ** 16;

const checkedSize = (size: number) => integer(size, 'size', 1, maxSize);

/** For graphs with edges between all ranks. */
const maxConnected = 2 ** 11;

/** Each rank i sends to (i + k) mod size for each distance k, with equal weights. */
function circulant(size: number, distances: readonly number[]): Topology {
  const weight = 1 / distances.length;
  const edges: Edge[] = [];
  for (let from = 0; from < size; ++from) {
    for (const k of distances) edges.push({ from, to: (from + k) % size, weight });
  }
  return Topology.fromEdges(size, edges);
}

/** Powers of the base below a limit, including 1; by multiplication, because logarithms could miss exact powers. */
function powersBelow(limit: number, base: number): number[] {
  const powers: number[] = [];
  for (let power = 1; power < limit; power *= base) powers.push(power);
  return powers;
}

/**
 * Each rank sends to ranks at distances of powers of `base` (including 1), with equal weights. Doubly stochastic.
 *
 * @param base - 2 or above.
 */
export function exponentialGraph(size: number, base = 2): Topology {
  integer(base, 'base', 2, maxSize);
  return circulant(checkedSize(size), [0, ...powersBelow(size, base)]);
}

/** {@link exponentialGraph} of base 2. */
export function exponentialTwoGraph(size: number): Topology {
  return exponentialGraph(size, 2);
}

/**
 * Each rank exchanges with ranks at distances of powers of `base` (including 1) in both directions, with equal weights.
 * Symmetric and doubly stochastic.
 *
 * @param base - 2 or above.
 */
export function symmetricExponentialGraph(size: number, base = 4): Topology {
  integer(base, 'base', 2, maxSize);
  const near = powersBelow(Math.floor(checkedSize(size) / 2) + 1, base);
  return circulant(size, [...new Set([0, ...near, ...near.map((k) => size - k)])]);
}

/**
 * A grid without wrapping: each rank exchanges with its adjacent ranks. Hastings weights, `1 / max(N_i, N_j)` where N
 * counts a rank's neighbours and itself; symmetric and doubly stochastic.
 *
 * @param shape - rows and columns; when absent the rows are the largest divisor of size up to its root.
 */
export function meshGrid2DGraph(size: number, shape?: readonly [number, number]): Topology {
  checkedSize(size);
  let rows = Math.floor(Math.sqrt(size));
  while (size % rows !== 0) --rows;
  let columns = size / rows;
  if (shape !== undefined) {
    arrayOf(shape, 'shape', 'an array of rows and columns');
    rows = integer(shape[0], 'shape[0]', 1, size);
    columns = integer(shape[1], 'shape[1]', 1, size);
    if (rows * columns !== size) {
      const expected = `two integers whose product is ${size}`;
      throw argumentError('ERR_INVALID_ARG_VALUE', 'shape', expected, { text: shape.join(', ') });
    }
  }
  const neighbors = Array.from({ length: size }, (_, rank) => {
    const column = rank % columns;
    const around = [
      ...(rank >= columns ? [rank - columns] : []),
      ...(column > 0 ? [rank - 1] : []),
      ...(column + 1 < columns ? [rank + 1] : []),
      ...(rank + columns < size ? [rank + columns] : []),
    ];
    return around;
  });
  const counted = neighbors.map((around) => around.length + 1);
  const edges: Edge[] = [];
  neighbors.forEach((around, from) => {
    let own = 1;
    for (const to of around) {
      const weight = 1 / Math.max(counted[from]!, counted[to]!);
      own -= weight;
      edges.push({ from, to, weight });
    }
    // If the neighbours take their full share, the rest is 0 except for rounding.
    if (own > 1e-12) edges.push({ from, to: from, weight: own });
  });
  return Topology.fromEdges(size, edges);
}

/** All ranks exchange with the center with weights `1 / size` and keep the rest. Symmetric and doubly stochastic. */
export function starGraph(size: number, center = 0): Topology {
  integer(center, 'center', 0, checkedSize(size) - 1);
  const weight = 1 / size;
  const edges: Edge[] = [{ from: center, to: center, weight }];
  for (let leaf = 0; leaf < size; ++leaf) {
    if (leaf === center) continue;
    edges.push({ from: center, to: leaf, weight }, { from: leaf, to: center, weight });
    edges.push({ from: leaf, to: leaf, weight: 1 - weight });
  }
  return Topology.fromEdges(size, edges);
}

/** Each rank sends to its neighbour on one or both sides, with equal weights. Doubly stochastic. */
export function ringGraph(size: number, style: RingStyle = 'both'): Topology {
  checkedSize(size);
  const steps: Record<RingStyle, readonly number[]> = {
    both: [1, size - 1],
    left: [size - 1],
    right: [1],
  };
  oneOf(style, 'style', Object.keys(steps));
  return circulant(size, [...new Set([0, ...steps[style]].map((k) => k % size))]);
}

/** All ranks send to all with weights `1 / size`: one step gives the average. At most 2048 ranks. */
export function fullyConnectedGraph(size: number): Topology {
  return circulant(
    integer(size, 'size', 1, maxConnected),
    Array.from({ length: size }, (_, k) => k),
  );
}
