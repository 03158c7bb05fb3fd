// A world's whole test as a script of its ranks, whatever they meet over and wherever their arrays are.
/** What each rank reports. */
export interface Report {
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly wrong: readonly string[];
}

/** Every kind of call, on numbers whose sums are exact; `gpus`: with arrays on these, else in the host's memory. */
export const everything = (backend: string, gpus = 0): string => `
  const place = process.env.RANK ?? process.env.OMPI_COMM_WORLD_RANK ?? process.env.PMI_RANK;
  const onGpus = ${gpus > 0};
  const own = Number(place) % ${gpus};
  const comm = await Communicator.world({ backend: '${backend}', ...(onGpus ? { gpu: own } : {}) });
  const { rank, size } = comm;
  const wrong = [];
  const types = { float64: Float64Array, int32: Int32Array };
  const filled = async (values, dtype = 'float64') => {
    const array = types[dtype].from(values);
    if (!onGpus) return array;
    const buffer = DeviceBuffer.alloc(own, dtype, array.length);
    if (array.length > 0) await buffer.copyFrom(array);
    return buffer;
  };
  const made = (length, valueAt) => filled(Array.from({ length }, (_, i) => valueAt(i)));
  const expect = async (what, given, valueAt, length) => {
    const array = given instanceof DeviceBuffer ? await given.copyTo() : given;
    if (length !== undefined && array.length !== length) wrong.push(what + ' is ' + array.length + ' long');
    const at = array.findIndex((value, i) => Number(value) !== valueAt(i));
    if (at >= 0) wrong.push(what + '[' + at + '] is ' + array[at] + ', not ' + valueAt(at));
  };
  const mine = (i, of = rank) => (i % 5) + of;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const sumOf = (i) => ranks.reduce((sum, r) => sum + mine(i, r), 0);
  const [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
  for (const count of ${JSON.stringify(backend === 'nccl' ? [1, 1000] : gpus > 0 ? [1, 1000, 100_001] : [1, 24, 1000, 400_001])}) {
    const data = () => made(count, (i) => mine(i));
    const root = count % size;
    const joined = (i) => mine(i % count, Math.floor(i / count));
    await expect('allReduce', await comm.allReduce(await data()), sumOf);
    await expect('avg', await comm.allReduce(await made(count, (i) => size * mine(i)), { op: 'avg' }), sumOf);
    await expect('out', await comm.allReduce(await data(), { out: await made(count, () => 0) }), sumOf);
    await expect('max', comm.allReduceSync(await data(), { op: 'max' }), (i) => mine(i, size - 1));
    const reduced = await comm.reduce(await data(), { root });
    if (rank === root) await expect('reduce', reduced, sumOf);
    await expect('broadcast', await comm.broadcast(await data(), { root }), (i) => mine(i, root));
    await expect('allGather', await comm.allGather(await data()), joined);
    const blocks = () => made(size * count, (i) => mine(i));
    await expect('reduceScatter', await comm.reduceScatter(await blocks()), (i) => sumOf(rank * count + i));
    await expect('allToAll', await comm.allToAll(await blocks()), (i) => mine(rank * count + (i % count), Math.floor(i / count)));
    const gathered = await comm.gather(await data(), { root });
    if (rank === root) await expect('gather', gathered, joined);
    const scattered = await made(count, () => 0);
    await comm.scatter(rank === root ? await blocks() : null, { root, out: scattered });
    await expect('scatter', scattered, (i) => mine(rank * count + i, root));
    const message = await data();
    if (size === 1 && ${backend === 'nccl'}) continue;
    // Longer than the message, except with NCCL, which also has no tags.
    const got = await made(count + ${backend === 'nccl' ? 0 : 1}, () => 0);
    const tag = ${backend === 'nccl' ? '{}' : '{ tag: 3 }'};
    // A send may wait for its receive.
    const sending = rank === 0 ? comm.send(message, { to: next, ...tag }) : undefined;
    if (size > 1) await sending;
    const received = await comm.receive(got, { ...tag, ...(${backend === 'nccl'} ? { from: before } : {}) });
    if (rank !== 0) await comm.send(message, { to: next, ...tag });
    await sending;
    if (received.source !== before || received.count !== count) wrong.push('received ' + JSON.stringify(received));
    await expect('receive', got, (i) => (i === count ? 0 : mine(i, before)));
    if (size === 1) continue;
    comm.setTopology(ringGraph(size, 'right'));
    await expect('average', await comm.neighborAllReduce(await data()), (i) => (mine(i) + mine(i, before)) / 2);
    const weights = { selfWeight: 0.5, srcWeights: { [before]: 0.25 }, dstWeights: { [next]: 2 } };
    await expect('weighted', comm.neighborAllReduceSync(await data(), weights), (i) => (mine(i) + mine(i, before)) / 2);
    const lists = { srcRanks: [before], dstRanks: [next] };
    await expect('neighborAllGather', await comm.neighborAllGather(await data(), lists), (i) => mine(i, before));
    if (rank < 2) {
      const pair = await comm.pairGossip(await data(), { peer: 1 - rank, selfWeight: 1, pairWeight: 2 });
      await expect('pairGossip', pair, (i) => mine(i) + 2 * mine(i, 1 - rank));
    }
    const window = await comm.createWindow(await data(), { zeroInit: true });
    await window.put();
    await window.accumulate();
    await comm.barrier();
    await expect('window', await window.updateThenCollect(), (i) => mine(i) + 2 * mine(i, before));
    await window.free();
  }
  // Some send nothing to some; the longer ones go in pieces.
  for (const scale of [1, ${backend === 'nccl' ? 997 : 60_007}]) {
    const countOf = (from, to) => scale * ((from * 2 + to) % 4);
    const block = (from, to) => Array.from({ length: countOf(from, to) }, (_, i) => from * 31 + to * 7 + i);
    const join = (parts) => parts.flat();
    const right = async (what, { data, counts }, want, wantCounts) => {
      await expect(what, data, (i) => want[i], want.length);
      if (String(counts) !== String(wantCounts)) wrong.push(what + ' counts ' + counts);
    };
    const ints = (values) => filled(values, 'int32');
    const receiveSplits = ranks.map((from) => countOf(from, rank));
    const exchanged = await comm.allToAllV(await ints(join(ranks.map((to) => block(rank, to)))), {
      splits: ranks.map((to) => countOf(rank, to)), receiveSplits });
    await right('allToAllV', exchanged, join(ranks.map((from) => block(from, rank))), receiveSplits);
    const counts = ranks.map((from) => countOf(from, 1));
    const ones = join(ranks.map((from) => block(from, 1)));
    const all = await ints(block(rank, 1));
    await right('allGatherV', onGpus ? await comm.allGatherV(all, { counts }) : comm.allGatherVSync(all), ones, counts);
    const root = size - 1;
    const given = await comm.gatherV(await ints(block(rank, 1)), { root, counts });
    if (rank === root) await right('gatherV', given, ones, counts);
    const out = await ints(block(rank, 1).map(() => 0));
    const part = await comm.scatterV(rank === root ? await ints(ones) : null, { root, out, ...(rank === root ? { counts } : {}) });
    await right('scatterV', part, block(rank, 1), counts);
    // The first ranks get the remainder.
    const length = size * scale + size - 1;
    const shares = ranks.map((r) => scale + (r < size - 1 ? 1 : 0));
    const sum = await comm.reduceScatterV(await made(length, (i) => i * (rank + 1)));
    await right('reduceScatterV', sum,
      Array.from({ length: shares[rank] }, (_, i) => (rank * (scale + 1) + i) * size * (size + 1) / 2), shares);
  }
  const part = await comm.split(rank % 2, -rank);
  await expect('split', await part.allReduce(await filled([rank])), () =>
    ranks.filter((r) => r % 2 === rank % 2).reduce((sum, r) => sum + r, 0));
  if (onGpus && (comm.gpus[0] !== own || part.gpus[0] !== own)) wrong.push('gpus');
  await part.close();
  const perNode = Number(process.env.GRADLINK_RANKS_PER_NODE ?? size);
  if (size > perNode && size % perNode === 0) {
    await comm.setMachineTopology(undefined, { ranksPerNode: perNode });
    const node = Math.floor(rank / perNode);
    const nodes = [node, ...exponentialTwoGraph(size / perNode).sources(node)];
    const members = nodes.flatMap((one) => Array.from({ length: perNode }, (_, local) => one * perNode + local));
    for (const length of [1, 100_001]) {
      const mean = await comm.hierarchicalNeighborAllReduce(await made(length, () => 12 * (rank + 1)));
      await expect('hierarchical', mean, () => members.reduce((sum, r) => sum + 12 * (r + 1), 0) / members.length);
    }
  }
  if (!onGpus) {
    const shared = comm.allocShared('float32', 300_001).fill(rank);
    await expect('shared', await comm.allReduce(shared), () => (size * (size - 1)) / 2);
  }
  if (size > 1) {
    const other = comm.allReduce(await made(rank + 1, () => 0), { name: 'own ' + rank });
    const { code, message = '' } = await outcome(other);
    const named = ranks.every((r) => message.includes("'own " + r + "'"));
    if (code !== 'ERR_MISMATCH' || !named) wrong.push('calls that differ: ' + code + ' ' + message);
  }
  if (!onGpus) {
    // Rank r runs out of data after r + 1 steps.
    comm.setJoinable();
    for (let step = 0; step <= rank; ++step) {
      const left = ranks.filter((r) => r >= step).reduce((sum, r) => sum + r + 1, 0);
      for (const count of [1, 3000, 400_000]) {
        await expect('sum of who is left', await comm.allReduce(await made(count, () => rank + 1)), () => left);
      }
      await expect('their mean', comm.allReduceSync(await filled([rank + 1]), { op: 'avg' }), () => left / size);
      const { counts } = await comm.allGatherV(new Int32Array(2));
      if (counts.some((count, r) => count !== (r >= step ? 2 : 0))) wrong.push('counts of who is left: ' + counts);
      const told = await comm.allGather(Int32Array.of(rank)).then(() => 'done', ({ code, usable }) => code + usable);
      if (told !== (step === 0 ? 'done' : 'ERR_UNSUPPORTEDtrue')) wrong.push('allGather of who is left: ' + told);
    }
    if ((await comm.join()) !== size - 1) wrong.push('another was the last to join');
    await expect('all again', await comm.allGather(Int32Array.of(rank)), (i) => i, size);
  }
  await comm.barrier();
  report({ rank, size, backend: comm.backend, wrong });
  await comm.close();
`;

/** What the ranks report, in their order. */
export function wholeWorld(reports: readonly unknown[]): readonly Report[] {
  return [...(reports as readonly Report[])].sort((a, b) => a.rank - b.rank);
}

/** What they report where nothing was wrong. */
export const rightWorld = (size: number, backend: string): readonly Report[] =>
  Array.from({ length: size }, (_, rank) => ({ rank, size, backend, wrong: [] }));
