// The machine's memory bandwidth: bare loops on one thread and on two. Prints JSON lines.
//
//   memory-loops.js BYTES SECONDS
import { availableParallelism } from 'node:os';
import { sampleLoop } from './loops.js';

const [bytes, seconds] = process.argv.slice(2).map(Number);
const threads = Math.min(2, availableParallelism());
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
    const result = await sampleLoop({ ...options, bytes, threads: count, seconds });
    console.log(JSON.stringify({ kind: 'memory', name, threads: count, bytes, ...result }));
  }
}
