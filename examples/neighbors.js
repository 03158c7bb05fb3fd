// Run: npx gradlink launch -n 4 node examples/neighbors.js
import { Communicator } from 'gradlink';
import { exponentialTwoGraph, onePeerSchedule, uniformWeights } from 'gradlink/topology';

const comm = await Communicator.world();
const value = Float64Array.of(comm.rank); // 0, 1, 2, 3: the mean is 1.5
const schedule = onePeerSchedule(exponentialTwoGraph(comm.size), comm.rank);
for (let step = 0; step < 2; step += 1) {
  await comm.neighborAllReduce(value, uniformWeights(schedule.next().value)); // with one peer a step
}
if (comm.rank === 0) console.log(`after two steps: ${value[0]}`);
await comm.close();
// Prints: after two steps: 1.5
