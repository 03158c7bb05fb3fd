// What packing refuses: a binary that needs more of a system than is promised, a platform package without MPI.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { buildPackages } from '../../lib/compile/tools.js';
import { checkout, environment } from '../support/packages.js';
import { folderOfEachTest } from '../support/folders.js';

interface Needs {
  readonly floor: Readonly<Record<string, string>>;
  readonly problemsOf: (text: string) => string[];
}
interface Licenses {
  readonly licenses: (root: string, inputs: readonly string[]) => string;
}
const script = <T>(name: string): Promise<T> =>
  import(join(checkout, 'scripts', name)) as Promise<T>;

let folder: string;
folderOfEachTest((made) => (folder = made));

describe('what a binary needs', () => {
  const told = (versions: readonly string[], libraries: readonly string[] = []): string =>
    [
      ...libraries.map((name) => ` 0x0000000000000001 (NEEDED)  Shared library: [${name}]`),
      `Version definition section '.gnu.version_d' contains 1 entry:`,
      '  0x001c: Rev: 1  Flags: none  Index: 2  Cnt: 1  Name: GLIBC_9.99',
      `Version needs section '.gnu.version_r' contains 1 entry:`,
      ...versions.map((name) => `  0x0010:   Name: ${name}  Flags: none  Version: 3`),
    ].join('\n');

  it('may be as new as the floor, and no newer', async () => {
    const { floor, problemsOf } = await script<Needs>('binary-needs.mjs');
    const most = `GLIBC_${floor['GLIBC']!}`;
    expect(problemsOf(told([most, 'GLIBC_2.2.5'], ['libc.so.6', 'libgcc_s.so.1']))).toEqual([]);
    expect(problemsOf(told(['GLIBC_2.100']))).toEqual([
      `GLIBC_2.100, newer than ${floor['GLIBC']!}`,
    ]);
  });

  it('may be no libstdc++ and no library that a system lacks', async () => {
    const { problemsOf } = await script<Needs>('binary-needs.mjs');
    const problems = problemsOf(told(['GLIBCXX_3.4.30'], ['libstdc++.so.6', 'libmpi.so.40']));
    expect(problems).toEqual([
      'GLIBCXX_3.4.30, of a library that is to be linked in',
      'libstdc++.so.6',
    ]);
  });

  it('is what docs/install.md says', async () => {
    const { floor } = await script<Needs>('binary-needs.mjs');
    const guide = readFileSync(join(checkout, 'docs/install.md'), 'utf8');
    expect(guide).toContain(`glibc ${floor['GLIBC']!} or newer`);
  });
});

describe('licences', () => {
  it('of what is bundled must be there', async () => {
    const { licenses } = await script<Licenses>('licenses.mjs');
    for (const name of ['free', 'none']) {
      mkdirSync(join(folder, 'node_modules', name), { recursive: true });
      writeFileSync(
        join(folder, 'node_modules', name, 'package.json'),
        JSON.stringify({ name, version: '1.0.0', license: 'MIT' }),
      );
    }
    writeFileSync(join(folder, 'node_modules/free/LICENSE.md'), 'Take it.');
    expect(licenses(folder, ['lib/index.ts', 'node_modules/free/index.js'])).toContain(
      'free 1.0.0 (MIT)',
    );
    expect(() => licenses(folder, ['node_modules/none/index.js'])).toThrow(
      /none@1\.0\.0 .*licence/,
    );
  });
});

describe('a platform package', () => {
  it('is not packed without the parts for both MPIs', async () => {
    // A checkout that was built on a machine without MPICH.
    for (const name of ['scripts', 'package.json', 'native/cuda/ptx.mjs']) {
      cpSync(join(checkout, name), join(folder, name), { recursive: true });
    }
    symlinkSync(join(checkout, 'node_modules'), join(folder, 'node_modules'));
    mkdirSync(join(folder, 'build/Release'), { recursive: true });
    for (const name of ['gradlink.node', 'gradlink_openmpi.so']) {
      symlinkSync(join(checkout, 'build/Release', name), join(folder, 'build/Release', name));
    }
    const told = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [join(folder, 'scripts/pack.mjs')],
        { env: environment },
        (error, _stdout, stderr) => {
          resolve({ code: error?.code ?? 0, stderr });
        },
      );
    });
    expect(told.code).toBe(1);
    expect(told.stderr).toMatch(/build\/Release\/gradlink_mpich\.so: .*\blibmpich-dev\b/);
    expect(told.stderr).not.toContain('gradlink_openmpi.so');
  });
});

describe('npx gradlink build', () => {
  it('takes the packages that this checkout is built with', () => {
    const lock = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>;
    };
    const built = Object.keys(buildPackages).map(
      (name) => [name, lock.packages[`node_modules/${name}`]?.version] as const,
    );
    expect(Object.fromEntries(built)).toEqual(buildPackages);
  });
});
