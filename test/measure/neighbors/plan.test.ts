import { describe, expect, it } from 'vitest';

import {
  exchangesOf,
  factorsOf,
  graphs,
  planNeighbors,
  sentBytes,
  type GraphName,
} from '../../../lib/measure/neighbors/plan.js';

const names = Object.keys(graphs) as GraphName[];

describe('factors of a step', () => {
  it('add up to one where ranks average, whatever the graph', () => {
    for (const name of names) {
      for (const dynamic of [false, true]) {
        const plan = planNeighbors(8, 2, name, dynamic);
        for (let rank = 0; rank < 8; ++rank) {
          for (const operation of [
            'neighbor_all_reduce',
            'hierarchical_neighbor_all_reduce',
          ] as const) {
            for (const step of [0, 1, 5]) {
              const sum = [...factorsOf(plan, operation, rank, step).values()].reduce(
                (a, b) => a + b,
                0,
              );
              expect(sum, `${name} ${operation}`).toBeCloseTo(1, 12);
            }
          }
        }
      }
    }
  });

  it('are those of the rank and its sources', () => {
    const plan = planNeighbors(4, 2, 'one_way_ring', false);
    expect(factorsOf(plan, 'all_reduce', 1, 0)).toEqual(
      new Map([0, 1, 2, 3].map((rank) => [rank, 1])),
    );
    const own = factorsOf(plan, 'neighbor_all_reduce', 1, 0);
    expect(own.get(1)).toBe(0.5);
    expect([...own.keys()].filter((rank) => rank !== 1)).toEqual(plan.graph.sources(1));
    expect(factorsOf(plan, 'hierarchical_neighbor_all_reduce', 1, 0)).toEqual(
      new Map([0, 1, 2, 3].map((rank) => [rank, 0.25])),
    );
  });
});

describe('exchanges of a changing graph', () => {
  it('meet every neighbour once in a period, one a step', () => {
    const graph = graphs.exp2(8);
    const steps = exchangesOf(graph, 3, true);
    expect(steps.map(({ destinations }) => destinations)).toEqual([[4], [5], [7]]);
    expect(steps.map(({ sources }) => sources)).toEqual([[2], [1], [7]]);
    expect(exchangesOf(graph, 3, false)).toHaveLength(1);
    // A rank alone.
    expect(exchangesOf(graphs.exp2(1), 0, true)).toEqual([{ destinations: [], sources: [] }]);
  });
});

describe('bytes sent', () => {
  const S = 1000;

  it('of a sum are those of a ring of ranks, and of hosts', () => {
    const plan = planNeighbors(8, 2, 'exp2', true);
    expect(sentBytes(plan, 'all_reduce', S)).toEqual({ perRank: 1750, perHost: 1500 });
  });

  it('of one neighbour a step are one array a rank, however many ranks', () => {
    for (const size of [2, 4, 16, 64]) {
      const plan = planNeighbors(size, size, 'exp2', true);
      expect(sentBytes(plan, 'neighbor_all_reduce', S)).toEqual({ perRank: S, perHost: 0 });
    }
  });

  it('count what leaves a host', () => {
    // Each rank to both sides: of two ranks of a host each has one outside.
    const ring = planNeighbors(8, 2, 'ring', false);
    expect(sentBytes(ring, 'neighbor_all_reduce', S)).toEqual({ perRank: 2 * S, perHost: 2 * S });
    // 4 hosts in a ring; its first rank adds up with the other, sends to two hosts and passes on.
    expect(sentBytes(ring, 'hierarchical_neighbor_all_reduce', S)).toEqual({
      perRank: S + 2 * S + S,
      perHost: 2 * S,
    });
  });

  it('are those of the rank that sends most', () => {
    const star = planNeighbors(5, 5, 'star', false);
    expect(sentBytes(star, 'neighbor_all_reduce', S).perRank).toBe(4 * S);
  });
});
