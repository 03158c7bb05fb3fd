// One rank of the waiting measurements: so many all-reduces, one after another.
//
//   waiting-rank.js FOLDER BYTES CALLS LATE   FOLDER: the checkout whose build is used. LATE: microseconds that the odd
//                                             ranks compute before each call. Rank 0 prints the median and the mean time of
//                                             a call and the processor time of all ranks a call, both in microseconds.
import { join } from 'node:path';
import { mean, median } from 'simple-statistics';

const [folder, ...numbers] = process.argv.slice(2);
const [bytes, calls, late] = numbers.map(Number);
const { Communicator } = await import(join(folder, 'dist', 'index.js'));
const comm = await Communicator.world();
const data = new Float32Array(bytes / 4).fill(1);

function compute(microseconds) {
  const end = performance.now() + microseconds / 1e3;
  while (performance.now() < end);
}

function run(count) {
  const samples = [];
  for (let i = 0; i < count; i += 1) {
    if (late > 0 && comm.rank % 2 === 1) compute(late);
    const begun = performance.now();
    comm.allReduceSync(data);
    samples.push((performance.now() - begun) * 1e3);
  }
  return samples;
}

run(Math.ceil(calls / 10));
comm.barrierSync();
const before = process.cpuUsage();
const samples = run(calls);
const { user, system } = process.cpuUsage(before);
const cpu = comm.allReduceSync(Float64Array.of((user + system) / calls));
if (comm.rank === 0) {
  console.log(JSON.stringify({ microseconds: median(samples), mean: mean(samples), cpu: cpu[0] }));
}
await comm.close();
