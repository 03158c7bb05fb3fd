// Windows whose ranks are killed or stopped: who waits for their memory is told who has it, within its deadline.
import { afterEach, describe, expect, it } from 'vitest';

import { Scripts, well } from '../support/processes.js';

const scripts = new Scripts();
afterEach(() => scripts.remove());

const opened = `
  const comm = await Communicator.world({ timeoutMs: 3000 });
  comm.setTopology(ringGraph(comm.size));
  const window = await comm.createWindow(new Float32Array(1 << 22));
`;
/** Holds the lock until it is killed, or forever. */
const locking = `
  ${opened}
  setInterval(() => {}, 1000);
  await window.withMutex(async () => {
    await comm.barrier();
    say('ready');
    await new Promise(() => {});
  });
`;
const asking = `
  ${opened}
  await comm.barrier();
  say('ready');
  await window.withMutex(() => report('got it'), { forSelf: true }).catch((error) => report(plain(error)));
`;

/** Leaves when the communicator has ended. */
const leaving = `
  ${opened}
  await comm.barrier();
  await comm.barrier().catch((error) => report(plain(error)));
  await comm.close();
`;
/** Reads rank 1 alone, and misses nobody else. */
const reading = `
  ${opened}
  await comm.barrier();
  say('ready');
  try { for (;;) window.getSync({ srcWeights: { 1: 1 } }); } catch (error) { report(plain(error)); }
`;

/** Rank r runs script r. */
function start<Names extends readonly string[]>(...sources: Names) {
  const size = String(sources.length);
  const job = { GRADLINK_JOB: `windows-${String(process.pid)}`, GRADLINK_SIZE: size };
  return sources.map((script, rank) =>
    scripts.start(script, { ...job, GRADLINK_RANK: String(rank) }),
  ) as { [Rank in keyof Names]: ReturnType<Scripts['start']> };
}

describe('a window', () => {
  it('names the rank that was killed, not one that left because of it', async () => {
    const [victim, leaver, reader] = start(locking, leaving, reading);
    await Promise.all([victim.said('ready'), reader.said('ready')]);
    victim.child.kill('SIGKILL');
    const lost = { code: 'ERR_PEER_LOST', rank: 0 };
    expect(await leaver.ended).toMatchObject({ ...well, reports: [{ ...lost, op: 'barrier' }] });
    expect(await reader.ended).toMatchObject({ ...well, reports: [{ ...lost, op: 'get' }] });
  });

  it.each([
    ['ERR_TIMEOUT', 'keeps'],
    ['ERR_PEER_LOST', 'was killed with'],
  ])('ends a wait for a lock with %s naming the rank that %s it', async (code, how) => {
    const [holder, other] = start(locking, asking);
    await holder.said('ready');
    if (how !== 'keeps') {
      await other.said('ready');
      holder.child.kill('SIGKILL');
    }
    expect(await other.ended).toMatchObject({ reports: [{ code, rank: 0, op: 'withMutex' }] });
  });
});
