// Decentralised least squares over 8 ranks, as BlueFog's example has it: each rank has 20 rows of 5 unknowns of its own.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import {
  adaptThenCombine,
  adaptWithCombine,
  exactDiffusion,
  gradientAllReduce,
  gradientTracking,
  pushDiging,
  windowPut,
} from '../../lib/optimizers/decentralised/index.js';
import type { DecentralisedMethod } from '../../lib/optimizers/decentralised/index.js';
import {
  exponentialTwoGraph,
  onePeerSchedule,
  ringGraph,
  uniformWeights,
} from '../../lib/topology/index.js';

const size = 8;
const rows = 20;
const unknowns = 5;
const regularisation = 1e-2;

interface Problem {
  readonly a: readonly Float64Array[];
  readonly b: Float64Array;
}

let seed = 7;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
const truth = Float64Array.from({ length: unknowns }, random);
const problems: Problem[] = Array.from({ length: size }, () => {
  const a = Array.from({ length: rows }, () =>
    Float64Array.from({ length: unknowns }, () => 3 * random()),
  );
  const b = Float64Array.from(a, (row) => dot(row, truth) + random());
  return { a, b };
});

function dot(x: Float64Array, y: Float64Array): number {
  return x.reduce((sum, value, i) => sum + value * y[i]!, 0);
}

/** Of the mean of squares over the rows of one rank, halved, and the regularisation. */
function gradientOf({ a, b }: Problem) {
  return (w: Float64Array, gradient: Float64Array) => {
    gradient.set(w.map((value) => regularisation * value));
    a.forEach((row, r) => {
      const residual = (dot(row, w) - b[r]!) / rows;
      row.forEach((value, i) => (gradient[i]! += residual * value));
    });
  };
}

/** The minimum of the sum of all: by elimination. */
function solution(): Float64Array {
  const m = Array.from({ length: unknowns }, (_, i) =>
    Array.from({ length: unknowns + 1 }, (__, j) => {
      let sum = i === j ? regularisation * rows * size : 0;
      for (const { a, b } of problems) {
        a.forEach((row, r) => (sum += row[i]! * (j < unknowns ? row[j]! : b[r]!)));
      }
      return sum;
    }),
  );
  for (let k = 0; k < unknowns; ++k) {
    for (let i = 0; i < unknowns; ++i) {
      const times = i === k ? 0 : m[i]![k]! / m[k]![k]!;
      for (let j = k; j <= unknowns; ++j) m[i]![j]! -= times * m[k]![j]!;
    }
  }
  return Float64Array.from(m, (row, i) => row[unknowns]! / row[i]!);
}

const best = solution();
const distance = (w: Float64Array) => Math.hypot(...w.map((value, i) => value - best[i]!));

let group: LocalGroup;
let ranks: readonly Communicator[];
beforeAll(async () => {
  group = Communicator.local(size);
  ranks = await group.openRanks();
});
afterAll(() => group.close());

type Make = (one: Communicator, parameters: Float64Array) => DecentralisedMethod;

/** The largest distance of any rank to the minimum, and of any to another, after so many steps. */
async function run(make: Make, steps: number) {
  const all = ranks.map((_, rank) =>
    Float64Array.from({ length: unknowns }, (__, i) => Math.sin(rank + i)),
  );
  const methods = ranks.map((one, rank) => make(one, all[rank]!));
  for (let step = 0; step < steps; ++step) await Promise.all(methods.map((one) => one.step()));
  return Math.max(...all.map(distance));
}

const options = (one: Communicator, parameters: Float64Array, stepSize = 0.1) => ({
  parameters,
  gradient: gradientOf(problems[one.rank]!),
  stepSize,
});
const neighbors = (one: Communicator) => (w: Float64Array) => {
  one.setTopology(ringGraph(size));
  return one.neighborAllReduce(w);
};

describe('decentralised least squares', () => {
  it('starts far from the minimum, which the ranks do not have alone', async () => {
    expect(
      await run((one, w) => adaptThenCombine({ ...options(one, w), combine: neighbors(one) }), 0),
    ).toBeGreaterThan(0.5);
    const alone = await run(
      (one, w) => adaptThenCombine({ ...options(one, w), combine: () => Promise.resolve() }),
      300,
    );
    expect(alone).toBeGreaterThan(0.1);
  });

  const exact: Record<string, Make> = {
    gradientAllReduce: (one, w) => {
      // Equal from the start, as after a broadcast.
      w.fill(0);
      return gradientAllReduce({
        ...options(one, w),
        combine: (g) => one.allReduce(g, { op: 'avg' }),
      });
    },
    gradientTracking: (one, w) => gradientTracking({ ...options(one, w), combine: neighbors(one) }),
    exactDiffusion: (one, w) => exactDiffusion({ ...options(one, w), combine: neighbors(one) }),
    pushDiging: (one, w) => {
      // A directed graph: each rank splits what it has among itself and its destinations.
      const graph = exponentialTwoGraph(size);
      const share = 1 / (graph.destinations(one.rank).length + 1);
      const weights = {
        selfWeight: share,
        srcWeights: Object.fromEntries(graph.sources(one.rank).map((from) => [from, 1])),
        dstWeights: Object.fromEntries(graph.destinations(one.rank).map((to) => [to, share])),
      };
      return pushDiging({ ...options(one, w), push: (u) => one.neighborAllReduce(u, weights) });
    },
  };
  it.each(Object.entries(exact))('%s ends at the minimum', async (_, make) => {
    expect(await run(make, 600)).toBeLessThan(1e-10);
  });

  it('gradientTracking does so on a changing graph too', async () => {
    const make: Make = (one, w) => {
      const schedules = [0, 1].map(() => onePeerSchedule(exponentialTwoGraph(size), one.rank));
      let calls = 0;
      const combine = (values: Float64Array) =>
        one.neighborAllReduce(values, uniformWeights(schedules[calls++ % 2]!.next().value));
      return gradientTracking({ ...options(one, w), combine });
    };
    expect(await run(make, 600)).toBeLessThan(1e-10);
  });

  const near: Record<string, (stepSize: number) => Make> = {
    adaptWithCombine: (stepSize) => (one, w) =>
      adaptWithCombine({ ...options(one, w, stepSize), combine: neighbors(one) }),
    adaptThenCombine: (stepSize) => (one, w) =>
      adaptThenCombine({ ...options(one, w, stepSize), combine: neighbors(one) }),
    windowPut: (stepSize) => {
      // Windows of ranks in one process: what was put last by each source.
      const inbox = Array.from({ length: size }, () => new Map<number, Float64Array>());
      return (one, w) =>
        windowPut({
          ...options(one, w, stepSize),
          window: {
            put: (values) => {
              for (const to of ringGraph(size).destinations(one.rank)) {
                inbox[to]!.set(one.rank, values.slice());
              }
              return Promise.resolve();
            },
            update: () => {
              const came = [...inbox[one.rank]!.values()];
              w.forEach((value, i) => {
                w[i] = came.reduce((sum, other) => sum + other[i]!, value) / (came.length + 1);
              });
              return Promise.resolve();
            },
          },
        });
    },
  };
  it.each(Object.entries(near))('%s comes as near as its step size lets it', async (_, make) => {
    const coarse = await run(make(0.1), 400);
    const fine = await run(make(0.02), 1500);
    expect(coarse).toBeLessThan(0.1);
    expect(fine).toBeLessThan(coarse / 3);
  });

  it('takes step sizes that shrink, and refuses what is no vector', async () => {
    const seen: number[] = [];
    const parameters = Float32Array.of(1);
    const method = adaptThenCombine<Float32Array>({
      parameters,
      gradient: (_, gradient) => void gradient.fill(1),
      stepSize: (step) => (seen.push(step), 1 / (step + 1)),
      combine: () => Promise.resolve(),
    });
    await method.step();
    await method.step();
    expect(seen).toEqual([0, 1]);
    expect(parameters[0]).toBe(-0.5);
    const bad = { parameters: [1] as unknown as Float64Array, gradient: () => undefined };
    expect(() =>
      adaptThenCombine({ ...bad, stepSize: 1, combine: () => Promise.resolve() }),
    ).toThrow(/a Float32Array or Float64Array/);
  });
});
