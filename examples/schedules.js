// Run: node examples/schedules.js
import { CosineScheduler, FactorScheduler, SGD } from 'gradlink';
import { FunctionScheduler, MultiFactorScheduler, PolyScheduler } from 'gradlink';

const halving = new FactorScheduler({ step: 10, factor: 0.5, baseLr: 0.4 });
const steps = new MultiFactorScheduler({ steps: [15, 30], factor: 0.1, baseLr: 0.4 });
const falling = new PolyScheduler({ maxUpdate: 40, power: 1, baseLr: 0.4 });
for (const lrScheduler of [halving, steps, falling, new CosineScheduler({ maxUpdate: 40 })])
  console.log([1, 11, 20, 40].map((update) => lrScheduler.at(update).toFixed(3)).join(' '));
const own = new FunctionScheduler({ rate: (n) => 0.4 / Math.ceil(n / 10 + 1), updates: 40 });
console.log([1, 11, 20, 40].map((update) => own.at(update).toFixed(3)).join(' '));
console.log(new SGD({ lrScheduler: halving }).learningRate); // of its first update
// Prints: 0.400 0.200 0.200 0.050
// Prints: 0.400 0.400 0.040 0.004
// Prints: 0.390 0.290 0.200 0.000
// Prints: 0.010 0.008 0.005 0.000
// Prints: 0.200 0.133 0.133 0.080
// Prints: 0.4
