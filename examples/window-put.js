// Run: npx gradlink launch -n 2 node examples/window-put.js
import { Communicator } from 'gradlink';
import { windowPut } from 'gradlink/decentralised';

const comm = await Communicator.world(); // the ranks' targets are 0 and 2: the best for both is 1
const parameters = new Float64Array(1);
const window = await comm.createWindow(parameters);
const gradient = (w, out) => (out[0] = w[0] - comm.rank * 2);
const method = windowPut({ parameters, gradient, stepSize: 0.01, window });
for (let step = 0; step < 2000; step += 1) await method.step(); // no rank waits for the other
const [mean] = await comm.allReduce(parameters.slice(), { op: 'avg' });
if (comm.rank === 0) console.log(mean > 0.8 && mean < 1.2 ? 'near 1' : mean);
await comm.close();
// Prints: near 1
