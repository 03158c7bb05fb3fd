import { describe, expect, it } from 'vitest';

import {
  Topology,
  averagingGraph,
  exponentialGraph,
  exponentialTwoGraph,
  fullyConnectedGraph,
  invertNeighbors,
  meshGrid2DGraph,
  ringGraph,
  starGraph,
  symmetricExponentialGraph,
  toDot,
  toMermaid,
} from '../../lib/topology/index.js';
import { eigenvalues } from '../../lib/topology/spectrum.js';
import { errorWith } from '../support/errors.js';

const sizes = Array.from({ length: 64 }, (_, i) => i + 1);

const generators: Record<string, (n: number) => Topology> = {
  exponentialTwoGraph,
  'exponentialGraph, base 3': (n) => exponentialGraph(n, 3),
  'exponentialGraph, base 10': (n) => exponentialGraph(n, 10),
  symmetricExponentialGraph: (n) => symmetricExponentialGraph(n),
  'symmetricExponentialGraph, base 2': (n) => symmetricExponentialGraph(n, 2),
  meshGrid2DGraph: (n) => meshGrid2DGraph(n),
  'meshGrid2DGraph, one row': (n) => meshGrid2DGraph(n, [1, n]),
  starGraph: (n) => starGraph(n),
  'starGraph around the last': (n) => starGraph(n, n - 1),
  ringGraph: (n) => ringGraph(n),
  'ringGraph to the left': (n) => ringGraph(n, 'left'),
  'ringGraph to the right': (n) => ringGraph(n, 'right'),
  fullyConnectedGraph,
};
const symmetric = /symmetric|mesh|star|fully|ringGraph$/;

describe.each(Object.entries(generators))('%s', (_, make) => {
  it('is doubly stochastic for 1 to 64 ranks', () => {
    for (const n of sizes) {
      const graph = make(n);
      expect(graph.size).toBe(n);
      expect(graph.isSendStochastic(), `rows of ${n}`).toBe(true);
      expect(graph.isReceiveStochastic(), `columns of ${n}`).toBe(true);
    }
  });

  it('tells each rank the same from both ends', () => {
    for (const n of sizes) {
      const graph = make(n);
      const rows = graph.matrix();
      for (let rank = 0; rank < n; ++rank) {
        const received = graph.receiveWeights(rank);
        const sent = graph.sendWeights(rank);
        const others = (weights: readonly number[]) =>
          weights.flatMap((weight, other) =>
            weight === 0 || other === rank ? [] : [[String(other), weight] as const],
          );
        const column = rows.map((row) => row[rank]!);
        const told = [
          [received.selfWeight, sent.selfWeight],
          Object.entries(received.weights),
          Object.entries(sent.weights),
          graph.sources(rank).map(String),
          graph.destinations(rank).map(String),
        ];
        const wanted = [
          [column[rank], column[rank]],
          others(column),
          others(rows[rank]!),
          others(column).map(([other]) => other),
          others(rows[rank]!).map(([other]) => other),
        ];
        // As text first: there are very many.
        if (JSON.stringify(told) !== JSON.stringify(wanted)) expect(told).toEqual(wanted);
      }
    }
  });

  it('comes back from its matrix and its edges', () => {
    for (const n of [1, 2, 3, 7, 12]) {
      const graph = make(n);
      expect(Topology.fromMatrix(graph.matrix()).isEquivalent(graph)).toBe(true);
      expect(Topology.fromEdges(n, graph.edges()).isEquivalent(graph)).toBe(true);
    }
  });
});

describe('generators', () => {
  it.each(Object.entries(generators).filter(([name]) => symmetric.test(name)))(
    'are symmetric: %s',
    (_, make) => {
      for (const n of sizes) {
        const graph = make(n);
        const other = [...graph.edges()].filter((e) => graph.weight(e.to, e.from) !== e.weight);
        expect(other).toEqual([]);
      }
    },
  );

  it('take every exact power of the base', () => {
    // A floating logarithm misses 243 = 3^5 and 1000 = 10^3.
    expect(exponentialGraph(244, 3).destinations(0)).toEqual([1, 3, 9, 27, 81, 243]);
    expect(exponentialGraph(1001, 10).destinations(0)).toEqual([1, 10, 100, 1000]);
    expect(symmetricExponentialGraph(486, 3).destinations(0)).toEqual(
      [1, 3, 9, 27, 81, 243, 405, 459, 477, 483, 485].sort((a, b) => a - b),
    );
    for (const n of sizes) {
      const powers = Array.from({ length: 7 }, (_, k) => 2 ** k).filter((power) => power < n);
      expect(exponentialTwoGraph(n).destinations(0)).toEqual(powers);
    }
  });

  it('give the weights they say', () => {
    expect(starGraph(4, 1).matrix()).toEqual([
      [0.75, 0.25, 0, 0],
      [0.25, 0.25, 0.25, 0.25],
      [0, 0.25, 0.75, 0],
      [0, 0.25, 0, 0.75],
    ]);
    expect(ringGraph(3, 'left').matrix()).toEqual([
      [0.5, 0, 0.5],
      [0.5, 0.5, 0],
      [0, 0.5, 0.5],
    ]);
    expect(ringGraph(3, 'right').weight(0, 1)).toBe(0.5);
    for (const style of ['both', 'left', 'right'] as const) {
      expect(ringGraph(1, style).matrix()).toEqual([[1]]);
      expect(ringGraph(2, style).matrix()).toEqual([
        [0.5, 0.5],
        [0.5, 0.5],
      ]);
    }
    // 2 x 3: the middle column has 4 with itself, the corners 3.
    const grid = meshGrid2DGraph(6);
    expect(grid.destinations(1)).toEqual([0, 2, 4]);
    expect(grid.weight(0, 1)).toBe(1 / 4);
    expect(grid.weight(0, 3)).toBe(1 / 3);
    expect(meshGrid2DGraph(6, [3, 2]).destinations(0)).toEqual([1, 2]);
  });

  it('refuse what is no graph', () => {
    expect(() => exponentialGraph(0)).toThrow(RangeError);
    expect(() => exponentialGraph(4, 1)).toThrow(RangeError);
    expect(() => starGraph(3, 3)).toThrow(RangeError);
    expect(() => meshGrid2DGraph(6, [2, 2])).toThrow(/product is 6/);
    expect(() => ringGraph(3, 'up' as 'both')).toThrow(/both, .*style, got 'up'/);
  });
});

describe('Topology', () => {
  it('compares weights, not shapes', () => {
    const ring = ringGraph(4);
    expect(ring.isEquivalent(ringGraph(4))).toBe(true);
    expect(ring.isEquivalent(ringGraph(5))).toBe(false);
    expect(ring.isEquivalent(ringGraph(4, 'left'))).toBe(false);
    expect(ringGraph(4, 'left').isEquivalent(ringGraph(4, 'right'))).toBe(false);
    expect(ring.isEquivalent(null)).toBe(false);
    const heavier = [...ring.edges()].map((e) => ({ ...e, weight: e.weight * 2 }));
    expect(ring.isEquivalent(Topology.fromEdges(4, heavier))).toBe(false);
  });

  it('tells regular graphs', () => {
    for (const n of sizes) {
      expect(exponentialTwoGraph(n).isRegular()).toBe(true);
      expect(starGraph(n).isRegular()).toBe(n <= 2);
    }
    expect(meshGrid2DGraph(4).isRegular()).toBe(true);
    expect(meshGrid2DGraph(6).isRegular()).toBe(false);
  });

  it('does not change with what it was made from', () => {
    const rows = [
      [0.5, 0.5],
      [0.5, 0.5],
    ];
    const graph = Topology.fromMatrix(rows);
    rows[0]![1] = 9;
    graph.matrix()[0]![1] = 9;
    expect(graph.weight(0, 1)).toBe(0.5);
  });

  it('refuses bad edges and ranks', () => {
    const edge = { from: 0, to: 1, weight: 1 };
    expect(() => Topology.fromEdges(2, [edge, edge])).toThrow(/0 to 1 twice/);
    expect(() => Topology.fromEdges(2, [{ ...edge, to: 2 }])).toThrow(RangeError);
    expect(() => Topology.fromEdges(2, [{ ...edge, weight: 0 }])).toThrow(/other than 0/);
    expect(() => Topology.fromEdges(2, [{ ...edge, weight: NaN }])).toThrow(/finite/);
    expect(() => Topology.fromMatrix([[1, 0]])).toThrow(
      errorWith('ERR_INVALID_ARG_VALUE', /array of 1/),
    );
    expect(() => ringGraph(3).sources(3)).toThrow(RangeError);
  });
});

describe('the second eigenvalue', () => {
  it('is what the theory says', () => {
    for (const n of [2, 4, 8, 16, 32, 64]) {
      expect(exponentialTwoGraph(n).secondEigenvalue()).toBeCloseTo(1 - 2 / (1 + Math.log2(n)), 10);
    }
    for (const n of sizes.filter((one) => one > 2)) {
      const ring = (1 + 2 * Math.cos((2 * Math.PI) / n)) / 3;
      const opposite = Math.abs(1 + 2 * Math.cos((2 * Math.PI * Math.floor(n / 2)) / n)) / 3;
      expect(ringGraph(n).secondEigenvalue()).toBeCloseTo(Math.max(ring, opposite), 10);
      // Complex eigenvalues: (1 + w) / 2 for the roots of unity w.
      const oneWay = Math.abs(Math.cos(Math.PI / n));
      expect(ringGraph(n, 'right').secondEigenvalue()).toBeCloseTo(oneWay, 10);
      expect(starGraph(n).secondEigenvalue()).toBeCloseTo(1 - 1 / n, 10);
    }
    for (const n of sizes) expect(fullyConnectedGraph(n).spectralGap()).toBeCloseTo(1, 10);
  });

  it('is 1 for a graph in two parts, and 0 for one rank', () => {
    const apart = Topology.fromMatrix([
      [1, 0],
      [0, 1],
    ]);
    expect(apart.secondEigenvalue()).toBeCloseTo(1, 12);
    expect(ringGraph(1).secondEigenvalue()).toBe(0);
  });

  it('has the trace and the determinant of matrices that are not symmetric', () => {
    let seed = 1;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
    for (const n of [2, 3, 5, 9, 20]) {
      const matrix = Array.from({ length: n }, () => Array.from({ length: n }, random));
      const found = eigenvalues(matrix);
      expect(found).toHaveLength(n);
      const trace = matrix.reduce((sum, row, i) => sum + row[i]!, 0);
      const squares = matrix.reduce(
        (sum, row, i) => sum + row.reduce((inner, a, j) => inner + a * matrix[j]![i]!, 0),
        0,
      );
      const sum = (of: (value: { re: number; im: number }) => number) =>
        found.reduce((total, value) => total + of(value), 0);
      expect(sum(({ re }) => re)).toBeCloseTo(trace, 9);
      expect(sum(({ im }) => im)).toBeCloseTo(0, 9);
      expect(sum(({ re, im }) => re * re - im * im)).toBeCloseTo(squares, 9);
    }
  });
});

describe('inference', () => {
  it('turns destinations into sources and back', () => {
    const destinations = [[1, 2], [2], [], [0]];
    const sources = [[3], [0], [0, 1], []];
    expect(invertNeighbors(destinations)).toEqual(sources);
    expect(invertNeighbors(sources)).toEqual(destinations);
    for (const n of sizes) {
      const graph = exponentialTwoGraph(n);
      const to = Array.from({ length: n }, (_, rank) => graph.destinations(rank));
      expect(invertNeighbors(to)).toEqual(to.map((_, rank) => graph.sources(rank)));
    }
    expect(() => invertNeighbors([[0]])).toThrow(errorWith('ERR_INVALID_ARG_VALUE', /rank itself/));
    expect(() => invertNeighbors([[1, 1], []])).toThrow(/1 twice/);
    expect(() => invertNeighbors([[2], []])).toThrow(RangeError);
  });

  it('averages over irregular graphs too', () => {
    const graph = averagingGraph([[1, 2, 3], [2], [], [2]]);
    expect(graph.isReceiveStochastic()).toBe(true);
    expect(graph.receiveWeights(2)).toEqual({
      selfWeight: 0.25,
      weights: { 0: 0.25, 1: 0.25, 3: 0.25 },
    });
  });
});

describe('drawings', () => {
  it('are DOT', () => {
    expect(toDot(ringGraph(3, 'right'))).toBe(
      'digraph topology {\n  0;\n  1;\n  2;\n' +
        '  0 -> 1 [label="0.5"];\n  1 -> 2 [label="0.5"];\n  2 -> 0 [label="0.5"];\n}\n',
    );
    expect(toDot(ringGraph(1), { selfEdges: true, weights: false })).toBe(
      'digraph topology {\n  0;\n  0 -> 0;\n}\n',
    );
  });

  it('are Mermaid', () => {
    expect(toMermaid(fullyConnectedGraph(2))).toBe(
      'flowchart LR\n  r0((0))\n  r1((1))\n  r0 -->|0.5| r1\n  r1 -->|0.5| r0\n',
    );
    expect(toMermaid(ringGraph(3), { weights: false })).toContain('\n  r0 --> r1\n');
    expect(toMermaid(ringGraph(3))).toContain('|0.3333|');
  });
});
