// Every decentralised method finds the minimum of the sum, on every kind of graph that it is for, with 4 and with 8 ranks:
// at a constant step size where it is exact, else at one that shrinks.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import {
  adaptThenCombine,
  adaptWithCombine,
  exactDiffusion,
  extra,
  gradientAllReduce,
  gradientTracking,
  pushDiging,
  pushSumSgd,
  windowPut,
} from '../../lib/optimizers/decentralised/index.js';
import type { Combine, DecentralisedMethod } from '../../lib/optimizers/decentralised/index.js';
import {
  exponentialTwoGraph,
  onePeerSchedule,
  ringGraph,
  Topology,
  uniformWeights,
} from '../../lib/topology/index.js';
import { errorWith } from '../support/errors.js';
import { leastSquares, unknowns } from '../support/least-squares.js';

/** Rank 0 sends to one more than the others: no weights that a rank chooses alone average here. */
function oneWay(size: number): Topology {
  const graph = exponentialTwoGraph(size);
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const edges = ranks.flatMap((from) =>
    graph.destinations(from).map((to) => ({ from, to, weight: 1 })),
  );
  return Topology.fromEdges(size, [...edges, { from: 0, to: 3, weight: 1 }]);
}

/** The ways to average, made for one rank each; `combine` keeps the mean. */
const averaging: Record<string, (one: Communicator) => Combine<Float64Array>> = {
  'a symmetric graph': (one) => {
    one.setTopology(ringGraph(one.size));
    return (w) => one.neighborAllReduce(w);
  },
  'a directed graph': (one) => {
    one.setTopology(exponentialTwoGraph(one.size));
    return (w) => one.neighborAllReduce(w);
  },
  // As the guide has it: a schedule that is advanced by each call.
  'one peer a step': (one) => {
    const schedule = onePeerSchedule(exponentialTwoGraph(one.size), one.rank);
    return (w) => one.neighborAllReduce(w, uniformWeights(schedule.next().value));
  },
};

/** The ways to push; each keeps the sum. */
const pushing: Record<string, (one: Communicator) => Combine<Float64Array>> = {
  'a symmetric graph': (one) => shares(one, ringGraph(one.size)),
  'a directed graph': (one) => shares(one, oneWay(one.size)),
  'one peer a step': (one) => {
    const schedule = onePeerSchedule(oneWay(one.size), one.rank);
    return (u) => {
      const { destinations, sources } = schedule.next().value;
      return one.neighborAllReduce(u, sharesOf(destinations, sources));
    };
  },
};

const shares = (one: Communicator, graph: Topology): Combine<Float64Array> => {
  const weights = sharesOf(graph.destinations(one.rank), graph.sources(one.rank));
  return (u) => one.neighborAllReduce(u, weights);
};

function sharesOf(destinations: readonly number[], sources: readonly number[]) {
  const share = 1 / (destinations.length + 1);
  return {
    selfWeight: share,
    srcWeights: Object.fromEntries(sources.map((from) => [from, 1])),
    dstWeights: Object.fromEntries(destinations.map((to) => [to, share])),
  };
}

interface Given {
  readonly parameters: Float64Array;
  readonly gradient: (w: Float64Array, gradient: Float64Array) => void;
  readonly stepSize: number | ((step: number) => number);
}
/** A method on its way, and the parameters that it changes. */
interface Made {
  readonly method: DecentralisedMethod;
  readonly parameters: Float64Array;
}
type Make = (one: Communicator, given: Given) => Promise<Made>;

const combined =
  (
    method: (options: Given & { combine: Combine<Float64Array> }) => DecentralisedMethod,
    way: (one: Communicator) => Combine<Float64Array>,
  ): Make =>
  (one, given) =>
    Promise.resolve({
      method: method({ ...given, combine: way(one) }),
      parameters: given.parameters,
    });
const pushed =
  (
    method: (options: Given & { push: Combine<Float64Array> }) => DecentralisedMethod,
    way: (one: Communicator) => Combine<Float64Array>,
  ): Make =>
  (one, given) =>
    Promise.resolve({
      method: method({ ...given, push: way(one) }),
      parameters: given.parameters,
    });
const put =
  (graph: (size: number) => Topology, onePeer: boolean): Make =>
  async (one, given) => {
    one.setTopology(graph(one.size));
    const window = await one.createWindow(given.parameters);
    const schedule = onePeerSchedule(graph(one.size), one.rank);
    const method = windowPut({
      ...given,
      parameters: window.array,
      window,
      ...(onePeer ? { schedule } : {}),
    });
    return { method, parameters: window.array };
  };

const symmetric = averaging['a symmetric graph']!;
const ways = (make: (way: (one: Communicator) => Combine<Float64Array>) => Make, all = averaging) =>
  Object.fromEntries(Object.entries(all).map(([name, way]) => [name, make(way)]));

const exact: Record<string, Record<string, Make>> = {
  gradientAllReduce: {
    everybody: combined(gradientAllReduce, (one) => (g) => one.allReduce(g, { op: 'avg' })),
  },
  gradientTracking: ways((way) => combined(gradientTracking, way)),
  exactDiffusion: { 'a symmetric graph': combined(exactDiffusion, symmetric) },
  extra: { 'a symmetric graph': combined(extra, symmetric) },
  pushDiging: ways((way) => pushed(pushDiging, way), pushing),
};
const near: Record<string, Record<string, Make>> = {
  adaptWithCombine: ways((way) => combined(adaptWithCombine, way)),
  adaptThenCombine: ways((way) => combined(adaptThenCombine, way)),
  pushSumSgd: ways((way) => pushed(pushSumSgd, way), pushing),
  windowPut: {
    'a symmetric graph': put(ringGraph, false),
    'a directed graph': put(exponentialTwoGraph, false),
    'one peer a step': put(exponentialTwoGraph, true),
  },
};
const cases = (methods: Record<string, Record<string, Make>>) =>
  Object.entries(methods).flatMap(([name, graphs]) =>
    Object.entries(graphs).map(([graph, make]): [string, string, Make] => [name, graph, make]),
  );

describe.each([4, 8])('%d ranks', (size) => {
  const { gradient, distance } = leastSquares(size);
  let group: LocalGroup;
  let ranks: readonly Communicator[];
  beforeAll(async () => {
    group = Communicator.local(size);
    ranks = await group.openRanks();
  });
  afterAll(() => group.close());

  /** Goes on, step by step; gives the largest distance of any rank to the minimum, now or once it is near enough. */
  async function begin(make: Make, stepSize: Given['stepSize']) {
    const all = await Promise.all(
      ranks.map((one) =>
        make(one, {
          parameters: new Float64Array(unknowns),
          gradient: gradient(one.rank),
          stepSize,
        }),
      ),
    );
    const away = () => Math.max(...all.map(({ parameters }) => distance(parameters)));
    return async (steps: number, enough = 0): Promise<number> => {
      for (let step = 0; step < steps && !(away() < enough); ++step) {
        await Promise.all(all.map(({ method }) => method.step()));
      }
      return away();
    };
  }

  it.each(cases(exact))('%s ends at the minimum over %s', async (_, __, make) => {
    const on = await begin(make, 0.1);
    expect(await on(600, 1e-8)).toBeLessThan(1e-8);
  });

  // As many steps of twice as many ranks take twice as long, and say the same of the method.
  const tags = size === 8 ? ['full'] : [];
  it.for(cases(near))('%s is led there over %s by smaller steps', { tags }, async ([, , make]) => {
    // At a constant step size, then halved whenever what the step before left is forgotten.
    const on = await begin(make, (step) => 0.1 * 0.5 ** Math.floor(Math.max(0, step - 200) / 200));
    const constant = await on(400);
    const shrinking = await on(1200, constant / 10);
    // As near as its step size lets it.
    expect(constant).toBeGreaterThan(1e-3);
    expect(constant).toBeLessThan(0.1);
    expect(shrinking).toBeLessThan(constant / 10);
  });
});

it('the ranks alone end elsewhere, from far away', async () => {
  const { gradient, distance } = leastSquares(4);
  const all = Array.from({ length: 4 }, () => new Float64Array(unknowns));
  expect(Math.max(...all.map(distance))).toBeGreaterThan(0.5);
  const combine = () => Promise.resolve();
  const methods = all.map((parameters, rank) =>
    adaptThenCombine({ parameters, gradient: gradient(rank), stepSize: 0.1, combine }),
  );
  for (let step = 0; step < 300; ++step) await Promise.all(methods.map((one) => one.step()));
  expect(Math.max(...all.map(distance))).toBeGreaterThan(0.1);
});

describe('adaptThenCombine', () => {
  it('takes step sizes that shrink, and refuses what is no vector', async () => {
    const seen: number[] = [];
    const parameters = Float32Array.of(1);
    const combine = () => Promise.resolve();
    const method = adaptThenCombine<Float32Array>({
      parameters,
      gradient: (_, gradient) => void gradient.fill(1),
      stepSize: (step) => (seen.push(step), 1 / (step + 1)),
      combine,
    });
    await method.step();
    await method.step();
    expect(seen).toEqual([0, 1]);
    expect(parameters[0]).toBe(-0.5);
    const bad = { parameters: [1] as unknown as Float64Array, gradient: () => undefined };
    expect(() => adaptThenCombine({ ...bad, stepSize: 1, combine })).toThrow(
      errorWith('ERR_INVALID_ARG_TYPE', /Float32Array or Float64Array.*parameters/),
    );
  });
});

describe('gradientTracking', () => {
  it('averages once a step, whatever it averages', async () => {
    const lengths: number[] = [];
    const method = gradientTracking<Float64Array>({
      parameters: Float64Array.of(1, 2),
      gradient: (w, gradient) => gradient.set(w),
      stepSize: 0.5,
      combine: (values) => Promise.resolve(lengths.push(values.length)),
    });
    for (let step = 0; step < 3; ++step) await method.step();
    expect(lengths).toEqual([4, 4, 4]);
  });
});

describe('windowPut', () => {
  const given = { parameters: Float64Array.of(1), gradient: () => undefined, stepSize: 0.1 };
  const window = { put: () => Promise.resolve(), update: () => Promise.resolve() };

  it('puts to those whose turn it is', async () => {
    const puts: unknown[] = [];
    const schedule = onePeerSchedule(exponentialTwoGraph(4), 0);
    const put = (_: Float64Array, options?: unknown) => Promise.resolve(puts.push(options));
    const method = windowPut({ ...given, window: { ...window, put }, schedule });
    for (let step = 0; step < 3; ++step) await method.step();
    expect(puts).toEqual([{ dstWeights: [1] }, { dstWeights: [2] }, { dstWeights: [1] }]);
  });

  it('refuses a schedule that is none, or that ends', async () => {
    const list = [{ destinations: [1] }];
    expect(() => windowPut({ ...given, window, schedule: list as never })).toThrow(/schedule/);
    const ending = windowPut({ ...given, window, schedule: list.values() });
    await ending.step();
    await expect(ending.step()).rejects.toThrow(/never ends.*schedule/);
  });
});
