// Run: node examples/optimizer-names.js
import {
  createOptimizer,
  CosineScheduler,
  LBSGD,
  LRScheduler,
  Optimizer,
  SGLD,
  Test,
} from 'gradlink';

const lrScheduler = new CosineScheduler({ baseLr: 0.4, maxUpdate: 100 });
const sgd = createOptimizer('sgd', { momentum: 0.9, lrScheduler });
console.log(sgd instanceof Optimizer, lrScheduler instanceof LRScheduler, sgd.learningRate);
for (const made of [new LBSGD({ batchScale: 8 }), new SGLD({ learningRate: 0.01 }), new Test()])
  console.log(made.constructor.name, made.learningRate);
// Prints: true true 0.4
// Prints: LBSGD 0.01
// Prints: SGLD 0.01
// Prints: Test 0.01
