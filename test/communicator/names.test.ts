// What a caller names a collective stands in its errors, in those of ranks whose calls differ, and on timelines.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import {
  allReduceMany,
  Communicator,
  GradlinkError,
  KVStore,
  SGD,
  sparseAllReduce,
} from '../../lib/index.js';
import { folderOfAllTests } from '../support/folders.js';
import { ranksOfTests } from '../support/ranks.js';

const open = ranksOfTests();
let folder = '';
folderOfAllTests((made) => (folder = made));

const floats = (count: number) => new Float32Array(count);

async function failed(call: Promise<unknown>): Promise<GradlinkError> {
  const error: unknown = await call.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(GradlinkError);
  return error as GradlinkError;
}

/** Expects that each of them heard of these names. */
function expectNames(errors: readonly GradlinkError[], names: readonly string[]): void {
  for (const { code, usable, message } of errors) {
    expect([code, usable]).toEqual(['ERR_MISMATCH', true]);
    for (const name of names) expect(message).toContain(`'${name}'`);
  }
}

describe('names and keys are text: a lone surrogate is refused', () => {
  const odd = ['\ud800', 'a\udfffb'];
  const even = '😀';
  const named: Readonly<Record<string, (comm: Communicator, name: string) => Promise<unknown>>> = {
    'of a collective': (comm, name) => comm.barrier({ name }),
    'of many': (comm, name) => allReduceMany(comm, [floats(1)], { name }),
    'of rows': (comm, name) =>
      sparseAllReduce(comm, { indices: Int32Array.of(0), values: floats(1) }, { name }),
    'of a window': async (comm, name) => (await comm.createWindow(floats(1), { name })).free(),
    'of a group': async (_, name) =>
      (
        await Communicator.join({ name: `${String(process.pid)}${name}`, rank: 0, size: 1 })
      ).close(),
    'of a key': async (_, name) => {
      await using kv = await KVStore.create('local');
      await kv.init(name, floats(1));
    },
    'of an optimizer’s key': (_, name) =>
      Promise.resolve().then(() => {
        new SGD().update(name, floats(1), floats(1));
      }),
    'of a multiplier': (_, name) =>
      Promise.resolve().then(() => new SGD({ lrMult: { [name]: 2 } })),
  };
  it.each(Object.entries(named))('%s', async (_, call) => {
    const [comm] = await open(1);
    for (const name of odd) {
      await expect(call(comm!, name)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
    }
    await call(comm!, even);
  });
});

describe('a named collective', () => {
  it('shows the names of all on each rank, where calls do not fit together', async () => {
    const [first, second] = await open(2);
    const errors = await Promise.all([
      failed(first!.allReduce(floats(4), { name: 'grad/conv1' })),
      failed(second!.broadcast(floats(4), { name: 'weights' })),
    ]);
    expectNames(errors, ['grad/conv1', 'weights']);
    expect(errors[0].message).toMatch(/^allReduce 'grad\/conv1': .*allReduce.*broadcast/);
    expect(errors[1].message).toMatch(/^broadcast 'weights': .*allReduce.*broadcast/);
    expect(errors.map(({ op }) => op)).toEqual(['allReduce', 'broadcast']);
    // Made on another thread: the stack is taken anew, name and all.
    expect(errors[0].stack).toContain("allReduce 'grad/conv1'");
  });

  it('shows them of calls with factors, of calls that go together, and beside one without', async () => {
    const [first, second] = await open(2);
    const scaled = first!.allReduce(floats(4), { name: 'scaled', scale: 0.5, postscale: 2 });
    expectNames(await Promise.all([failed(scaled), failed(second!.barrier())]), ['scaled']);
    for (const one of [first!, second!]) one.setFusion();
    const fused = [first!, second!].map((comm) =>
      failed(comm.allReduce(floats(4 + comm.rank), { name: `fused ${comm.rank}` })),
    );
    expectNames(await Promise.all(fused), ['fused 0', 'fused 1']);
  });

  it('shows those of blocking twins', async () => {
    const [first, second] = await open(2);
    const awaited = failed(first!.allReduce(floats(4), { name: 'awaited' }));
    expect(() => second!.allReduceSync(floats(5), { name: 'blocking' })).toThrow(/'awaited'/);
    expectNames([await awaited], ['awaited', 'blocking']);
  });

  it('shows it where a rank does not come, and in its blocking twin', async () => {
    const [first, second] = await open(2);
    const late = failed(first!.barrier({ name: 'epoch 3', timeoutMs: 50 }));
    expect((await late).message).toMatch(/^barrier 'epoch 3': /);
    expect(() => second!.allGatherSync(floats(1), { name: 'losses' })).toThrow(
      /^allGather 'losses': /,
    );
  });

  it('shows it where its array is in use', async () => {
    const [first, second] = await open(2);
    const data = floats(2);
    const one = first!.allReduce(data, { name: 'grad' });
    await expect(first!.allReduce(data, { name: 'again' })).rejects.toThrow(
      /'again'.*'grad'|'grad'.*'again'/s,
    );
    await Promise.all([one, second!.allReduce(floats(2))]);
  });

  it('names need not be equal, and stand on the timeline', async () => {
    const [first, second] = await open(2);
    first!.startTimeline(join(folder, 'trace.json'));
    const [sum] = await Promise.all([
      first!.allReduce(floats(2).fill(1), { name: 'mine' }),
      second!.allReduce(floats(2).fill(2), { name: 'yours' }),
    ]);
    expect([...sum]).toEqual([3, 3]);
    first!.stopTimeline();
    const text = readFileSync(join(folder, 'trace.rank-0.json'), 'utf8');
    expect(text).toContain(`"allReduce 'mine'"`);
  });

  it('of a group in one process too', async () => {
    await using group = Communicator.local(2);
    const sums = await group.allReduce([floats(1).fill(1), floats(1).fill(2)], { name: 'g' });
    expect([...sums[0]!]).toEqual([3]);
  });

  it.each(['', 7])('is a text: %j is refused', async (name) => {
    await using group = Communicator.local(1);
    await expect(group.barrier({ name: name as string })).rejects.toMatchObject({
      code: name === '' ? 'ERR_INVALID_ARG_VALUE' : 'ERR_INVALID_ARG_TYPE',
    });
  });
});
