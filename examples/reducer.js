// Run: npx gradlink launch -n 2 node examples/reducer.js
import { Communicator } from 'gradlink';
import { GradientReducer } from 'gradlink/tfjs';

const comm = await Communicator.world();
const layers = [
  { name: 'kernel', shape: [2, 2] },
  { name: 'bias', shape: [2] },
];
const reducer = new GradientReducer(comm, layers, { bucketCapBytes: 1024 });
reducer.begin();
reducer.add(1, new Float32Array(2).fill(comm.rank)); // the last layer's gradient comes first
reducer.add(0, new Float32Array(4).fill(comm.rank * 2)); // its bucket is complete: it travels
await reducer.finish();
if (comm.rank === 0) console.log(reducer.gradient(0), reducer.gradient(1)); // means of both ranks
await comm.close();
// Prints: Float32Array(4) [ 1, 1, 1, 1 ] Float32Array(2) [ 0.5, 0.5 ]
