// Memory within a container's limit.
import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest';

import { MemoryGroup } from '../support/memory-group.js';
import { Scripts, well } from '../support/processes.js';

const limit = 600 * 2 ** 20;

let scripts: Scripts;
let group: MemoryGroup | undefined;
beforeEach(() => {
  scripts = new Scripts();
});
afterEach(async () => {
  await scripts.remove();
  await group?.remove();
  group = undefined;
});

/** Two ranks in a group. */
async function ranks(context: TestContext, body: string) {
  const { launcher } = (group = MemoryGroup.make(context, limit));
  const job = { GRADLINK_JOB: `limit-${String(process.pid)}`, GRADLINK_SIZE: '2' };
  const script = `
    const comm = await Communicator.world();
    const tryTo = (count) => {
      try { return comm.allocShared('float32', count); } catch (error) { return plain(error); }
    };
    ${body}
    const small = comm.allocShared('float32', 1000).fill(1);
    await comm.allReduce(small);
    report(small[999]);
    await comm.close();
  `;
  const running = ['0', '1'].map((rank) =>
    scripts.startUnder(launcher, script, { ...job, GRADLINK_RANK: rank }),
  );
  return Promise.all(running.map((one) => one.ended));
}

describe('shared arrays in a container with a limit', () => {
  it.for([3e8, 1e9])('of %i elements are refused, and the ranks go on', async (count, context) => {
    const refused = { code: 'ERR_OUT_OF_MEMORY', op: 'allocShared' };
    for (const one of await ranks(context, `report(tryTo(${String(count)}));`)) {
      expect(one).toMatchObject({ ...well, reports: [refused, 2] });
      expect(JSON.stringify(one.reports[0])).toContain(`limit is ${String(limit)} bytes`);
    }
  });

  it('of both ranks at once stay below it', async (context) => {
    const body = `
      await comm.barrier();
      const held = [];
      for (let i = 0; i < 40; ++i) held.push(tryTo(8e6));
      const got = held.filter((one) => one instanceof Float32Array);
      got.forEach((array) => array.fill(1));
      report([got.length > 0, got.length < 40, held.at(-1).code]);
      await comm.barrier();
    `;
    for (const one of await ranks(context, body)) {
      expect(one).toMatchObject({ ...well, reports: [[true, true, 'ERR_OUT_OF_MEMORY'], 2] });
    }
  });
});
