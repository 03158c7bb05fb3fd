// Run: npx gradlink launch -n 3 node examples/uneven.js
import { Communicator } from 'gradlink';

const comm = await Communicator.world();
const rows = Float32Array.from({ length: comm.rank + 1 }, () => comm.rank);
const { data, counts } = await comm.allGatherV(rows); // of each rank as many as it has
if (comm.rank === 0) console.log(`${data.join(' ')} (${counts.join(', ')})`);
await comm.close();
// Prints: 0 1 1 2 2 2 (1, 2, 3)
