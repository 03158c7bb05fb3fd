// gradlink's own timed loop with the sampling of the peers' programs: verify, warm up with a batch that grows, then samples of
// one call each or, for short calls, of as many as fill 2 ms; the slowest rank counts.
import {
  native,
  nativeCombine,
  nativeOf,
  parseDType,
  reduceOpNumber,
} from '../../dist/internal.js';

const minSamples = 5;
const maxSamples = 200;
/** So long peers' programs make calls before they take samples, in the arrays of the samples. */
const warmSeconds = 0.02;

/**
 * @param {import('../../dist/index.js').Communicator} comm
 * @param {{bytes: number, place: 'in' | 'out', shared: boolean, seconds: number}} wanted seconds: about how long to sample
 * @returns {Promise<{calls: number, seconds: number[], wrong: number}>} seconds of one call, a value a sample
 */
export async function sampleAllReduce(comm, { bytes, place, shared, seconds }) {
  const time = (options) =>
    native().timeCollective(nativeOf(comm), {
      collective: 'allReduce',
      count: bytes / Float32Array.BYTES_PER_ELEMENT,
      dtype: parseDType('float32'),
      op: reduceOpNumber('sum'),
      root: 0,
      inPlace: place === 'in',
      shared,
      warmup: 0,
      combine: nativeCombine.max,
      verify: false,
      seed: 0,
      timeoutMs: -1,
      ...options,
    });
  // Every rank gets the same seconds, and so decides alike.
  const warm = await warmUp(
    async (batch) => (await time({ samples: 1, batch, warmup: 1 })).seconds[0],
  );
  const calls = warm < 1e-3 ? Math.max(1, Math.floor(2e-3 / warm)) : 1;
  const fitting = Math.floor(seconds / (warm * calls));
  const samples = Math.max(minSamples, Math.min(maxSamples, fitting));
  // Arrays are new for each of these: what came before has warmed others.
  const warmup = Math.max(1, Math.ceil(warmSeconds / (warm * calls)));
  const result = await time({ warmup, samples, batch: calls, verify: true });
  const wrong = result.wrongBefore + result.wrongAfter;
  return { calls, seconds: [...result.seconds], wrong };
}

/**
 * The same for the average with one neighbour a call, 1, 2, 4 ... ranks away in turn, and for an all-reduce that is called
 * alike: blocking calls from JavaScript.
 *
 * @param {import('../../dist/index.js').Communicator} comm
 * @param {{bytes: number, place: 'in' | 'out', shared: boolean, seconds: number}} wanted
 * @returns {Promise<{neighbors: Sample, allReduce: Sample}>}
 * @typedef {{calls: number, seconds: number[], wrong: number}} Sample
 */
export async function sampleNeighbors(comm, { bytes, place, shared, seconds }) {
  const { rank, size } = comm;
  const count = bytes / Float32Array.BYTES_PER_ELEMENT;
  const array = () => (shared ? comm.allocShared('float32', count) : new Float32Array(count));
  const data = array();
  const out = place === 'in' ? data : array();
  const fill = () => {
    for (let i = 0; i < count; ++i) data[i] = (i % 61) + rank;
  };
  const steps = [];
  for (let distance = 1; distance < size; distance *= 2) {
    const source = (rank + size - distance) % size;
    steps.push({
      selfWeight: 0.5,
      srcWeights: { [source]: 0.5 },
      dstWeights: [(rank + distance) % size],
      out,
    });
  }
  let step = 0;
  const average = () => comm.neighborAllReduceSync(data, steps[step++ % steps.length]);
  const source = (rank + size - 1) % size;
  const averaged = (i) => (i % 61) + 0.5 * (rank + source);
  const sum = () => comm.allReduceSync(data, { out });
  const summed = (i) => size * (i % 61) + (size * (size - 1)) / 2;
  return {
    neighbors: await sampleCalls(comm, average, { fill, out, expected: averaged, seconds }),
    allReduce: await sampleCalls(comm, sum, { fill, out, expected: summed, seconds }),
  };
}

/** Checks the first call, then times more of them. */
async function sampleCalls(comm, run, { fill, out, expected, seconds }) {
  fill();
  run();
  const wrong = out.filter((value, i) => value !== expected(i)).length;
  const timeBatch = (batch) => {
    comm.barrierSync();
    const start = performance.now();
    for (let i = 0; i < batch; ++i) run();
    return (performance.now() - start) / 1e3 / batch;
  };
  // The slowest rank's, and every rank decides alike.
  const slowest = (own) => comm.allReduceSync(Float64Array.from(own), { op: 'max' });
  const warm = await warmUp((batch) => slowest([timeBatch(batch)])[0]);
  const calls = warm < 1e-3 ? Math.max(1, Math.floor(2e-3 / warm)) : 1;
  const fitting = Math.floor(seconds / (warm * calls));
  const samples = Math.max(minSamples, Math.min(maxSamples, fitting));
  const own = Array.from({ length: samples }, () => timeBatch(calls));
  const total = comm.allReduceSync(Float64Array.of(wrong));
  return { calls, seconds: [...slowest(own)], wrong: total[0] };
}

async function warmUp(timeBatch) {
  for (let batch = 1; ; batch *= 4) {
    const each = await timeBatch(batch);
    if (each * batch > warmSeconds || batch >= 4096) return each;
  }
}
