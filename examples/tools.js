// Run: node examples/tools.js
import { averages, collectives, graphNames, neighborCollectives } from 'gradlink/measure';
import { distOptimizers, gradientTypes, neighborDtypes, storeModes } from 'gradlink/measure';
import { comparisonVersion, predictionVersion, trainOptimizers } from 'gradlink/measure';

// What each kind of run can be asked for.
const choices = { collectives, averages, neighborCollectives, neighborDtypes, graphNames };
const others = { storeModes, gradientTypes, distOptimizers, trainOptimizers };
for (const [name, list] of Object.entries({ ...choices, ...others }))
  console.log(`${name}: ${list.slice(0, 3).join(', ')}`);
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
// Prints: versions of their JSON: compare 1 predict 1
