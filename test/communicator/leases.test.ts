import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { errorWith } from '../support/errors.js';

// A receive that nobody answers yet, or a collective that waits for the other rank, holds its arrays for as long as
// the test wants.
describe('arrays of a pending operation', () => {
  let group: LocalGroup;
  let a: Communicator;
  let b: Communicator;
  beforeEach(async () => {
    group = Communicator.local(2);
    [a, b] = (await group.openRanks()) as [Communicator, Communicator];
  });
  afterEach(() => group.close());

  const data = () => new Float32Array([1, 2, 3, 4]);

  it('may not be written by a second operation, and may be again when the first is done', async () => {
    const mine = data();
    const pending = a.allReduce(mine);
    const error = await a.allReduce(mine).then(String, (thrown: unknown) => thrown);
    expect(error).toEqual(errorWith('ERR_BUFFER_IN_USE', /allReduce writes.*allReduce.*writing/));
    await Promise.all([pending, b.allReduce(data())]);
    await Promise.all([a.allReduce(mine), b.allReduce(data())]);
    expect([...mine]).toEqual([3, 6, 9, 12]);
  });

  it('may not be read while written, nor written while read', async () => {
    const mine = data();
    const receiving = a.receive(mine, { from: 1 });
    await expect(a.send(mine, { to: 1 })).rejects.toMatchObject({ code: 'ERR_BUFFER_IN_USE' });
    await b.send(data(), { to: 0 });
    await receiving;

    const sent = data();
    const reading = a.allReduce(sent, { out: data() });
    await expect(a.broadcast(sent)).rejects.toThrow(
      errorWith('ERR_BUFFER_IN_USE', /broadcast writes.*allReduce.*reading/),
    );
    await Promise.all([reading, b.allReduce(data())]);
  });

  it('may be read by several', async () => {
    const shared = data();
    const results = await Promise.all([
      a.allReduce(shared, { out: data() }),
      b.allReduce(shared, { out: data() }),
    ]);
    expect(results.map((one) => [...one])).toEqual([
      [2, 4, 6, 8],
      [2, 4, 6, 8],
    ]);
  });

  it('are told apart by their bytes, not their buffer', async () => {
    const buffer = new Float32Array([1, 2, 3, 4]);
    const left = buffer.subarray(0, 2);
    const right = buffer.subarray(2);
    await Promise.all([a.allReduce(left), b.allReduce(right)]);
    expect([...buffer]).toEqual([4, 6, 4, 6]);
    const pending = a.allReduce(left);
    await expect(b.allReduce(buffer.subarray(1, 3))).rejects.toMatchObject({
      code: 'ERR_BUFFER_IN_USE',
    });
    await Promise.all([pending, b.allReduce(right)]);
  });

  it('are looked at by the blocking twins too', async () => {
    const mine = data();
    const pending = a.receive(mine, { from: 1 });
    expect(() => group.allReduceSync([mine, data()])).toThrow(
      errorWith('ERR_BUFFER_IN_USE', /receive.*writing/),
    );
    expect(() => b.sendSync(mine, { to: 0 })).toThrow(
      errorWith('ERR_BUFFER_IN_USE', /receive.*writing/),
    );
    b.sendSync(new Float32Array([9]), { to: 0 });
    expect(await pending).toEqual({ source: 1, count: 1 });
    group.allReduceSync([mine, data()]);
    expect(mine[0]).toBe(10);
  });

  it('come back when an operation fails', async () => {
    const mine = data();
    await expect(a.allReduce(mine, { timeoutMs: 5 })).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    const alone = Communicator.local(1);
    await alone.allReduce([mine]);
    expect([...mine]).toEqual([1, 2, 3, 4]);
    await alone.close();
  });

  it('stay where they are when only native code still knows them', async () => {
    // Nothing here holds the array while the message is on its way.
    const receiving = (() => a.receive(new Float32Array(1000), { from: 1 }))();
    const churn = Array.from({ length: 200 }, () => new Float32Array(10_000).fill(7));
    await b.send(new Float32Array(1000).fill(1), { to: 0 });
    expect(await receiving).toEqual({ source: 1, count: 1000 });
    expect(churn.every((one) => one[9_999] === 7)).toBe(true);
  });
});
