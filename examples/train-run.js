// Run: npx gradlink launch -n 2 node examples/train-run.js
import { runTrain } from 'gradlink/measure';

const steps = { warmupSteps: 1, iterations: 2, stepsPerIteration: 1 };
const options = { model: 'mlp', dataset: 'mnist', batchSize: 8, backend: 'cpu', ...steps };
const { cases } = await runTrain(options); // every process calls; rank 0 has the case
for (const { name, status, parameters } of cases)
  console.log(name, status, parameters.ranks ?? parameters.workers);
// Prints: train ok 2
