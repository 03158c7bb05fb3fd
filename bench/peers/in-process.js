// local(k).allReduce beside the bare loop that reads k arrays and writes k arrays, turn by turn in one process, and the
// machine's memory bandwidth. Prints JSON lines.
//
//   in-process.js full|quick
import { availableParallelism, freemem } from 'node:os';
import { Communicator } from '../../dist/index.js';
import { native, nativeMemoryLoops } from '../../dist/internal.js';
import { sampleAllReduce } from './sample.js';

const MiB = 2 ** 20;
const quick = process.argv[2] === 'quick';
const rounds = quick ? 1 : 3;
const seconds = quick ? 0.005 : 0.15;
const threads = Math.min(2, availableParallelism());

const print = (line) => console.log(JSON.stringify(line));

/** Samples of one loop, about `seconds` long in all. */
async function sampleLoop({ loop, arrays = 2, ...options }) {
  const time = (more) =>
    native().memoryBandwidth({
      loop: nativeMemoryLoops[loop],
      arrays,
      repeats: 1,
      ...options,
      ...more,
    });
  const once = await time({ warmup: 1, samples: 1 });
  const samples = Math.max(5, Math.min(100, Math.round(seconds / once.seconds[0])));
  const { seconds: measured, bytes } = await time({ warmup: 2, samples });
  return { seconds: [...measured], movedBytes: bytes };
}

const loops = { in: 'reduceInPlace', out: 'reduceOutOfPlace' };

async function compare(ranks, bytes) {
  for (const place of ['in', 'out']) {
    // Loop and ours each bring their own arrays, and one is freed before the other comes.
    if (ranks * bytes * (place === 'in' ? 1 : 2) > 0.8 * freemem()) continue;
    for (let round = 0; round < rounds; round += 1) {
      const loop = await sampleLoop({ loop: loops[place], bytes, arrays: ranks, threads });
      const common = { kind: 'allReduce', ranks, bytes, place };
      print({ ...common, contender: 'loop', seconds: loop.seconds, wrong: 0 });
      const comm = Communicator.local(ranks);
      const ours = await sampleAllReduce(comm, { bytes, place, shared: false, seconds });
      await comm.close();
      print({ ...common, contender: 'local', ...ours });
    }
  }
}

const sizes = quick ? [MiB] : [4 * MiB, 16 * MiB, 64 * MiB, 256 * MiB];
for (const ranks of [2, 4]) {
  for (const bytes of sizes) await compare(ranks, bytes);
}

const bytes = quick ? MiB : 64 * MiB;
const described = [
  { loop: 'copy', name: 'copy' },
  { loop: 'triad', name: 'triad' },
  { loop: 'reduceInPlace', arrays: 2, name: '2 reads, 2 writes, in place' },
  { loop: 'reduceInPlace', arrays: 4, name: '4 reads, 4 writes, in place' },
  { loop: 'reduceOutOfPlace', arrays: 2, name: '2 reads, 2 writes, out of place' },
  { loop: 'reduceOutOfPlace', arrays: 4, name: '4 reads, 4 writes, out of place' },
];
for (const { name, ...options } of described) {
  for (const count of new Set([1, threads])) {
    const result = await sampleLoop({ ...options, bytes, threads: count });
    print({ kind: 'memory', name, threads: count, bytes, ...result });
  }
}
