// The package as npm installs it: its contents, its weight, and that it runs, also under MPI.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, normalize } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { flavours, mpirunOf } from '../support/mpi.js';
import {
  checkout,
  environment,
  Packed,
  platform,
  type Project,
  sumProgram,
  type Summed,
} from '../support/packages.js';
import { words } from '../support/words.js';

const { resolve } = createRequire(import.meta.url);

let packed: Packed;
let app: Project;
let files: readonly string[];

beforeAll(async () => {
  packed = await Packed.make();
  app = await packed.project('app');
  const told = await app.end('npm', ['install', '--no-audit', packed.main]);
  expect(told.code, told.stderr).toBe(0);
  // Of a package with scripts npm 11 says that they were not run.
  expect(`${told.stdout}${told.stderr}`).not.toMatch(/allow-scripts|install script|node-gyp/i);
  const listed = await app.run('tar', ['-tzf', packed.main]);
  files = listed
    .trim()
    .split('\n')
    .map((path) => path.replace('package/', ''));
});
afterAll(() => packed.remove());

const text = (path: string): string =>
  readFileSync(join(app.folder, 'node_modules/gradlink', path), 'utf8');

describe('the tarball', () => {
  test('holds what is needed to run and to compile, and nothing of the development', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'SECURITY.md',
        'bench/gradlink.js',
        'dist/THIRD-PARTY-LICENSES.txt',
        'dist/index.js',
        'dist/types/index.d.ts',
        'docs/install.md',
        'docs/images/check.webp',
        'examples/all-reduce.js',
        'native.tar.gz',
      ]),
    );
    // With a binding.gyp, npm and pnpm would compile, or say that they did not.
    const foreign = files.filter((path) =>
      /^(test|lib|native|scripts|build|prebuilds|bench\/peers|node_modules)\/|binding\.gyp|internal|\.map$|\.built$/.test(
        path,
      ),
    );
    expect(foreign).toEqual([]);
  });

  test('has sources to compile without the native tests', async () => {
    const listed = await app.run('tar', ['-tzf', 'node_modules/gradlink/native.tar.gz']);
    expect(listed).toContain('native/CMakeLists.txt\n');
    expect(listed).toContain('native/messages/mpi/mpi_shim.cc\n');
    expect(listed).not.toContain('native/test');
  });

  test('has, for this platform, machine code of the kernels', async (context) => {
    const script = (await import(join(checkout, 'scripts/cubins.mjs'))) as {
      makeCubins: () => { reason?: string; cubins?: { file: string }[] };
    };
    const { reason, cubins = [] } = script.makeCubins();
    if (reason !== undefined) context.skip(reason);
    const listed = (await app.run('tar', ['-tzf', packed.binary])).split('\n');
    expect(cubins.length).toBeGreaterThan(0);
    expect(listed).toEqual(
      expect.arrayContaining(cubins.map(({ file }) => `package/cubins/${basename(file)}`)),
    );
  });

  test('has a manifest that runs nothing and asks for both platforms in this very version', () => {
    const manifest = JSON.parse(text('package.json')) as Record<string, unknown> & {
      version: string;
    };
    expect(manifest['scripts']).toBeUndefined();
    expect(manifest['devDependencies']).toBeUndefined();
    expect(manifest['optionalDependencies']).toEqual({
      '@gradlink/linux-arm64-gnu': manifest.version,
      '@gradlink/linux-x64-gnu': manifest.version,
    });
  });

  test('has no link in its documents that ends nowhere', () => {
    const dead = files
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) => {
        const links = text(path).matchAll(/(?:\]\(|src=")([^)\s"#]+)/g);
        return [...links]
          .map(([, target]) => target!)
          .filter((target) => !/^[a-z]+:/.test(target))
          .map((target) => normalize(join(dirname(path), target)).replace(/\/$/, ''))
          .filter((target) => !files.some((one) => one === target || one.startsWith(`${target}/`)))
          .map((target) => `${path}: ${target}`);
      });
    expect(dead).toEqual([]);
  });

  test('is refused where it would be the checkout as it stands', async () => {
    const { code, stderr } = await app.end('npm', [
      ...words('pack --dry-run --prefix'),
      checkout,
      checkout,
    ]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('run pack');
  });
});

describe('installed with npm', { tags: 'smoke' }, () => {
  test('is at most 12 packages and 12 MB', () => {
    const { packages, bytes } = app.weight();
    expect(packages).toContain(`@gradlink/${platform}`);
    expect(packages.length).toBeLessThanOrEqual(12);
    expect(bytes).toBeLessThanOrEqual(12e6);
  });

  test.each([
    ['esm', 'sum.mjs'],
    ['cjs', 'sum.cjs'],
  ] as const)('is imported and sums (%s), without a compiler', async (kind, file) => {
    await app.write(file, sumProgram(kind));
    const { sum, addon } = JSON.parse(await app.run('node', [file])) as Summed;
    expect(sum).toEqual([11, 22, 33]);
    expect(addon).toContain(`node_modules/@gradlink/${platform}/`);
  });

  test('its command runs', async () => {
    expect(await app.run('npx', ['--no-install', 'gradlink', 'models'])).toMatch(/resnet/);
    const doctor = await app.run('npx', ['--no-install', 'gradlink', 'doctor']);
    expect(doctor).toMatch(new RegExp(`^ok +addon .*@gradlink/${platform}/gradlink.node$`, 'm'));
  });

  test.for(flavours)('runs under %s, whose part is in the package', async (flavour, context) => {
    const mpirun = mpirunOf(flavour, context);
    await app.write(
      'world.mjs',
      `import { Communicator } from 'gradlink';
       const comm = await Communicator.world({ backend: 'mpi' });
       const data = await comm.allReduce(new Int32Array([comm.rank + 1]));
       console.log(JSON.stringify([comm.backend, comm.size, data[0]]));
       await comm.close();`,
    );
    const own = {
      // The MPI's programs lie outside of the small PATH.
      PATH: environment['PATH']!,
      OMPI_ALLOW_RUN_AS_ROOT: '1',
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
      OMPI_MCA_rmaps_base_oversubscribe: '1',
    };
    const stdout = await app.run(mpirun, ['-n', '2', process.execPath, 'world.mjs'], own);
    expect(stdout.trim().split('\n')).toEqual(['["mpi",2,3]', '["mpi",2,3]']);
  });

  test('its types hold in a strict program that checks libraries too', async () => {
    await app.write(
      'consumer.ts',
      `
      import { Communicator, GradlinkError } from 'gradlink';
      import { readReport, type Report } from 'gradlink/measure';
      import { network } from 'gradlink/models';
      await using comm = Communicator.local(2);
      const arrays: Float32Array[] = [new Float32Array(4), new Float32Array(4)];
      await comm.allReduce(arrays, { op: 'avg' });
      // @ts-expect-error: an element type that the array does not hold
      await comm.allReduce(arrays, { dtype: 'int32' });
      export const code = (error: unknown) => (error instanceof GradlinkError ? error.code : undefined);
      export const report: Report = readReport('run.json');
      export const parameters = network('resnet', { numLayers: 50 }).parameters.length;
    `,
    );
    const options = {
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      target: 'ES2022',
      module: 'NodeNext',
      lib: ['ES2023', 'ESNext.Disposable'],
      types: ['node'],
      typeRoots: [dirname(dirname(resolve('@types/node/package.json')))],
    };
    const config = { compilerOptions: options, files: ['consumer.ts'] };
    await app.write('tsconfig.json', JSON.stringify(config));
    // tsc tells what is wrong on standard output.
    const { stdout } = await app.end('node', [resolve('typescript/bin/tsc'), '-p', '.']);
    expect(stdout).toBe('');
  });
});

describe('the types of every entry', () => {
  const { exports } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>;
  };
  const entries = Object.keys(exports)
    .filter((entry) => !entry.endsWith('.json'))
    .map((entry) => entry.replace('.', 'gradlink'));
  // The oldest resolution knows no entries beside the package itself.
  const old = { moduleResolution: 'node10', ignoreDeprecations: '6.0' };

  test.each([
    ['NodeNext', 'entries.mts', {}, entries],
    ['NodeNext', 'entries.cts', {}, entries],
    ['Node16', 'entries.mts', {}, entries],
    ['ESNext', 'entries.ts', { moduleResolution: 'bundler' }, entries],
    ['CommonJS', 'entries.ts', old, ['gradlink']],
  ])('hold with module %s in %s %j', async (module, file, resolution, names) => {
    const imports = names.map(
      (name, index) =>
        `import * as entry${String(index)} from '${name}';\nexport const names${String(index)} = Object.keys(entry${String(index)});`,
    );
    await app.write(
      file,
      `${imports.join('\n')}
      import { Communicator, type ReduceOp } from 'gradlink';
      export const op: ReduceOp = 'sum';
      export const group = Communicator.local(2);
      // @ts-expect-error: types are there, so that this is none
      import { noSuchName } from 'gradlink';`,
    );
    const options = {
      strict: true,
      // TensorFlow.js, which one entry names, is not installed.
      skipLibCheck: true,
      noEmit: true,
      target: 'ES2022',
      module,
      lib: ['ES2023', 'ESNext.Disposable'],
      types: ['node'],
      typeRoots: [dirname(dirname(resolve('@types/node/package.json')))],
      ...resolution,
    };
    await app.write('tsconfig.json', JSON.stringify({ compilerOptions: options, files: [file] }));
    const { stdout } = await app.end('node', [resolve('typescript/bin/tsc'), '-p', '.']);
    expect(stdout).toBe('');
  });
});

test('packing leaves nothing in the checkout', () => {
  expect(existsSync(join(checkout, 'prebuilds'))).toBe(false);
  expect(existsSync(join(checkout, 'native.tar.gz'))).toBe(false);
});
