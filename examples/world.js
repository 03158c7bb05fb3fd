// Run: npx gradlink launch -n 2 node examples/world.js
import { Communicator } from 'gradlink';

const comm = await Communicator.world(); // this process's rank; started alone, a world of one
const gradient = comm.allocShared('float32', 1000).fill(comm.rank + 1);
await comm.allReduce(gradient, { op: 'avg' });
if (comm.rank === 0) console.log(`${comm.size} ranks, mean ${gradient[0]}`);
await comm.close();
// Prints: 2 ranks, mean 1.5
