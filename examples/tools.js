// Run: node examples/tools.js
import { averages, collectives, distOptimizers, graphNames, runDdp } from 'gradlink/measure';
import { gradientTypes, neighborCollectives, neighborDtypes, runNeighbors } from 'gradlink/measure';
import {
  comparisonVersion,
  predictionVersion,
  storeModes,
  trainOptimizers,
} from 'gradlink/measure';

// What each kind of run can be asked for.
const choices = { collectives, averages, neighborCollectives, neighborDtypes, graphNames };
const others = { storeModes, gradientTypes, distOptimizers, trainOptimizers };
for (const [name, list] of Object.entries({ ...choices, ...others }))
  console.log(`${name}: ${list.slice(0, 3).join(', ')}`);

const backwards = ({ parameters }) => parameters.phase === 'backward';
const compute = { value: 5, unit: 'milliseconds' };
const buckets = { modes: ['overlap', 'sync'], bucketSizes: [1] };
const ddp = await runDdp({ ...buckets, steps: 2, syntheticCompute: compute });
for (const { parameters } of ddp.cases.filter(backwards))
  console.log(parameters.mode, 'with buckets of', parameters.bucketBytes / 2 ** 20, 'MiB');
const ring = { collective: 'neighbor_all_reduce', topology: 'ring', ranks: 2, sizes: [65536] };
const beside = new Set((await runNeighbors(ring)).cases.map(({ name }) => name));
console.log([...beside].join(' beside '));
console.log('versions of their JSON: compare', comparisonVersion, 'predict', predictionVersion);
// Prints: collectives: all_reduce, all_gather, reduce_scatter
// Prints: averages: own, mean, min
// Prints: neighborCollectives: neighbor_all_reduce, hierarchical_neighbor_all_reduce
// Prints: neighborDtypes: float32, float64
// Prints: graphNames: exp2, symmetric_exp, ring
// Prints: storeModes: push-pull, pushpull
// Prints: gradientTypes: float32, float64, float16
// Prints: distOptimizers: gradient_allreduce, allreduce, neighbor_allreduce
// Prints: trainOptimizers: sgd, momentum, adam
// Prints: overlap with buckets of 1 MiB
// Prints: sync with buckets of 1 MiB
// Prints: all_reduce beside neighbor_all_reduce
// Prints: versions of their JSON: compare 1 predict 1
