// Graphs over ranks and their schedules.
import * as topology from '../../../lib/topology/index.js';
import type { Random } from '../support/random.js';
import { loose, right, same } from './call.js';
import type { Call } from './call.js';

const graphs: Readonly<Record<string, (random: Random, size: number) => unknown[]>> = {
  exponentialGraph: (random, size) => [size, 2 + random.int(3)],
  exponentialTwoGraph: (_, size) => [size],
  symmetricExponentialGraph: (random, size) => [size, 2 + random.int(3)],
  meshGrid2DGraph: (_, size) => [size, [1, size]],
  starGraph: (random, size) => [size, random.int(size)],
  ringGraph: (random, size) => [size, random.pick(['both', 'left', 'right'])],
  fullyConnectedGraph: (_, size) => [size],
};

/** Where rows sum to one, as those of all these graphs do. */
function assertStochastic(graph: unknown, size: number): void {
  const made = graph as topology.Topology;
  right(made.size === size && made.isReceiveStochastic() && made.isSendStochastic(), 'a graph');
}

function generated(random: Random): Call {
  const size = 1 + random.int(12);
  const name = random.pick(Object.keys(graphs));
  return {
    name,
    args: graphs[name]!(random, size),
    run: (...args) => loose(topology)[name]!(...args),
    check: (graph) => {
      assertStochastic(graph, size);
    },
  };
}

function listed(random: Random): Call {
  const size = 2 + random.int(6);
  const rows = topology.fullyConnectedGraph(size).matrix();
  const next = Array.from({ length: size }, (_, rank) => [(rank + 1) % size]);
  const edges = next.map(([to], from) => ({ from, to: to!, weight: 1 }));
  return random.pick<Call>([
    {
      name: 'Topology.fromMatrix',
      args: [rows],
      run: (...args) => loose(topology.Topology)['fromMatrix']!(...args),
      check: (graph) => {
        assertStochastic(graph, size);
      },
    },
    {
      name: 'Topology.fromEdges',
      args: [size, edges],
      run: (...args) => loose(topology.Topology)['fromEdges']!(...args),
      check: (graph) => {
        assertStochastic(graph, size);
      },
    },
    {
      name: 'averagingGraph',
      args: [next],
      run: (...args) => loose(topology)['averagingGraph']!(...args),
      check: (graph) => {
        right((graph as topology.Topology).isReceiveStochastic(), 'averagingGraph');
      },
    },
    {
      name: 'invertNeighbors',
      args: [next],
      run: (...args) => loose(topology)['invertNeighbors']!(...args),
      check: (lists) => {
        same((lists as number[][])[0], [size - 1], 'invertNeighbors');
      },
    },
    {
      name: 'toDot',
      args: [topology.ringGraph(size), { weights: false, selfEdges: true }],
      run: (...args) => loose(topology)[random.pick(['toDot', 'toMermaid'])]!(...args),
      check: (text) => {
        right((text as string).length > 10, 'a drawing');
      },
    },
    {
      name: 'uniformWeights',
      args: [{ destinations: [1], sources: [1] }],
      run: (...args) => loose(topology)['uniformWeights']!(...args),
      check: (made) => {
        same([(made as { selfWeight: number }).selfWeight], [0.5], 'uniformWeights');
      },
    },
  ]);
}

function scheduled(random: Random): Call {
  const ranksPerNode = 3 + random.int(3);
  const size = ranksPerNode * (1 + random.int(4));
  const rank = random.int(size);
  const byPlace = [
    'exponentialMachineSchedule',
    'innerOuterRingSchedule',
    'innerOuterExponentialSchedule',
  ];
  const name = random.pick([...byPlace, 'onePeerSchedule']);
  const args =
    name === 'onePeerSchedule'
      ? [topology.exponentialTwoGraph(size), rank]
      : [{ size, ranksPerNode, rank }];
  return {
    name,
    args,
    run: (...given) => {
      const steps = loose(topology)[name]!(...given) as Generator<topology.Exchange>;
      return Array.from({ length: 5 }, () => steps.next().value as topology.Exchange);
    },
    check: (steps) => {
      for (const { destinations } of steps as topology.Exchange[]) {
        right(destinations.every((to) => to >= 0 && to < size && to !== (name === byPlace[0] ? -1 : rank)), name); // prettier-ignore
      }
    },
  };
}

export const nextGraph = (random: Random): Call =>
  random.pick([generated, listed, scheduled])(random);
