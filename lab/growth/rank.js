// One rank of the growth measurements.
//
//   rank.js time BYTES SECONDS       all-reduces: rank 0 prints seconds of one, a value a sample, the slowest rank's
//   rank.js calls BYTES CALLS        as many all-reduces, for whoever counts messages: rank 0 prints the CPU time of one,
//                                    the mean of the ranks
//   rank.js gpu-calls BYTES CALLS    the same in the memory of GPUs, which ranks agree on first, each time
//   rank.js bucket BYTES ARRAYS SECONDS   allReduceMany of as many arrays, BYTES together
//   rank.js meet TIMES               ranks that are up meet again in shared memory, as often
//   rank.js meet-tcp                 the same over TCP on loopback, which a process does once
import { createServer } from 'node:net';
import { once } from 'node:events';
import { allReduceMany, Communicator, DeviceBuffer, gpuDevices } from '../../dist/index.js';
import { sampleAllReduce } from '../peers/sample.js';

const [kind, ...given] = process.argv.slice(2);
const [bytes, second, third] = given.map(Number);
const onGpus = kind === 'gpu-calls';
// More simulated hosts than GPUs: several ranks have one.
const gpuOfRank = () => Number(process.env.OMPI_COMM_WORLD_RANK ?? 0) % gpuDevices().length;
const comm = await Communicator.world(
  onGpus ? { backend: 'nccl', check: 'always', gpu: gpuOfRank() } : {},
);
const print = (line) => {
  if (comm.rank === 0) console.log(JSON.stringify(line));
};

/** Of ones, as no loop of the measurements moves zeros: lab/peers/allreduce_loop.h says why. */
async function bucket(arrays, seconds) {
  const count = Math.max(1, Math.floor(bytes / 4 / arrays));
  const data = Array.from({ length: arrays }, () => new Float32Array(count).fill(1));
  const samples = [];
  for (let i = 0; i < 3; i += 1) await allReduceMany(comm, data);
  // Every rank stops at the same call.
  for (let spent = 0; samples.length < 5 || (spent < seconds && samples.length < 200);) {
    comm.barrierSync();
    const start = performance.now();
    await allReduceMany(comm, data);
    const own = (performance.now() - start) / 1e3;
    samples.push(comm.allReduceSync(Float64Array.of(own), { op: 'max' })[0]);
    spent += samples.at(-1);
  }
  return samples;
}

/** Seconds from all being up until the slowest rank has a world, which `join` gives. */
async function meeting(join) {
  comm.barrierSync();
  const start = performance.now();
  const world = await join();
  const own = (performance.now() - start) / 1e3;
  const slowest = comm.allReduceSync(Float64Array.of(own), { op: 'max' })[0];
  await world.close();
  return slowest;
}

async function overTcp() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [port] = comm.broadcastSync(Int32Array.of(server.address().port));
  server.close();
  await once(server, 'close');
  const { rank, size } = comm;
  const place = { RANK: rank, WORLD_SIZE: size, MASTER_ADDR: '127.0.0.1', MASTER_PORT: port };
  Object.assign(process.env, place);
  return await meeting(() => Communicator.world({ backend: 'tcp' }));
}

if (kind === 'meet') {
  const seconds = [];
  for (let i = 0; i < bytes; i += 1) {
    const place = { name: `growth-${i}`, rank: comm.rank, size: comm.size };
    seconds.push(await meeting(() => Communicator.join(place)));
  }
  print({ seconds });
} else if (kind === 'meet-tcp') {
  print({ seconds: [await overTcp()] });
} else if (kind === 'time') {
  const wanted = { bytes, place: 'in', shared: false, seconds: second };
  print(await sampleAllReduce(comm, wanted));
} else if (onGpus) {
  const data = DeviceBuffer.alloc(comm.gpus[0], 'float32', bytes / 4);
  for (let i = 0; i < 10 + second; i += 1) comm.allReduceSync(data);
  print({ calls: second, seconds: [0] });
} else if (kind === 'calls') {
  const data = new Float32Array(bytes / 4).fill(1);
  const run = (calls) => {
    for (let i = 0; i < calls; i += 1) comm.allReduceSync(data);
  };
  // As many whatever is asked: who counts messages takes one count from another.
  run(10);
  const before = process.cpuUsage();
  run(second);
  const { user, system } = process.cpuUsage(before);
  const spent = comm.allReduceSync(Float64Array.of((user + system) / 1e6 / second));
  print({ calls: second, seconds: [spent[0] / comm.size] });
} else {
  print({ seconds: await bucket(second, third) });
}
await comm.close();
