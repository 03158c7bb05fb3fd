// Run: node examples/topologies.js
import { Topology, averagingGraph, exponentialGraph, fullyConnectedGraph } from 'gradlink/topology';
import { invertNeighbors, meshGrid2DGraph, ringGraph, starGraph } from 'gradlink/topology';
import { symmetricExponentialGraph, toDot, toMermaid } from 'gradlink/topology';

const graphs = { ringGraph, starGraph, exponentialGraph, symmetricExponentialGraph };
for (const [name, make] of Object.entries({ ...graphs, meshGrid2DGraph, fullyConnectedGraph }))
  console.log(`${name}: from 0 to ${make(8).destinations(0).join(', ')}`);
const lists = [[1], [2], [0]]; // whom each rank sends to
console.log(invertNeighbors(lists), averagingGraph(lists) instanceof Topology);
console.log(toMermaid(ringGraph(3), { weights: false }).split('\n')[0], toDot(ringGraph(3))[0]);
// Prints: ringGraph: from 0 to 1, 7
// Prints: starGraph: from 0 to 1, 2, 3, 4, 5, 6, 7
// Prints: exponentialGraph: from 0 to 1, 2, 4
// Prints: symmetricExponentialGraph: from 0 to 1, 4, 7
// Prints: meshGrid2DGraph: from 0 to 1, 4
// Prints: fullyConnectedGraph: from 0 to 1, 2, 3, 4, 5, 6, 7
// Prints: [ [ 2 ], [ 0 ], [ 1 ] ] true
// Prints: flowchart LR d
