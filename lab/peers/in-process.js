// local(k).allReduce beside the bare loop that reads k arrays and writes k arrays, turn by turn in one process. Prints JSON
// lines.
//
//   in-process.js RANKS BYTES,BYTES,... in,out SECONDS
import { availableParallelism, freemem } from 'node:os';
import { Communicator } from '../../dist/index.js';
import { sampleLoop } from './loops.js';
import { sampleAllReduce } from './sample.js';

const [ranks, sizes, places, seconds] = process.argv.slice(2);
const threads = Math.min(2, availableParallelism());
const loops = { in: 'reduceInPlace', out: 'reduceOutOfPlace' };
const print = (line) => console.log(JSON.stringify(line));

async function compare(count, bytes, place) {
  // Loop and ours each bring their own arrays, and one is freed before the other comes.
  if (count * bytes * (place === 'in' ? 1 : 2) > 0.8 * freemem()) return;
  const wanted = { bytes, seconds: Number(seconds) };
  const loop = await sampleLoop({ ...wanted, loop: loops[place], arrays: count, threads });
  const common = { kind: 'allReduce', ranks: count, bytes, place };
  print({ ...common, contender: 'loop', seconds: loop.seconds, wrong: 0 });
  const comm = Communicator.local(count);
  const ours = await sampleAllReduce(comm, { ...wanted, place, shared: false });
  await comm.close();
  print({ ...common, contender: 'local', ...ours });
}

for (const bytes of sizes.split(',').map(Number)) {
  for (const place of places.split(',')) await compare(Number(ranks), bytes, place);
}
