// What a process with several GPUs refuses of its own lists, before anything is asked of others.
import { afterEach, expect, it } from 'vitest';

import { GpuScripts } from '../support/gpu-processes.js';
import { needs, reportsOf, world } from '../support/world-groups.js';

const scripts = new GpuScripts();
afterEach(() => scripts.remove());

/** Calls in a world of two ranks here, and what their errors name. */
const refused: readonly (readonly [string, string, RegExp])[] = [
  ['group.send(a, ends)', 'ERR_INVALID_ARG_VALUE', /1 sent.*0 received/],
  ['group.receive(b, ends)', 'ERR_INVALID_ARG_VALUE', /0 sent.*1 received/],
  [
    'group.sendReceive({ send: [{ ...ends, data: a }], receive: [{ ...ends, data: short }] })',
    'ERR_INVALID_ARG_VALUE',
    /100 float32 sent.*5 float32 received/,
  ],
  ['group.send(a, { from: 0, to: 0 })', 'ERR_UNSUPPORTED', /rank 0.*both/],
  ['group.send(a, { from: 2, to: 1 })', 'ERR_OUT_OF_RANGE', /from/],
  ['group.send(b, ends)', 'ERR_INVALID_ARG_TYPE', /data.*rank 0/],
  ['group.send(a, { ...ends, tag: 1 })', 'ERR_INVALID_ARG_VALUE', /tag/],
  ['group.sendReceive({ send: a })', 'ERR_INVALID_ARG_TYPE', /for send/],
  ['group.neighborAllReduce(a)', '', /array of 2.*data/],
  ['group.neighborAllReduce([a, short])', '', /data.*ranks 0 and 1/],
  ['group.neighborAllReduce([b, a])', '', /on gpu:0 for data.*gpu:1/],
  ['group.neighborAllReduce(data, { neighbors: [{}] })', '', /array of 2.*neighbors/],
  ['group.neighborAllReduce(data, { neighbors: [{}, { selfWeight: 1 }] })', '', /srcWeights/],
  ['group.neighborAllReduce(data, { selfWeight: 1 })', '', /selfWeight/],
  ['group.hierarchicalNeighborAllReduce(data)', '', /setMachineTopology/],
  ['group.neighborAllGather(a)', '', /array of 2.*data/],
  ['group.neighborAllGather(data, { neighbors: [{}] })', '', /array of 2.*neighbors/],
  ['group.neighborAllGather(data, { neighbors: [{ srcRanks: [1] }, {}] })', '', /dstRanks/],
  ['group.neighborAllGather([a, half])', '', /float16 for rank 1/],
  ['group.neighborAllGather(data, { srcRanks: [1], dstRanks: [1] })', '', /srcRanks/],
  ['group.pairGossip(data, {})', '', /array of 2.*pairs/],
  ['group.pairGossip(data, { pairs: [{ peer: 1 }, null] })', '', /rank 0.*rank 1.*each other/],
  ['group.pairGossip([a, short], { pairs: both })', '', /elements.*100.*5/],
  ['group.pairGossip([a, half], { pairs: both })', '', /float16 for rank 1/],
  ['group.pairGossip(data, { pairs: [{ peer: 0 }, null] })', '', /peer/],
  ['group.pairGossip(data, { pairs: [{ peer: 1, selfWeight: 1 }, both[1]] })', '', /pairWeight/],
  ['group.pairGossip(data, { peer: 1 })', '', /peer/],
  ['group.createWindow(a)', '', /array of 2.*data/],
  ['group.createWindow([a, half])', '', /float16 for rank 1/],
  ['group.createWindow([b, a])', '', /on gpu:0 for data.*gpu:1/],
  [`group.createWindow(data, { name: 'one' })`, '', /name/],
  ['group.split([0])', '', /array of 2.*colors/],
  ['group.split(0)', '', /array of 2.*colors/],
  ['group.split([0, -1])', '', /colors\[1\]/],
  ['group.split([0, 0], [1])', '', /array of 2.*keys/],
  [`Communicator.world({ backend: 'nccl', gpus: [] })`, '', /for gpus.*array of 0/],
  [`Communicator.world({ backend: 'nccl', gpus: [0], gpu: 0 })`, '', /gpu\b.*gpus/],
  [`Communicator.world({ backend: 'tcp', gpus: [0] })`, '', /gpus.*'nccl'.*'tcp'/],
  ['Communicator.world({ gpus: [0] })', '', /gpus.*'nccl'.*'shm'/],
  [`Communicator.world({ backend: 'nccl', gpus: 0 })`, '', /array.*gpus.*0$/],
  [`Communicator.world({ backend: 'nccl', gpus: [0, 0.5] })`, '', /gpus\[1\], got 0\.5/],
];

it('names what does not fit, and the group is as good as before', async (context) => {
  needs(2, context);
  const source = `${world([2])}
    const data = await buffersOf(group, () => 1);
    const [a, b] = data;
    const [, short] = await buffersOf(group, () => 1, 5);
    const half = DeviceBuffer.alloc(group.gpus[1], 'float16', 100);
    const ends = { from: 0, to: 1 };
    const both = [{ peer: 1 }, { peer: 0 }];
    for (const call of [${refused.map(([call]) => `() => ${call}`).join(', ')}]) {
      const { code, message } = await outcome((async () => call())());
      report([code, message]);
    }
    await group.sendReceive({ send: [{ ...ends, data: a }], receive: [{ ...ends, data: b }] });
    report(await lasts(await group.pairGossip(data, { pairs: [null, null] })));
    await group.close();
  `;
  const [reports] = await reportsOf(scripts, [2], source);
  expect(reports!.at(-1)).toEqual([1, 1]);
  expect(reports).toHaveLength(refused.length + 1);
  for (const [at, [call, code, names]] of refused.entries()) {
    const [given, message] = reports![at] as [string, string];
    expect([call, given]).toEqual([call, expect.stringContaining(code || 'ERR_')]);
    expect(message, call).toMatch(names);
  }
});
