// Run: npx gradlink launch -n 2 node examples/decentralised.js
import { Communicator } from 'gradlink';
import { adaptThenCombine, exactDiffusion, extra, gradientTracking } from 'gradlink/decentralised';

const comm = await Communicator.world(); // the ranks' targets are 0 and 2: the best for both is 1
const gradient = (w, out) => (out[0] = w[0] - comm.rank * 2);
const combine = (values) => comm.neighborAllReduce(values);
for (const make of [adaptThenCombine, exactDiffusion, extra, gradientTracking]) {
  const parameters = new Float64Array(1);
  const method = make({ parameters, gradient, stepSize: 0.1, combine });
  for (let step = 0; step < 200; step += 1) await method.step();
  if (comm.rank === 0) console.log(`${make.name}: ${parameters[0].toFixed(1)}`);
}
await comm.close();
// Prints: adaptThenCombine: 1.0
// Prints: exactDiffusion: 1.0
// Prints: extra: 1.0
// Prints: gradientTracking: 1.0
