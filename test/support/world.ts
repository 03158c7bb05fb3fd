// A world's whole test as a script of its ranks, whatever they meet over.
/** What each rank reports. */
export interface Report {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly wrong: readonly string[];
}

/** Every collective, small and in many pieces, on numbers whose sums are exact; messages, parts, and a call that differs. */
export const everything = (backend: string): string => `
  const comm = await Communicator.world({ backend: '${backend}' });
  const { rank, size } = comm;
  const wrong = [];
  const expect = (what, array, valueAt) => {
    const at = array.findIndex((value, i) => Number(value) !== valueAt(i));
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + valueAt(at));
  };
  const mine = (i, of = rank) => (i % 5) + of;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const sumOf = (i) => ranks.reduce((sum, r) => sum + mine(i, r), 0);
  for (const count of [1, 24, 1000, 400_001]) {
    const data = Float64Array.from({ length: count }, (_, i) => mine(i));
    const root = count % size;
    expect('allReduce', await comm.allReduce(data.slice()), sumOf);
    expect('avg', await comm.allReduce(data.slice(), { op: 'avg' }), (i) => sumOf(i) / size);
    expect('max', comm.allReduceSync(BigInt64Array.from(data, BigInt), { op: 'max' }), (i) => mine(i, size - 1));
    const reduced = await comm.reduce(data.slice(), { root });
    if (rank === root) expect('reduce', reduced, sumOf);
    expect('broadcast', await comm.broadcast(data.slice(), { root }), (i) => mine(i, root));
    expect('allGather', await comm.allGather(data), (i) => mine(i % count, Math.floor(i / count)));
    const blocks = Float64Array.from({ length: size * count }, (_, i) => mine(i));
    expect('reduceScatter', await comm.reduceScatter(blocks), (i) => sumOf(rank * count + i));
    expect('allToAll', await comm.allToAll(blocks), (i) => mine(rank * count + (i % count), Math.floor(i / count)));
    const gathered = await comm.gather(data, { root });
    if (rank === root) expect('gather', gathered, (i) => mine(i % count, Math.floor(i / count)));
    const scattered = new Float64Array(count);
    await comm.scatter(rank === root ? blocks : null, { root, out: scattered });
    expect('scatter', scattered, (i) => mine(rank * count + i, root));
  }
  const next = (rank + 1) % size;
  const sending = comm.send(Int32Array.of(rank), { to: next, tag: 3 });
  const got = new Int32Array(1);
  const { source } = await comm.receive(got, { tag: 3 });
  await sending;
  expect('receive', [got[0], source], () => (rank + size - 1) % size);
  const part = await comm.split(rank % 2, -rank);
  expect('split', await part.allReduce(Float32Array.of(rank)), () =>
    ranks.filter((r) => r % 2 === rank % 2).reduce((sum, r) => sum + r, 0));
  await part.close();
  const shared = comm.allocShared('float32', 300_001).fill(rank);
  expect('shared', await comm.allReduce(shared), () => (size * (size - 1)) / 2);
  if (size > 1) {
    const other = comm.allReduce(Int32Array.from({ length: rank + 1 }), { name: 'own ' + rank });
    const { code, message = '' } = await outcome(other);
    const named = ranks.every((r) => message.includes("'own " + r + "'"));
    if (code !== 'ERR_MISMATCH' || !named) wrong.push('calls that differ: ' + code + ' ' + message);
  }
  await comm.barrier();
  report({ rank, size, backend: comm.backend, wrong });
  await comm.close();
`;

/** What the ranks report, in their order. */
export function wholeWorld(reports: readonly unknown[]): readonly Report[] {
  return [...(reports as readonly Report[])].sort((a, b) => a.rank - b.rank);
}
