// Which tests `npm run test:changed` takes to be nearest to a file.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const script = join(root, 'scripts/changed.mjs');

function changed(...argv: string[]): { status: number | null; lines: string[]; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...argv], {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, lines: stdout.split('\n').slice(0, -1), stderr };
}
const { choose } = (await import(pathToFileURL(script).href)) as {
  choose: (
    files: readonly string[],
    all?: boolean,
  ) => { typescript: string[]; native: string[]; further: number; without: string[] };
};
function nearest(file: string): string[] {
  const { typescript, native } = choose([file]);
  return [...typescript, ...native];
}

describe('npm run test:changed', () => {
  it.each([
    ['a test is its own', 'test/tensor/dtype.test.ts', 'test/tensor/dtype.test.ts'],
    ['one of jobs, too', 'test/process/ending.test.ts', 'test/process/ending.test.ts'],
    ['one of lab', 'lab/test/growth.test.ts', 'lab/test/growth.test.ts'],
    ['one that imports the file', 'lib/tensor/dtype.ts', 'test/tensor/dtype.test.ts'],
    ['one that imports what imports it', 'lib/kvstore/keys.ts', 'test/kvstore/mxnet.test.ts'],
    ['a source by its header', 'native/core/sha256.cc', 'native/test/core/sha256_test.cc'],
    [
      'one of its name, behind others',
      'native/kvstore/gpu/packs.cc',
      'native/test/kvstore/gpu/packs_test.cc',
    ],
    [
      'those of its folder',
      'native/kvstore/server/control.cc',
      'native/test/kvstore/server/server_test.cc',
    ],
    ['of the addon', 'native/binding/args.cc', 'test/native/measure.test.ts'],
    ['of a stand-in', 'test/fakes/cuda/memory.cc', 'native/test/fake/memory_test.cc'],
  ])('takes %s', (_, file, test) => {
    const tests = nearest(file);
    expect(tests).toContain(test);
    expect(tests.length).toBeLessThanOrEqual(test.endsWith('.ts') ? 3 : 6);
  });

  it('leaves other layers, and what starts processes, to the gate', () => {
    expect(nearest('native/core/error.h').every((test) => test.includes('/core/'))).toBe(true);
    expect(nearest('lib/errors.ts').some((test) => /process|distributed/.test(test))).toBe(false);
  });

  it('counts those that are further away, and takes them all where it is asked', () => {
    const { typescript, further } = choose(['lib/errors.ts']);
    expect(further).toBeGreaterThan(50);
    const all = choose(['lib/errors.ts'], true);
    expect(all).toMatchObject({ further: 0, native: [] });
    expect(all.typescript).toHaveLength(typescript.length + further);
  });

  it('names what no test that it can run names, and refuses what it does not know', () => {
    const without = ['LICENSE', 'test/native/sanitized.test.ts'];
    expect(choose([...without, 'lib/errors.ts']).without).toEqual(without);
    const { status, stderr } = changed('--sinse', 'HEAD');
    expect(status).toBe(2);
    expect(stderr).toContain('--sinse');
    expect(changed('--list', '--since', 'no-such-commit')).toMatchObject({ status: 2, lines: [] });
  });
});
