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

  it('lets the center of a star receive from many', () => {
    const schedule = onePeerSchedule(starGraph(4), 0);
    expect(schedule.next().value).toEqual({ destinations: [1], sources: [1, 2, 3] });
    expect(schedule.next().value).toEqual({ destinations: [2], sources: [1, 2, 3] });
  });
});

describe('exponentialMachineSchedule', () => {
  it('agrees among nodes, and among the ranks of one', () => {
    for (const { size, perNode } of placements) {
      const nodes = size / perNode;
      const period = bits(nodes - 1);
      const of = (rank: number) =>
        exponentialMachineSchedule({ size, ranksPerNode: perNode, rank });
      const steps = agree(nodes, (node) => of(node * perNode), period);
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
    for (const { size, perNode } of placements) {
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
        if (perNode > 2) {
          const inside = step.filter((one, rank) =>
            one.destinations.some((to) => node(to) === node(rank)),
          );
          expect(inside).toHaveLength(size - nodes);
        }
      });
    }
  });
});

describe('schedules', () => {
  it('refuse places that are none', () => {
    expect(() => innerOuterRingSchedule({ size: 6, ranksPerNode: 4, rank: 0 })).toThrow(/divisor/);
    expect(() => innerOuterRingSchedule({ size: 6, ranksPerNode: 3, rank: 6 })).toThrow(RangeError);
    expect(() => onePeerSchedule(ringGraph(3), 3)).toThrow(RangeError);
  });

  it('average everybody in one period of one-peer exponential steps', () => {
    const size = 16;
    const graph = exponentialTwoGraph(size);
    const schedules = Array.from({ length: size }, (_, rank) => onePeerSchedule(graph, rank));
    let values = Array.from({ length: size }, (_, rank) => rank);
    for (let t = 0; t < 4; ++t) {
      const weights = schedules.map((one) => uniformWeights(one.next().value));
      values = values.map((value, rank) =>
        Object.entries(weights[rank]!.srcWeights).reduce(
          (sum, [from, weight]) => sum + weight * values[Number(from)]!,
          weights[rank]!.selfWeight * value,
        ),
      );
    }
    expect(values).toEqual(new Array(size).fill((size - 1) / 2));
  });
});
