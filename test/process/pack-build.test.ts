// `npx gradlink build` in an application: compiles for minutes, so that only the full layer runs it.
import { mkdir, rename, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { environment, Packed, type Project, sumProgram, type Summed } from '../support/packages.js';

const patienceMs = 30 * 60_000;

let packed: Packed;
let app: Project;
let folder: string;
beforeAll(async () => {
  packed = await Packed.make();
  app = await packed.project('app');
  await app.run('npm', ['install', '--no-audit', packed.main]);
  folder = join(app.folder, 'node_modules/gradlink');
});
afterAll(() => packed.remove());

describe('npx gradlink build', () => {
  test('without a compiler says what to install, and changes nothing', async () => {
    const { code, stderr } = await app.end('npx', ['--no-install', 'gradlink', 'build']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/apt-get .*\bg\+\+ cmake\b/);
    expect(stderr).toMatch(/dnf .*\bgcc-c\+\+ cmake\b/);
    expect(existsSync(join(folder, 'build'))).toBe(false);
  });

  test('that fails shows what the compiler said, and leaves the prebuilt addon in use', async () => {
    // A source that does not compile, in place of the real ones.
    const broken = join(packed.work, 'broken/native');
    await mkdir(broken, { recursive: true });
    const archive = join(folder, 'native.tar.gz');
    await rename(archive, `${archive}.kept`);
    await app.write(
      'CMakeLists.txt',
      'file(WRITE a.cc "int f() { return broken; }")\nadd_library(gradlink MODULE a.cc)\n',
    );
    await rename(join(app.folder, 'CMakeLists.txt'), join(broken, 'CMakeLists.txt'));
    await app.run('tar', ['-czf', archive, '-C', join(packed.work, 'broken'), 'native']);
    const PATH = environment['PATH']!;
    const { code, stderr } = await app.end('npx', ['--no-install', 'gradlink', 'build'], { PATH });
    expect(code).toBe(1);
    expect(stderr).toMatch(/error: .broken. /);
    await rename(`${archive}.kept`, archive);
    await app.write('sum.mjs', sumProgram('esm'));
    const { addon } = JSON.parse(await app.run('node', ['sum.mjs'])) as Summed;
    expect(addon).toContain('node_modules/@gradlink/');
    await rm(join(folder, 'build'), { recursive: true });
  });

  test(
    'compiles the addon, which is used before the prebuilt one',
    async () => {
      const env = { PATH: environment['PATH']! };
      const built = await app.run('npx', ['--no-install', 'gradlink', 'build'], env, patienceMs);
      const addon = join(folder, 'build/Release/gradlink.node');
      expect(built.trim()).toBe(addon);
      // Sources, tools and objects are not left behind.
      expect(existsSync(join(folder, 'build/compile'))).toBe(false);
      await app.write('sum.mjs', sumProgram('esm'));
      const used = JSON.parse(await app.run('node', ['sum.mjs'])) as Summed;
      expect(used).toEqual({ sum: [11, 22, 33], addon });
      // With MPI, compiled here or from the platform package.
      for (const shim of ['gradlink_openmpi.so', 'gradlink_mpich.so']) {
        expect(existsSync(join(folder, 'build/Release', shim)), shim).toBe(true);
      }
    },
    patienceMs,
  );
});
