// Run: node examples/buckets.js
import { assignBeforeOverflow, assignBySize, defaultBucketCapBytes } from 'gradlink/tfjs';
import { defaultFirstBucketBytes, elementsOf, planGiven, reduceModes } from 'gradlink/tfjs';

const gradients = [[3, 3, 64], [1024], [1024, 10]].map((shape) => ({ shape }));
const tensors = gradients.map((gradient) => ({ bytes: 4 * elementsOf(gradient) }));
const sizes = tensors.map(({ bytes }) => bytes);
const bySize = assignBySize(tensors, [4096]);
console.log(bySize, assignBeforeOverflow(sizes, 45056));
console.log(planGiven(gradients, bySize).map(({ bytes }) => bytes));
console.log(defaultFirstBucketBytes, 'then', defaultBucketCapBytes, 'bytes;', reduceModes.join());
// Prints: [ [ 0, 1 ], [ 2 ] ] [ [ 0, 1 ], [ 2 ] ]
// Prints: [ 6400, 40960 ]
// Prints: 1048576 then 26214400 bytes; overlap,async,sync
