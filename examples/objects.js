// Run: npx gradlink launch -n 2 node examples/objects.js
import { Communicator, allGatherObject, broadcastObject } from 'gradlink';

const comm = await Communicator.world();
const settings = await broadcastObject(
  comm,
  comm.rank === 0 ? new Map([['rate', 0.1]]) : undefined,
);
const all = await allGatherObject(comm, { rank: comm.rank, rate: settings.get('rate') });
if (comm.rank === 0) console.log(JSON.stringify(all));
await comm.close();
// Prints: [{"rank":0,"rate":0.1},{"rank":1,"rate":0.1}]
