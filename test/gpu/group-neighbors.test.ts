// Messages, neighbours, windows and nodes in worlds of processes that hold several GPUs each. Each shape of a world is
// started once and makes all calls.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { gpuDevices } from '../../lib/gpu/devices.js';
import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

const size = 4;
const ranks = Array.from({ length: size }, (_, rank) => rank);
const beyond = (rank: number, by: number): number => (rank + by + size) % size;
const sumOf = (list: readonly number[], of: (rank: number) => number): number =>
  list.reduce((sum, rank) => sum + of(rank), 0);
const ring = (rank: number): number[] => [beyond(rank, 1), beyond(rank, -1)].sort((a, b) => a - b);

/** A process of one rank is a Communicator, which takes and gives arrays where a group has lists of them. */
const calls = (counts: readonly number[]): string => `${world(counts)}
  const single = counts[process_] === 0;
  const one = (list) => (single ? list[0] : list);
  const many = (result) => (single ? [result] : result);
  const each = (of) => (single ? of(ranks[0]) : { neighbors: ranks.map(of) });
  const beyond = (rank, by) => (rank + by + size) % size;
  const allOf = async (result) => Promise.all(many(result).map(async (one) => Array.from(await one.copyTo())));
  const told = {};

  const average = async (optionsOf) => {
    const data = await buffersOf(group, (i) => ranks[i] + 1);
    const out = await buffersOf(group, () => 0);
    const result = await group.neighborAllReduce(one(data), { ...(optionsOf && each(optionsOf)), out: one(out) });
    return many(result)[0] === out[0] && (await last(data[0])) === ranks[0] + 1 ? lasts(many(result)) : 'in place';
  };
  const averages = [await average()];
  group.setTopology(ringGraph(size, 'right'));
  averages.push(await average());
  // Each takes twice what the next rank sends, which sends three times what it has.
  averages.push(await average((rank) => ({
    selfWeight: 0.5,
    srcWeights: { [beyond(rank, 1)]: 2 },
    dstWeights: { [beyond(rank, -1)]: 3 },
  })));
  const lacks = (rank) => ({ selfWeight: 1, srcWeights: rank === 0 ? { 1: 1 } : {}, dstWeights: {} });
  told.averages = [averages, (await outcome(average(lacks))).code];

  // Rank r has r + 1 elements: r, r + 10, r + 20, … Each sends to the two before it, and lists the nearer one last.
  const count = (rank) => rank + 1;
  const mine = await Promise.all(group.gpus.map(async (gpu, i) => {
    const buffer = DeviceBuffer.alloc(gpu, 'float32', count(ranks[i]));
    await buffer.copyFrom(Float32Array.from({ length: count(ranks[i]) }, (_, at) => ranks[i] + 10 * at));
    return buffer;
  }));
  const lists = (rank, sources, destinations) => {
    const srcRanks = sources.map((by) => beyond(rank, by));
    return { srcRanks, dstRanks: destinations.map((by) => beyond(rank, by)), srcCounts: srcRanks.map(count) };
  };
  const listed = await group.neighborAllGather(one(mine), each((rank) => lists(rank, [2, 1], [-1, -2])));
  const places = group.gpus.map((gpu, i) => DeviceBuffer.alloc(gpu, 'float32', count(beyond(ranks[i], -1))));
  const before = each((rank) => lists(rank, [-1], [1]));
  const blocking = many(group.neighborAllGatherSync(one(mine), { ...before, out: one(places) }));
  const alike = await buffersOf(group, (i) => ranks[i], 2);
  told.gathered = [
    await allOf(listed),
    blocking.every((one, i) => one === places[i]) && (await allOf(one(places))),
    await allOf(await group.neighborAllGather(one(alike))),
  ];

  told.pairs = [];
  for (const [turn, peers] of [[1, 0, 3, 2], [2, 3, 0, 1], [3, null, null, 0]].entries()) {
    const data = await buffersOf(group, (i) => 10 ** ranks[i]);
    const into = turn === 1 ? undefined : await buffersOf(group, () => 0);
    const out = into && { out: one(into) };
    const weights = turn === 2 ? { selfWeight: 2, pairWeight: 3 } : {};
    const pairs = ranks.map((rank) => peers[rank] === null ? null : { peer: peers[rank], ...weights });
    if (single && pairs[0] === null) {
      told.pairs.push([10 ** ranks[0]]);
      continue;
    }
    const options = single ? { ...pairs[0], ...out } : { pairs, ...out };
    const result = turn === 0 ? group.pairGossipSync(one(data), options) : await group.pairGossip(one(data), options);
    const inPlace = (i) => into === undefined || pairs[i] === null;
    const right = many(result).every((one, i) => one === (inPlace(i) ? data : into)[i]);
    told.pairs.push(right ? await lasts(many(result)) : ['elsewhere']);
  }

  group.setTopology(ringGraph(size));
  const held = await buffersOf(group, (i) => 10 ** ranks[i]);
  const windows = many(await group.createWindow(one(held), { zeroInit: true }));
  const onEach = (body) => Promise.all(windows.map(body));
  // Everybody writes, some of it twice; then each takes the average of its own and what came.
  await onEach((one) => one.put());
  await onEach((one) => one.accumulate());
  await group.barrier();
  const versions = windows.map((one) => one.versions());
  await onEach((one) => one.update());
  const taken = await lasts(windows.map((one) => one.array));
  await group.barrier();
  // Read, with weights.
  await onEach((one) => one.get({ srcWeights: { [one.sources[0]]: 2 } }));
  await group.barrier();
  await onEach((one) => one.update({ selfWeight: 0, srcWeights: { [one.sources[0]]: 1 } }));
  const read = await lasts(windows.map((one) => one.array));
  await group.barrier();
  const neighbors = windows.map((one) => [one.sources, one.destinations]);
  for (const one of windows) await one.free();
  told.windows = [neighbors, versions, taken, read];
  told.freed = (await outcome(windows[0].put())).code;

  // Two nodes of two ranks, of which a process may hold one of each.
  const overNodes = async (weights) => {
    const data = await buffersOf(group, (i) => ranks[i] + 1);
    const machines = weights && (single ? weights(ranks[0]) : { machines: ranks.map(weights) });
    return lasts(many(await group.hierarchicalNeighborAllReduce(one(data), machines)));
  };
  await group.setMachineTopology(undefined, { ranksPerNode: 2 });
  told.nodes = [await overNodes(), await overNodes((rank) => {
    const other = rank < 2 ? 1 : 0;
    return { selfWeight: 1, srcMachineWeights: { [other]: 2 }, dstMachineWeights: [other] };
  })];
  // New nodes: one of all.
  await group.setMachineTopology(undefined, { ranksPerNode: 4 });
  told.nodes.push(await overNodes());

  await group.barrier();
  report(told);
  await group.close();
`;

interface Told {
  readonly averages: readonly [lists: number[][], code: string];
  readonly gathered: readonly number[][][];
  readonly pairs: readonly number[][];
  readonly windows: readonly [unknown[], unknown[], number[], number[]];
  readonly freed: string;
  readonly nodes: readonly number[][];
}

describe.skipIf(gpuDevices().length < size).each([[[4]], [[2, 2]], [[0, 2, 1]]])(
  'a world of processes with %j GPUs',
  (counts) => {
    let told: readonly Told[] = [];
    const own = new GpuScripts();
    beforeAll(async () => {
      told = (await reportsOf(own, counts, calls(counts))).map(([one]) => one as Told);
    });
    afterAll(() => own.remove());
    /** What all ranks have, in their order. */
    const all = <T>(of: (one: Told) => readonly T[]): T[] => told.flatMap(of);
    const close = (of: (rank: number) => number) =>
      ranks.map((rank) => expect.closeTo(of(rank), 2) as number);

    it('averages over the topology and by weights, and all are told what does not fit', () => {
      const lists = [0, 1, 2].map((at) => all(({ averages }) => averages[0][at]!));
      expect(lists).toEqual([
        close((rank) => sumOf([rank, beyond(rank, -1), beyond(rank, -2)], (one) => one + 1) / 3),
        close((rank) => sumOf([rank, beyond(rank, -1)], (one) => one + 1) / 2),
        close((rank) => (rank + 1) / 2 + 6 * (beyond(rank, 1) + 1)),
      ]);
      expect(told.map(({ averages }) => averages[1])).toEqual(counts.map(() => 'ERR_MISMATCH'));
    });

    it('gathers from neighbours by lists and over the topology', () => {
      const of = (rank: number) => Array.from({ length: rank + 1 }, (_, at) => rank + 10 * at);
      expect([0, 1, 2].map((at) => all(({ gathered }) => gathered[at]!))).toEqual([
        ranks.map((rank) => [...of(beyond(rank, 2)), ...of(beyond(rank, 1))]),
        ranks.map((rank) => of(beyond(rank, -1))),
        ranks.map((rank) => [beyond(rank, -1), beyond(rank, -1)]),
      ]);
    });

    it('averages in pairs', () => {
      expect([0, 1, 2].map((turn) => all(({ pairs }) => pairs[turn]!))).toEqual([
        [5.5, 5.5, 550, 550],
        [50.5, 505, 50.5, 505],
        [3002, 10, 100, 2003],
      ]);
    });

    it('writes and reads windows of ranks of any process', () => {
      expect(all(({ windows }) => windows[0])).toEqual(ranks.map((one) => [ring(one), ring(one)]));
      expect(all(({ windows }) => windows[1])).toEqual(
        ranks.map((one) => Object.fromEntries(ring(one).map((from) => [from, 1]))),
      );
      const average = (rank: number) =>
        (10 ** rank + sumOf(ring(rank), (one) => 2 * 10 ** one)) / 3;
      expect(all(({ windows }) => windows[2])).toEqual(close(average));
      expect(all(({ windows }) => windows[3])).toEqual(
        close((rank) => 2 * average(ring(rank)[0]!)),
      );
      expect(told.map(({ freed }) => freed)).toEqual(counts.map(() => 'ERR_CLOSED'));
    });

    it('averages over nodes', () => {
      expect([0, 1, 2].map((call) => all(({ nodes }) => nodes[call]!))).toEqual([
        [2.5, 2.5, 2.5, 2.5],
        // (3 + 2 * 7) / 2 and (7 + 2 * 3) / 2.
        [8.5, 8.5, 6.5, 6.5],
        [2.5, 2.5, 2.5, 2.5],
      ]);
    });
  },
);

describe('messages of a world of processes with several GPUs', () => {
  it('go between any two ranks, of one process too', async (context) => {
    needs(4, context);
    // Around the ring, of all ranks at once; then two in a row from rank 1 to rank 2.
    const source = `${world([2, 2])}
      const mine = await buffersOf(group, (i) => ranks[i] + 1);
      const got = await buffersOf(group, () => 0);
      await group.sendReceive({
        send: ranks.map((from, i) => ({ from, to: (from + 1) % size, data: mine[i] })),
        receive: ranks.map((to, i) => ({ from: (to + size - 1) % size, to, data: got[i] })),
      });
      report(await lasts(got));
      const ends = { from: 1, to: 2 };
      if (process_ === 0) {
        await group.send(mine[1], ends);
        await group.send(got[1], ends);
      } else {
        await Promise.all([group.receive(mine[0], ends), group.receive(got[0], ends)]);
        report(await lasts([mine[0], got[0]]));
      }
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 2], source)).toEqual([
      [[4, 1]],
      [
        [2, 3],
        [2, 1],
      ],
    ]);
  });

  it('meet those of processes that hold one rank', async (context) => {
    needs(3, context);
    const source = `${world([2, 0])}
      const [data] = await buffersOf(group, () => process_ + 1);
      if (process_ === 0) {
        await group.send(data, { from: 0, to: 2 });
        await group.receive(data, { from: 2, to: 0 });
      } else {
        const [got] = await buffersOf(group, () => 0);
        report(await group.receive(got, { from: 0 }));
        await group.send(got, { to: 0 });
      }
      report(await last(data));
      await group.close();
    `;
    expect(await reportsOf(scripts, [2, 0], source)).toEqual([[1], [{ source: 0, count: 100 }, 2]]);
  });
});

it('windows have locks between ranks of one process and of others', async (context) => {
  needs(3, context);
  // Ranks 0 and 1 here, 2 there. Each counts up what rank 1 shows, in its own time.
  const source = `${world([2, 0])}
    group.setTopology(exponentialTwoGraph(3));
    const data = await buffersOf(group, () => 0);
    const windows = process_ === 1 ? [await group.createWindow(data[0])] : await group.createWindow(data);
    const seen = async (one, from) => {
      await one.get({ srcWeights: { [from]: 1 } });
      const out = DeviceBuffer.alloc(one.array.device, 'float32', 100);
      await one.update({ selfWeight: 0, srcWeights: { [from]: 1 }, out });
      return lasts([out]);
    };
    let inside = 0;
    const mine = windows.filter((_, i) => ranks[i] !== 1);
    for (let turn = 0; turn < 5; ++turn) {
      await Promise.all(mine.map((one) => one.withMutex(async () => {
        ++inside;
        await seen(one, 1);
        --inside;
      }, { ranks: [1] })));
    }
    report(inside);
    await group.barrier();
    // Rank 0's lock of rank 1's memory is taken; rank 1 keeps it from rank 0, not from rank 2.
    if (process_ === 0) {
      await windows[0].withMutex(async () => {
        const waited = await outcome(windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [0], timeoutMs: 50 }));
        report([waited.code, waited.rank]);
        report(await windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [2] }));
      }, { ranks: [1] });
      report(await windows[1].withMutex(() => 'got it', { forSelf: true, ranks: [0] }));
    }
    await group.barrier();
    for (const one of windows) await one.free();
    await group.close();
  `;
  expect(await reportsOf(scripts, [2, 0], source)).toEqual([
    [0, ['ERR_TIMEOUT', 0], 'got it', 'got it'],
    [0],
  ]);
});
