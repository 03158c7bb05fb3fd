// The floors of lib/, and what breaks them: an import that goes up, and folders that import one another in a circle.
// Imports of types count like the others: who reads a file needs what it names.
import { join } from 'node:path';

import { importsOf } from './graph.mjs';

/**
 * From the ground up. A folder may import the floors above it in this list and the files of lib/ itself (errors,
 * validate, version ...), but not its neighbours on the same floor.
 */
export const floors = [
  ['files', 'options', 'printed'],
  ['native', 'results', 'topology', 'launch'],
  ['tensor', 'compare', 'predict'],
  ['communicator', 'optimizers', 'gpu', 'models'],
  ['kvstore'],
  ['train'],
  ['measure'],
  ['doctor'],
  ['check'],
  ['compile', 'report', 'watch'],
  ['cli'],
];

/** What users and scripts import: these alone may know everything. */
const entries = new Set(['index.ts']);

function floorOf(folder) {
  return floors.findIndex((floor) => floor.includes(folder));
}

function upward([from, to]) {
  if (entries.has(from)) return undefined;
  if (entries.has(to)) return `lib/${from}: imports lib/${to}; only users do`;
  const [own, other] = [from, to].map((file) => (file.includes('/') ? file.split('/')[0] : ''));
  if (own === other || other === '') return undefined;
  const unknown = [own, other].find((folder) => folder !== '' && floorOf(folder) < 0);
  if (unknown !== undefined) return `lib/${unknown}: has no floor in scripts/lib-layers.mjs`;
  if (own !== '' && floorOf(other) < floorOf(own)) return undefined;
  const below = own === '' ? [] : floors.slice(0, floorOf(own)).flat();
  const allowed = below.length === 0 ? 'no other folder' : `${below.join(', ')} only`;
  return `lib/${from}: imports lib/${to}; it may import ${allowed}`;
}

/** Within each folder: which of its folders and files import which, with an example of each. */
function siblings(pairs) {
  const graphs = new Map();
  for (const [from, to] of pairs) {
    const [own, other] = [from.split('/'), to.split('/')];
    const at = own.findIndex((name, index) => name !== other[index]);
    // A circle of files alone is the business of their folder.
    if (at < 0) continue;
    const folder = own.slice(0, at).join('/');
    const graph = graphs.get(folder) ?? new Map();
    graphs.set(folder, graph);
    const targets = graph.get(own[at]) ?? new Map();
    graph.set(own[at], targets.set(other[at], `lib/${from} -> lib/${to}`));
  }
  return graphs;
}

/** The shortest way from one back to itself. */
function circle(graph, start) {
  const ways = [[start]];
  const seen = new Set();
  for (const way of ways) {
    for (const next of graph.get(way.at(-1))?.keys() ?? []) {
      if (next === start) return way;
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return undefined;
}

function circles(pairs) {
  const breaches = [];
  for (const [folder, graph] of siblings(pairs)) {
    const told = new Set();
    for (const start of graph.keys()) {
      const way = start.endsWith('.ts') || told.has(start) ? undefined : circle(graph, start);
      if (way === undefined) continue;
      for (const name of way) told.add(name);
      const steps = way.map((name, at) => graph.get(name).get(way[(at + 1) % way.length]));
      breaches.push(`${join('lib', folder)}: a circle of folders: ${steps.join(', ')}`);
    }
  }
  return breaches;
}

/** Every breach in lib/, in words. */
export function layerBreaches(lib) {
  const pairs = importsOf(lib);
  return [...pairs.map(upward).filter((breach) => breach !== undefined), ...circles(pairs)];
}
