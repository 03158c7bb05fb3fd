// An error that native code makes on another thread shows where the program made the call.
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { Communicator, KVStore } from '../../lib/index.js';
import type { GradlinkError } from '../../lib/index.js';

const own = basename(fileURLToPath(import.meta.url));

async function failureOf(call: () => Promise<unknown>): Promise<GradlinkError> {
  try {
    await call();
  } catch (error) {
    return error as GradlinkError;
  }
  throw new Error('expected a rejection');
}

const name = `stacks-${String(process.pid)}`;

describe('the stack of a rejection names the file of the caller', () => {
  it('of join', async () => {
    const late = { name, rank: 0, size: 2, timeoutMs: 50 };
    const error = await failureOf(() => Communicator.join(late));
    expect(error).toMatchObject({ name: 'GradlinkError', code: 'ERR_TIMEOUT', rank: 1 });
    expect(error.stack).toContain(error.message);
    expect(error.stack).toContain(own);
  });

  it('of join that nobody awaits', async () => {
    const late = { name: `${name} alone`, rank: 0, size: 2, timeoutMs: 50 };
    const error = await new Promise<GradlinkError>((resolve) => {
      Communicator.join(late).catch(resolve);
    });
    expect(error.stack).toContain(own);
  });

  it('of world where MPI does not load, whose message says so', async () => {
    process.env['GRADLINK_MPI'] = '/nowhere/libmpi.so';
    try {
      const error = await failureOf(() => Communicator.world({ backend: 'mpi' }));
      expect(error).toMatchObject({ code: 'ERR_BACKEND_UNAVAILABLE' });
      expect(error.message).toMatch(/'\/nowhere\/libmpi\.so'.*GRADLINK_MPI/);
      expect(error.stack).toContain(own);
    } finally {
      delete process.env['GRADLINK_MPI'];
    }
  });

  it('of openRanks and of operations after an abort', async () => {
    await using group = Communicator.local(2);
    const [first] = await group.openRanks();
    group.abort('enough');
    const error = await failureOf(() => first!.barrier());
    expect(error.code).toBe('ERR_ABORTED');
    expect(error.stack).toContain(own);
  });

  it('of reports of a store of one process', async () => {
    await using kv = await KVStore.create('local');
    const error = await failureOf(() => kv.report());
    expect(error.stack).toContain(own);
  });
});
