// Run: npx gradlink launch -n 3 node examples/join.js
import { Communicator } from 'gradlink';

const comm = await Communicator.world();
comm.setJoinable(); // on all ranks: each call first asks who has joined
for (let batch = 0; batch <= comm.rank; ++batch) {
  const [sum] = await comm.allReduce(Float32Array.of(1)); // rank r has r + 1 batches
  if (comm.rank === 2) console.log(`batch ${batch}: ${sum} ranks`);
}
const last = await comm.join(); // takes part in the others' calls until all have joined
if (comm.rank === 2) console.log(`rank ${last} was the last`);
await comm.close();
// Prints: batch 0: 3 ranks
// Prints: batch 1: 2 ranks
// Prints: batch 2: 1 ranks
// Prints: rank 2 was the last
