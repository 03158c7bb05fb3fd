// Run: npx gradlink launch -n 2 node examples/many.js
import { Communicator, allReduceMany, sparseAllReduce } from 'gradlink';

const comm = await Communicator.world();
const gradients = [new Float32Array(2).fill(1), new Float64Array(3).fill(2)];
await allReduceMany(comm, gradients, { op: 'sum', name: 'step 1' }); // all, or none
const rows = { indices: Int32Array.of(comm.rank, 7), values: Float32Array.of(1, 1, 2, 2) };
const { indices, values } = await sparseAllReduce(comm, rows, { rowLength: 2 });
if (comm.rank === 0) console.log(gradients.join(' '), [...indices].join(), values.join());
await comm.close();
// Prints: 2,2 4,4,4 0,1,7 1,1,1,1,4,4
