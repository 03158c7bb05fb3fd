import { describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/communicator/communicator.js';
import type { LocalGroup } from '../../lib/communicator/communicator.js';
import { errorWith } from '../support/errors.js';

const data = (value = 1) => new Float32Array(4).fill(value);

async function pair(): Promise<[LocalGroup, Communicator, Communicator]> {
  const group = Communicator.local(2);
  const [a, b] = (await group.openRanks()) as [Communicator, Communicator];
  return [group, a, b];
}

describe('close', () => {
  it('waits for what is pending', async () => {
    const [group, a, b] = await pair();
    const mine = data();
    const order: string[] = [];
    const pending = a.allReduce(mine).then(() => order.push('allReduce'));
    const closed = a.close().then(() => order.push('close'));
    await b.allReduce(data(2));
    await Promise.all([pending, closed]);
    expect(order).toEqual(['allReduce', 'close']);
    expect(mine[0]).toBe(3);
    await group.close();
  });

  it('is idempotent, and makes later calls fail with ERR_CLOSED', async () => {
    const one = Communicator.local(2);
    await Promise.all([one.close(), one.close()]);
    await one.close();
    await expect(one.allReduce([data(), data()])).rejects.toMatchObject({
      code: 'ERR_CLOSED',
      usable: false,
    });
    expect(() => one.barrierSync()).toThrow(/closed/);
    expect(() => one.allocShared('float32', 4)).toThrow(/closed/);
    await expect(one.openRanks()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    expect(one.size).toBe(2);
  });

  it('is what asynchronous disposal does', async () => {
    const one = Communicator.local(1);
    await one[Symbol.asyncDispose]();
    await expect(one.barrier()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });

  it('of a local group closes its ranks', async () => {
    const [group, a] = await pair();
    await group.close();
    await expect(a.barrier()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  });
});

describe('abort', () => {
  it('ends pending and later operations of all ranks with its reason', async () => {
    const [group, a, b] = await pair();
    const pending = a.allReduce(data());
    b.abort('disk full');
    // All at once: each may fail first.
    const ended = await Promise.allSettled([pending, a.barrier(), b.barrier()]);
    const aborted = {
      status: 'rejected',
      reason: {
        code: 'ERR_ABORTED',
        usable: false,
        message: expect.stringContaining('disk full') as string,
      },
    };
    expect(ended).toMatchObject([aborted, aborted, aborted]);
    await group.close();
  });
});

describe('an AbortSignal', () => {
  it('that is already aborted refuses the call', async () => {
    const one = Communicator.local(1);
    const reason = new Error('changed my mind');
    await expect(one.allReduce([data()], { signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(await one.allReduce([data()])).toEqual([data()]);
    await one.close();
  });

  it('drops an operation that has not begun, and its arrays are free at once', async () => {
    const [group, a, b] = await pair();
    const first = a.receive(data(), { from: 1 });
    const controller = new AbortController();
    const mine = data();
    const second = a.receive(mine, { from: 1, tag: 7, signal: controller.signal });
    controller.abort(new Error('not needed'));
    await expect(second).rejects.toThrow('not needed');
    group.allReduceSync([mine, data()]);
    await b.send(data(5), { to: 0 });
    expect(await first).toEqual({ source: 1, count: 4 });
    // The communicator was not harmed.
    await Promise.all([a.barrier(), b.barrier()]);
    await group.close();
  });

  it('aborts the communicator when the operation is running', async () => {
    // Nobody can see from outside when the queue's thread takes an operation. So: try until an abort came after it.
    for (let turns = 1; ; turns *= 2) {
      const [group, a, b] = await pair();
      const controller = new AbortController();
      const running = a.receive(data(), { from: 1, signal: controller.signal });
      for (let i = 0; i < turns; ++i) await new Promise((resolve) => setImmediate(resolve));
      const reason = new Error('too slow');
      controller.abort(reason);
      await expect(running).rejects.toBe(reason);
      const after = await Promise.allSettled([a.barrier(), b.barrier()]);
      await group.close();
      if (after[0].status === 'fulfilled') continue;
      expect(after).toMatchObject([
        { reason: { code: 'ERR_ABORTED' } },
        {
          reason: errorWith('ERR_ABORTED', /receive.*rank 0/),
        },
      ]);
      return;
    }
  });

  it('that is aborted too late does nothing', async () => {
    const [group, a, b] = await pair();
    const controller = new AbortController();
    await Promise.all([a.barrier({ signal: controller.signal }), b.barrier()]);
    controller.abort();
    expect(await Promise.all([a.barrier(), b.barrier()])).toEqual([undefined, undefined]);
    await group.close();
  });
});
