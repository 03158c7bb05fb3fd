#!/usr/bin/env node
// BlueFog's decentralised least squares: 8 ranks, each with 20 rows of 5 unknowns of its own, find the solution of all
// rows with each method, averaging with neighbours. Prints how far the furthest rank is from it.
import process from 'node:process';

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
} from '../dist/decentralised.js';
import { Communicator } from '../dist/index.js';
import { exponentialTwoGraph, ringGraph } from '../dist/topology.js';

const size = 8;
const rows = 20;
const unknowns = 5;
const regularisation = 1e-2;
const stepSize = 0.1;
const checkpoints = [0, 10, 100, 400, 1000];

let seed = 7;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
const truth = Float64Array.from({ length: unknowns }, random);
const problems = Array.from({ length: size }, () => {
  const a = Array.from({ length: rows }, () =>
    Float64Array.from({ length: unknowns }, () => 3 * random()),
  );
  return { a, b: a.map((row) => dot(row, truth) + random()) };
});

function gradientOf({ a, b }) {
  return (w, gradient) => {
    gradient.set(w.map((value) => regularisation * value));
    a.forEach((row, r) => {
      const residual = (dot(row, w) - b[r]) / rows;
      row.forEach((value, i) => (gradient[i] += residual * value));
    });
  };
}

/** All rows at once, by elimination. */
function solve() {
  const m = Array.from({ length: unknowns }, (_, i) =>
    Array.from({ length: unknowns + 1 }, (__, j) => {
      let sum = i === j ? regularisation * rows * size : 0;
      for (const { a, b } of problems) {
        a.forEach((row, r) => (sum += row[i] * (j < unknowns ? row[j] : b[r])));
      }
      return sum;
    }),
  );
  for (let k = 0; k < unknowns; ++k) {
    for (let i = 0; i < unknowns; ++i) {
      const times = i === k ? 0 : m[i][k] / m[k][k];
      for (let j = k; j <= unknowns; ++j) m[i][j] -= times * m[k][j];
    }
  }
  return m.map((row, i) => row[unknowns] / row[i]);
}

const group = Communicator.local(size);
const ring = ringGraph(size);
const directed = exponentialTwoGraph(size);
const ranks = await group.openRanks();
for (const one of ranks) one.setTopology(ring);

/** What each rank of the directed graph sends: equal shares, so that sums are kept. */
function shares({ rank }) {
  const destinations = directed.destinations(rank);
  const share = 1 / (destinations.length + 1);
  return {
    selfWeight: share,
    srcWeights: Object.fromEntries(directed.sources(rank).map((from) => [from, 1])),
    dstWeights: Object.fromEntries(destinations.map((to) => [to, share])),
  };
}

const methods = {
  'adapt with combine': (one, given) =>
    adaptWithCombine({ ...given, combine: (w) => one.neighborAllReduce(w) }),
  'adapt then combine': (one, given) =>
    adaptThenCombine({ ...given, combine: (w) => one.neighborAllReduce(w) }),
  'window put': async (one, given) => {
    const window = await one.createWindow(given.parameters);
    return windowPut({ ...given, parameters: window.array, window });
  },
  'gradient all-reduce': (one, given) =>
    gradientAllReduce({ ...given, combine: (g) => one.allReduce(g, { op: 'avg' }) }),
  'gradient tracking': (one, given) =>
    gradientTracking({ ...given, combine: (w) => one.neighborAllReduce(w) }),
  'exact diffusion': (one, given) =>
    exactDiffusion({ ...given, combine: (w) => one.neighborAllReduce(w) }),
  EXTRA: (one, given) => extra({ ...given, combine: (w) => one.neighborAllReduce(w) }),
  'push-sum SGD': (one, given) =>
    pushSumSgd({ ...given, push: (u) => one.neighborAllReduce(u, shares(one)) }),
  'push-DIGing': (one, given) =>
    pushDiging({ ...given, push: (u) => one.neighborAllReduce(u, shares(one)) }),
};

const solution = solve();
const cell = (text, width) => String(text).padStart(width);
process.stdout.write(
  `${'distance after'.padEnd(20)}${checkpoints.map((n) => cell(n, 10)).join('')}\n`,
);
for (const [name, make] of Object.entries(methods)) {
  const made = await Promise.all(
    ranks.map(async (one) => {
      const given = {
        parameters: new Float64Array(unknowns),
        gradient: gradientOf(problems[one.rank]),
        stepSize,
      };
      const read = { parameters: given.parameters };
      const method = await make(one, {
        ...given,
        // A window brings its own array.
        gradient: (w, gradient) => given.gradient((read.parameters = w), gradient),
      });
      return { method, read };
    }),
  );
  const distances = [];
  for (let step = 0; step <= checkpoints.at(-1); ++step) {
    if (checkpoints.includes(step)) {
      const far = made.map(({ read }) =>
        Math.hypot(...read.parameters.map((value, i) => value - solution[i])),
      );
      distances.push(Math.max(...far));
    }
    await Promise.all(made.map(({ method }) => method.step()));
  }
  const cells = distances.map((distance) => cell(distance.toExponential(2), 10));
  process.stdout.write(`${name.padEnd(20)}${cells.join('')}\n`);
}
await group.close();
