// Run: node examples/runs.js
import { runDdp, runNeighbors } from 'gradlink/measure';

const backwards = ({ parameters }) => parameters.phase === 'backward';
const compute = { value: 5, unit: 'milliseconds' };
const buckets = { modes: ['overlap', 'sync'], bucketSizes: [1] };
const ddp = await runDdp({ ...buckets, steps: 2, syntheticCompute: compute });
for (const { parameters } of ddp.cases.filter(backwards))
  console.log(parameters.mode, 'with buckets of', parameters.bucketBytes / 2 ** 20, 'MiB');
const ring = { collective: 'neighbor_all_reduce', topology: 'ring', ranks: 2, sizes: [65536] };
const beside = new Set((await runNeighbors(ring)).cases.map(({ name }) => name));
console.log([...beside].join(' beside '));
// Prints: overlap with buckets of 1 MiB
// Prints: sync with buckets of 1 MiB
// Prints: all_reduce beside neighbor_all_reduce
