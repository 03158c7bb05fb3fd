import { describe, expect, it } from 'vitest';

import {
  exponentialMachineSchedule,
  exponentialTwoGraph,
  innerOuterExponentialSchedule,
  innerOuterRingSchedule,
  meshGrid2DGraph,
  onePeerSchedule,
  ringGraph,
  starGraph,
  uniformWeights,
} from '../../lib/topology/index.js';
import type { Exchange } from '../../lib/topology/index.js';

const sizes = Array.from({ length: 64 }, (_, i) => i + 1);
const bits = (value: number) => (value < 1 ? 1 : 32 - Math.clz32(value));
const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
const lcm = (...numbers: number[]) => numbers.reduce((a, b) => (a * b) / gcd(a, b), 1);

/** What all say for `steps` steps: who sends to whom must be the same from both ends. */
function agree(
  members: number,
  make: (member: number) => Iterator<Exchange<number>, never>,
  steps: number,
): Exchange<number>[][] {
  const schedules = Array.from({ length: members }, (_, member) => make(member));
  return Array.from({ length: steps }, (_, t) => {
    const step = schedules.map((one) => one.next().value);
    const sent = step.flatMap(({ destinations }, from) => destinations.map((to) => [from, to]));
    const received = step.flatMap(({ sources }, to) => sources.map((from) => [from, to]));
    const text = (pairs: number[][]) => pairs.map((pair) => pair.join('>')).sort();
    // Compared as one text and counted in one number: there are very many.
    if (text(received).join() !== text(sent).join()) {
      expect(text(received), `step ${t} of ${members}`).toEqual(text(sent));
    }
    const wrong = sent.filter(([from, to]) => from === to || !(to! >= 0 && to! < members));
    if (wrong.length > 0) expect(wrong, `step ${t} of ${members}`).toEqual([]);
    return step;
  });
}

/** Divisors of the size: the ranks a node may hold. */
const placements = sizes.flatMap((size) =>
  sizes.filter((perNode) => size % perNode === 0).map((perNode) => ({ size, perNode })),
);

describe('onePeerSchedule', () => {
  it.each([
    ['exponential', exponentialTwoGraph],
    ['ring', (n: number) => ringGraph(n)],
    ['star', (n: number) => starGraph(n)],
    ['grid', (n: number) => meshGrid2DGraph(n)],
  ])('visits all destinations of a graph in turn: %s', (_, make) => {
    for (const size of sizes) {
      const graph = make(size);
      const degrees = Array.from({ length: size }, (__, r) => graph.destinations(r).length);
      const period = Math.max(1, lcm(...new Set(degrees.filter((degree) => degree > 0))));
      const steps = agree(size, (rank) => onePeerSchedule(graph, rank), Math.min(period, 128));
      const one = degrees.map((degree) => Math.min(1, degree)).join();
      const lengths = steps.map((step) =>
        step.map(({ destinations }) => destinations.length).join(),
      );
      expect(new Set(lengths)).toEqual(new Set([one]));
      for (let rank = 0; rank < size && period <= 128; ++rank) {
        const met = new Set(steps.flatMap((step) => step[rank]!.destinations));
        expect([...met].sort((a, b) => a - b)).toEqual(graph.destinations(rank));
      }
    }
  });

  it('goes by distance, clockwise', () => {
    const schedule = onePeerSchedule(exponentialTwoGraph(8), 6);
    const steps = Array.from({ length: 4 }, () => schedule.next().value);
    expect(steps.map(({ destinations }) => destinations[0])).toEqual([7, 0, 2, 7]);
    expect(steps.map(({ sources }) => sources)).toEqual([[5], [4], [2], [5]]);
  });
});

describe('exponentialMachineSchedule', () => {
  it('agrees among nodes, and among the ranks of one', () => {
    for (const { size, perNode } of placements) {
      const nodes = size / perNode;
      const period = bits(nodes - 1);
      const of = (rank: number) =>
        exponentialMachineSchedule({ size, ranksPerNode: perNode, rank });
      // And again from the first.
      const steps = agree(nodes, (node) => of(node * perNode), period + 1);
      const last = of(size - 1);
      steps.forEach((step) => expect(last.next().value).toEqual(step[nodes - 1]));
      if (nodes > 1) {
        const met = new Set(steps.map((step) => step[0]!.destinations[0]));
        expect(met.size).toBe(period);
      }
    }
  });
});

describe.each([
  ['innerOuterRingSchedule', innerOuterRingSchedule],
  ['innerOuterExponentialSchedule', innerOuterExponentialSchedule],
])('%s', (_, make) => {
  it('agrees for a whole period, with one message out of each node in a step', () => {
    for (const { size, perNode } of placements.filter((one) => one.perNode > 2)) {
      const nodes = size / perNode;
      const period = lcm(perNode, bits(nodes - 1), bits(perNode - 2));
      const steps = agree(
        size,
        (rank) => make({ size, ranksPerNode: perNode, rank }),
        Math.min(period, 64),
      );
      const node = (rank: number) => Math.floor(rank / perNode);
      steps.forEach((step, t) => {
        const outside = step.flatMap(({ destinations }, from) =>
          destinations.filter((to) => node(to) !== node(from)).map(() => from),
        );
        expect(outside).toHaveLength(nodes > 1 ? nodes : 0);
        expect(outside.every((rank) => rank % perNode === t % perNode)).toBe(true);
        const inside = step.filter((one, rank) =>
          one.destinations.some((to) => node(to) === node(rank)),
        );
        expect(inside).toHaveLength(size - nodes);
      });
    }
  });

  it.each([1, 2])('refuses nodes of %d ranks, which would never mix', (ranksPerNode) => {
    expect(() => make({ size: 4 * ranksPerNode, ranksPerNode, rank: 0 })).toThrow(
      new RegExp(` 3 .*ranksPerNode.* ${ranksPerNode}$`),
    );
  });
});

/** The matrix of one step: row r says of what rank r's next value is made. */
function matrixOf(step: readonly Exchange<number>[]): number[][] {
  return step.map((exchange, rank) => {
    const { selfWeight, srcWeights } = uniformWeights(exchange);
    return step.map((_, from) => (from === rank ? selfWeight : (srcWeights[from] ?? 0)));
  });
}

const product = (a: readonly number[][], b: readonly number[][]) =>
  a.map((row) => b.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k]![j]!, 0)));

/** How far two ranks can still be apart after the steps, 1 at first: Dobrushin's coefficient. */
function apart(matrix: readonly number[][]): number {
  const halves = matrix.flatMap((a) =>
    matrix.map((b) => a.reduce((sum, value, k) => sum + Math.abs(value - b[k]!), 0) / 2),
  );
  return Math.max(...halves);
}

interface Mixing {
  readonly name: string;
  readonly members: number;
  readonly period: number;
  /** Every member's value counts alike in the end. */
  readonly toMean: boolean;
  /** And all have it after one period. */
  readonly atOnce?: boolean;
  readonly make: (member: number) => Iterator<Exchange<number>, never>;
}

const byNodes = [1, 2, 3, 4, 5, 9].flatMap((nodes) =>
  [3, 4, 5, 6].map((perNode) => ({ nodes, perNode, size: nodes * perNode })),
);
const mixings: readonly Mixing[] = [
  ...byNodes.flatMap(({ nodes, perNode, size }) =>
    [innerOuterRingSchedule, innerOuterExponentialSchedule].map((schedule) => ({
      name: `${schedule.name}, ${nodes} nodes of ${perNode}`,
      members: size,
      period: lcm(perNode, bits(nodes - 1), bits(perNode - 2)),
      toMean: true,
      make: (rank: number) => schedule({ size, ranksPerNode: perNode, rank }),
    })),
  ),
  ...[2, 3, 4, 7, 8, 16].map((nodes) => ({
    name: `exponentialMachineSchedule, ${nodes} nodes`,
    members: nodes,
    period: bits(nodes - 1),
    toMean: true,
    make: (node: number) =>
      exponentialMachineSchedule({ size: 2 * nodes, ranksPerNode: 2, rank: 2 * node }),
  })),
  ...[2, 3, 5, 8, 12, 16].flatMap((size) =>
    [exponentialTwoGraph, ringGraph, meshGrid2DGraph, starGraph].map((graph) => ({
      name: `onePeerSchedule of ${graph.name}, ${size} ranks`,
      members: size,
      period: lcm(...Array.from({ length: size }, (_, r) => graph(size).destinations(r).length)),
      toMean: graph === exponentialTwoGraph || graph === ringGraph,
      atOnce: graph === exponentialTwoGraph && (size & (size - 1)) === 0,
      make: (rank: number) => onePeerSchedule(graph(size), rank),
    })),
  ),
];

describe('averaging by a schedule', () => {
  it.each(mixings)('brings all together: $name', ({ members, period, toMean, atOnce, make }) => {
    const steps = agree(members, make, period).map(matrixOf);
    const all = steps.reduce((before, step) => product(step, before));
    if (toMean) {
      const shares = all.map((_, from) => all.reduce((sum, row) => sum + row[from]!, 0));
      shares.forEach((share) => expect(share).toBeCloseTo(1, 12));
    }
    if (atOnce === true) expect(apart(all)).toBeCloseTo(0, 12);
    let periods = all;
    // A ring of many nodes mixes slowly: some periods until everybody has a share of everybody's value.
    for (let doublings = 0; doublings < 6 && apart(periods) >= 0.5; ++doublings) {
      periods = product(periods, periods);
    }
    expect(apart(periods)).toBeLessThan(0.5);
  });
});

describe('schedules', () => {
  it('refuse places that are none', () => {
    expect(() => innerOuterRingSchedule({ size: 8, ranksPerNode: 3, rank: 0 })).toThrow(/divisor/);
    expect(() => innerOuterRingSchedule({ size: 6, ranksPerNode: 3, rank: 6 })).toThrow(RangeError);
    expect(() => onePeerSchedule(ringGraph(3), 3)).toThrow(RangeError);
  });
});
