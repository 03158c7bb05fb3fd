// An error shows where the program made the call, also one that native code makes on another thread.
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describe, expect, it } from 'vitest';

import { Communicator, GradlinkError, KVStore, SGD } from '../../lib/index.js';
import * as topology from '../../lib/topology/index.js';
import { Scripts } from '../support/processes.js';

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

describe('the stack of a misuse begins in the file of the caller', () => {
  const wrong = 'wrong' as never;
  const firstFrame = ({ stack = '' }: Error): string | undefined =>
    stack.split('\n').find((line) => line.startsWith('    at '));

  it.for<[string, () => unknown]>([
    ['a method', () => Communicator.local(1).barrier(wrong)],
    ['a constructor', () => new SGD({ learningRate: wrong })],
    ['a function of an entry', () => topology.ringGraph(wrong)],
    ['an error that the program makes', () => Promise.reject(new GradlinkError('ERR_CLOSED', 'x'))],
  ])('%s', async ([, call]) => {
    const error = await failureOf(async () => await call());
    expect(firstFrame(error)).toContain(own);
  });

  it('unless GRADLINK_DEBUG asks for all of it', async () => {
    process.env['GRADLINK_DEBUG'] = '1';
    try {
      const error = await failureOf(() => KVStore.create(wrong));
      expect(firstFrame(error)).not.toContain(own);
      expect(error.stack).toContain(own);
    } finally {
      delete process.env['GRADLINK_DEBUG'];
    }
  });

  it('is left alone where the program makes stacks of its own', async () => {
    const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
    Error.prepareStackTrace = (_, frames) => frames;
    try {
      const error = await failureOf(() => KVStore.create(wrong));
      expect(error.stack).toBeInstanceOf(Array);
    } finally {
      if (before === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
      else Object.defineProperty(Error, 'prepareStackTrace', before);
    }
  });

  it('so that Node shows the line of a program that nobody catches it for', async () => {
    const scripts = new Scripts();
    try {
      const { ended } = scripts.start("await KVStore.create('unheard of');");
      const { code, stderr } = await ended;
      expect(code).toBe(1);
      expect(stderr.split('\n').slice(0, 3).join('\n')).toContain(
        "await KVStore.create('unheard of');",
      );
    } finally {
      await scripts.remove();
    }
  });
});
