// Memory within a limit: a container's, made here as a control group of the kernel's.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, it, type TestContext } from 'vitest';

import { Scripts, well } from '../support/processes.js';

const limit = 600 * 2 ** 20;

let scripts: Scripts;
let group: string | undefined;
beforeEach(() => {
  scripts = new Scripts();
});
afterEach(async () => {
  await scripts.remove();
  // The kernel lets go of a group a moment after its last process has ended.
  while (group !== undefined && existsSync(group)) {
    try {
      rmdirSync(group);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
      await sleep(1);
    }
  }
});

/** A group of `limit` bytes below this process's own, whichever version the machine has; skips where none can be made. */
function makeGroup(context: TestContext): string {
  const own = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .map(([, controllers = '', path = '']) => ({ controllers: controllers.split(','), path }));
  const first = own.find(({ controllers }) => controllers.includes('memory'));
  const second = own.find(({ controllers }) => controllers[0] === '');
  const parent = first
    ? join('/sys/fs/cgroup/memory', first.path)
    : join('/sys/fs/cgroup', second?.path ?? '');
  const made = join(parent, `gradlink-test-${String(process.pid)}`);
  try {
    mkdirSync(made);
    group = made;
    writeFileSync(join(made, first ? 'memory.limit_in_bytes' : 'memory.max'), String(limit));
  } catch (error) {
    context.skip(`no control group with a limit can be made here: ${String(error)}`);
  }
  return made;
}

/** Two ranks in a group. */
async function ranks(context: TestContext, body: string) {
  const launcher = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', makeGroup(context)];
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

  it('that are more than any array are refused too', async (context) => {
    for (const one of await ranks(context, `report(tryTo(2 ** 40).code);`)) {
      expect(one).toMatchObject({
        ...well,
        // By the memory that there is, or by what Node shows as one array.
        reports: [expect.stringMatching(/^ERR_OUT_OF_(MEMORY|RANGE)$/) as string, 2],
      });
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
