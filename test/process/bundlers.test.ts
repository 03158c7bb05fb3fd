// gradlink inside a user's bundle: external, which is what docs/install.md recommends, and taken in.
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Packed, platform, type Project, sumProgram, type Summed } from '../support/packages.js';

const esbuild = createRequire(import.meta.url).resolve('esbuild/bin/esbuild');

let packed: Packed;
let app: Project;
beforeAll(async () => {
  packed = await Packed.make();
  app = await packed.project('app');
  await app.run('npm', ['install', '--no-audit', packed.main]);
  // Without top-level await, which CommonJS does not have.
  await app.write(
    'program.mjs',
    sumProgram('esm').replace(/^(.*)\n([^]*)$/, '$1\n(async () => {$2})();'),
  );
  await mkdir(join(app.folder, 'out'));
});
afterAll(() => packed.remove());

async function bundle(out: string, ...options: string[]): Promise<void> {
  const fixed = ['program.mjs', '--bundle', '--platform=node', '--log-level=error'];
  await app.run('node', [esbuild, ...fixed, `--outfile=${out}`, ...options]);
}

async function summed(file: string): Promise<Summed> {
  return JSON.parse(await app.run('node', [file])) as Summed;
}

describe.each([
  ['esm', 'out/program.mjs'],
  ['cjs', 'out/program.cjs'],
])('a bundle by esbuild (%s)', (format, out) => {
  test('with gradlink left outside runs', async () => {
    await bundle(out, `--format=${format}`, '--external:gradlink');
    const { sum } = await summed(out);
    expect(sum).toEqual([11, 22, 33]);
  });

  test('with gradlink in it finds the addon of the project it lies in', async () => {
    await bundle(out, `--format=${format}`);
    const { sum, addon } = await summed(out);
    expect(sum).toEqual([11, 22, 33]);
    expect(addon).toContain(`node_modules/@gradlink/${platform}/`);
  });

  test('that was taken away from its project says what to do', async () => {
    await bundle(out, `--format=${format}`);
    const away = await packed.project(`away-${format}`);
    const file = `program.${format === 'esm' ? 'mjs' : 'cjs'}`;
    await cp(join(app.folder, out), join(away.folder, file));
    const { code, stderr } = await away.end('node', [file]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('ERR_BACKEND_UNAVAILABLE');
    expect(stderr).toContain(`package @gradlink/${platform}: not installed`);
    expect(stderr).toContain('--external:gradlink');
  });

  test('with the commands of measuring in it runs', async () => {
    await app.write(
      'measure.mjs',
      `import { describe, runTrain } from 'gradlink/measure';
       console.log(describe([1, 2, 3]).medianSeconds);
       runTrain().catch((error) => console.log(error.code, error.message));`,
    );
    await app.run('node', [
      ...[esbuild, 'measure.mjs', '--bundle', '--platform=node', '--log-level=error'],
      ...[`--format=${format}`, `--outfile=${out}`],
    ]);
    const [median, training = ''] = (await app.run('node', [out])).trim().split('\n');
    expect(median).toBe('2');
    // TensorFlow.js is no part of it, and neither is what awaits it.
    expect(training).toMatch(/^ERR_UNSUPPORTED .*--external:gradlink/);
  });
});
