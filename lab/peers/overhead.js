// What JavaScript adds: the time of importing the package, and of an 8-byte all-reduce of one rank, which moves nothing. A
// fresh process each time, because an import counts once. Prints one JSON line.
//
//   overhead.js CALLS
const calls = Number(process.argv[2]);

const importStart = performance.now();
const { Communicator } = await import('../../dist/index.js');
const importSeconds = (performance.now() - importStart) / 1e3;

const comm = Communicator.local(1);
const data = [new Float32Array(2)];

function timeSync(count) {
  const start = performance.now();
  for (let i = 0; i < count; i += 1) comm.allReduceSync(data);
  return (performance.now() - start) / 1e3 / count;
}

async function timeAwaited(count) {
  const start = performance.now();
  for (let i = 0; i < count; i += 1) await comm.allReduce(data);
  return (performance.now() - start) / 1e3 / count;
}

// The first round is the compiler's.
timeSync(calls);
const syncSeconds = timeSync(calls);
await timeAwaited(calls / 10);
const awaitedSeconds = await timeAwaited(calls / 10);
await comm.close();

console.log(JSON.stringify({ importSeconds, syncSeconds, awaitedSeconds }));
