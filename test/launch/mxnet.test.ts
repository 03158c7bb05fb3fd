// What people bring from MXNet's tools/launch.py: what counts, and what is refused by name.
import { describe, expect, it } from 'vitest';

import { launcherName, refuseVariables, serversOf } from '../../lib/cli/launch/mxnet.js';

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return 'nothing was thrown';
}

describe('the number of servers', () => {
  it.each([
    [undefined, ['node', 'train.js', '--kv-store', 'dist_sync'], 3],
    [undefined, ['node', 'train.js', '--kv-store=DIST_ASYNC'], 3],
    [undefined, ['node', 'train.js', '--kv-store', 'dist_device_sync'], 3],
    [undefined, ['node', 'train.js', '--kv-store', 'allreduce'], 0],
    [undefined, ['node', 'train.js', '--kv-store', 'distant'], 0],
    [undefined, ['node', 'train.js', '--kv_store', 'dist'], 3],
    [undefined, ['node', 'train.js', '--kvstore=dist'], 3],
    // Folders, files and values of other options.
    [undefined, ['node', 'dist'], 0],
    [undefined, ['node', 'app.mjs', '--out', 'dist', 'dist_sync', '--data=dist_sync'], 0],
    [undefined, ['node', 'train.js'], 0],
    [1, ['node', 'train.js', '--kv-store', 'dist_sync'], 1],
    [0, ['node', 'train.js', '--kv-store', 'dist_sync'], 0],
  ])('%s given, %j: %i', (given, command, expected) => {
    const notes: string[] = [];
    expect(serversOf(given, 3, command, (text) => notes.push(text))).toBe(expected);
    // What is guessed is said.
    expect(notes).toHaveLength(given === undefined && expected > 0 ? 1 : 0);
  });
});

describe('launchers', () => {
  it('sge and yarn are refused with the way to go', () => {
    expect(messageOf(() => launcherName.parse('sge'))).toMatch(/launcher sge: .*--launcher mpi/);
    expect(messageOf(() => launcherName.parse('yarn'))).toMatch(
      /launcher yarn: .*--launcher ssh -H/,
    );
    expect(messageOf(() => launcherName.parse('toString'))).toMatch(/^Expected [^.]*: local, mpi/);
    expect(launcherName.parse('slurm')).toBe('slurm');
  });
});

describe('variables', () => {
  it.each([
    ['DMLC_NUM_WORKER', '-n COUNT'],
    ['DMLC_NUM_SERVER', '-s COUNT'],
    ['DMLC_ROLE', 'the launcher'],
    ['DMLC_PS_SOMETHING', 'gradlink launch'],
    ['MXNET_KVSTORE_USETREE', 'NCCL_ALGO=Tree'],
    ['MXNET_KVSTORE_REDUCTION_NTHREADS', 'GRADLINK_NUM_THREADS'],
    ['MXNET_KVSTORE_SLICE_THRESHOLD', 'pieces'],
    ['MXNET_KVSTORE_SOMETHING', 'KVStore.create'],
  ])('%s is refused by name', (name, advice) => {
    const message = messageOf(() => {
      refuseVariables({ PATH: '/bin', [name]: '4' });
    });
    expect(message).toContain(name);
    expect(message).toContain(advice);
  });

  it('what counts, and what is not of MXNet, is let through', () => {
    const others = {
      MXNET_KVSTORE_BIGARRAY_BOUND: '10',
      MXNET_HOME: '/x',
      DMLC: '1',
      DMLC_LOG_STACK_TRACE_DEPTH: '10',
    };
    expect(() => refuseVariables(others)).not.toThrow();
  });
});
