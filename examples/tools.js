// Run: node examples/tools.js
import { averages, collectives, distOptimizers, graphNames, runDdp } from 'gradlink/measure';
import { gradientTypes, neighborCollectives, neighborDtypes, runNeighbors } from 'gradlink/measure';
import {
  comparisonVersion,
  predictionVersion,
  storeModes,
  trainOptimizers,
} from 'gradlink/measure';

for (const [name, list] of Object.entries({ collectives, graphNames, gradientTypes, storeModes }))
  console.log(`${name}: ${list[0]} and ${list.length - 1} more`);
console.log(averages.length, neighborCollectives.length, neighborDtypes.includes('float64'));
console.log(distOptimizers.length > 5, trainOptimizers.includes('adam'));
console.log(comparisonVersion, predictionVersion, typeof runDdp, typeof runNeighbors);
// Prints: collectives: all_reduce and 12 more
// Prints: graphNames: exp2 and 6 more
// Prints: gradientTypes: float32 and 3 more
// Prints: storeModes: push-pull and 1 more
// Prints: 4 2 true
// Prints: true true
// Prints: 1 1 function function
