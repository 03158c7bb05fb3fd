// How near methods with a constant step size come, and what they take.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import {
  adaptThenCombine,
  adaptWithCombine,
  windowPut,
} from '../../lib/optimizers/decentralised/index.js';
import type { DecentralisedMethod } from '../../lib/optimizers/decentralised/index.js';
import { ringGraph } from '../../lib/topology/index.js';
import { errorWith } from '../support/errors.js';
import { leastSquares, unknowns } from '../support/least-squares.js';

const size = 8;
const { gradient, distance } = leastSquares(size);

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
  gradient: gradient(one.rank),
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
    ).toThrow(errorWith('ERR_INVALID_ARG_TYPE', /Float32Array or Float64Array.*parameters/));
  });
});
