// Run: npx gradlink launch -n 2 node examples/directed.js
import { Communicator } from 'gradlink';
import { adaptWithCombine, gradientAllReduce } from 'gradlink/decentralised';
import { pushDiging, pushSumSgd } from 'gradlink/decentralised';

const comm = await Communicator.world(); // the ranks' targets are 0 and 2: the best for both is 1
const gradient = (w, out) => (out[0] = w[0] - comm.rank * 2);
const combine = (values) => comm.allReduce(values, { op: 'avg' });
for (const make of [adaptWithCombine, gradientAllReduce, pushDiging, pushSumSgd]) {
  const how = make.name.startsWith('push') ? { push: combine } : { combine };
  const parameters = new Float64Array(1);
  const method = make({ parameters, gradient, stepSize: 0.1, ...how });
  for (let step = 0; step < 200; step += 1) await method.step();
  if (comm.rank === 0) console.log(`${make.name}: ${parameters[0].toFixed(1)}`);
}
await comm.close();
// Prints: adaptWithCombine: 0.9
// Prints: gradientAllReduce: 1.0
// Prints: pushDiging: 1.0
// Prints: pushSumSgd: 1.0
