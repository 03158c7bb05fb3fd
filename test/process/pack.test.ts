// The package as users get it: packed, installed in an empty folder without its install script, imported, run, and
// type-checked.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const platform = `${process.platform}-${process.arch}`;
const { resolve } = createRequire(import.meta.url);

// What npm and vitest set for this process is none of the user's.
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|VITEST|NODE_ENV)/i.test(name)),
);

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

let work: string;
let app: string;
let packed: Packed;

async function inApp(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(command, args, { cwd: app, env: environment, timeout: 120_000 });
  return stdout;
}

const install = (tarball: string) =>
  inApp(
    'npm',
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    tarball,
  );

/** Sums over two ranks, and tells which file the addon came from. */
const program = `
  import { Communicator, nativePath } from 'gradlink';
  const comm = Communicator.local(2);
  const arrays = [new Float32Array([1, 2, 3]), new Float32Array([10, 20, 30])];
  await comm.allReduce(arrays);
  await comm.close();
  console.log(JSON.stringify({ sums: arrays.map((array) => [...array]), addon: nativePath() }));
`;

async function runProgram(): Promise<{ sums: number[][]; addon: string }> {
  const output = await inApp(process.execPath, '--input-type=module', '--eval', program);
  return JSON.parse(output) as { sums: number[][]; addon: string };
}

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'gradlink-pack-'));
  app = await mkdtemp(join(work, 'app-'));
  await writeFile(
    join(app, 'package.json'),
    '{ "name": "app", "private": true, "type": "module" }\n',
  );
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', work], {
    cwd: root,
    env: environment,
  });
  // The scripts of packing may print before.
  [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [Packed];
  await install(join(work, packed.filename));
});

afterAll(async () => {
  await rm(work, { recursive: true, force: true });
});

describe('the tarball', () => {
  test('holds what is needed to run and to rebuild, and nothing of the development', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining([
        'LICENSE',
        'README.md',
        'bench/gradlink.js',
        'binding.gyp',
        'dist/lib/index.d.ts',
        'dist/lib/index.js',
        'native/CMakeLists.txt',
        'native/core/communicator.h',
        `prebuilds/${platform}/gradlink.node`,
        'scripts/native.mjs',
        'scripts/install.mjs',
      ]),
    );
    // With the shims of the MPIs that this machine has.
    for (const shim of ['gradlink_openmpi.so', 'gradlink_mpich.so']) {
      const built = existsSync(join(root, 'build/Release', shim));
      expect(paths.includes(`prebuilds/${platform}/${shim}`), shim).toBe(built);
    }
    const foreign = paths.filter((path) =>
      /^(test|native\/test|bench\/peers|node_modules|build)\//.test(path),
    );
    expect(foreign).toEqual([]);
  });

  test('leaves no copy of the binary in the checkout', () => {
    expect(existsSync(join(root, 'prebuilds'))).toBe(false);
  });
});

describe('installed without its install script', () => {
  test('is imported and sums', async () => {
    const { sums, addon } = await runProgram();
    expect(sums).toEqual([
      [11, 22, 33],
      [11, 22, 33],
    ]);
    expect(addon).toContain(`node_modules/gradlink/prebuilds/${platform}/`);
  });

  test('its command runs', async () => {
    const output = await inApp('npx', '--no-install', 'gradlink', 'models');
    expect(output).toMatch(/resnet/);
  });

  test('its types hold in a strict program that checks libraries too', async () => {
    const source = `
      import { Communicator, GradlinkError } from 'gradlink';
      await using comm = Communicator.local(2);
      const arrays: Float32Array[] = [new Float32Array(4), new Float32Array(4)];
      await comm.allReduce(arrays, { op: 'avg' });
      // @ts-expect-error: an element type that the array does not hold
      await comm.allReduce(arrays, { dtype: 'int32' });
      export const code = (error: unknown) => (error instanceof GradlinkError ? error.code : undefined);
    `;
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
    await writeFile(join(app, 'consumer.ts'), source);
    const config = { compilerOptions: options, files: ['consumer.ts'] };
    await writeFile(join(app, 'tsconfig.json'), JSON.stringify(config));
    // tsc tells what is wrong on standard output, which the error of execFile does not show.
    const told = await inApp(process.execPath, resolve('typescript/bin/tsc'), '-p', '.').catch(
      (error: unknown) => (error as { stdout: string }).stdout,
    );
    expect(told).toBe('');
  });

  test('the install script takes a binary that loads, and never fails an installation', async () => {
    const script = join(app, 'node_modules', 'gradlink', 'scripts', 'install.mjs');
    const { stderr: silent } = await run(process.execPath, [script], { env: environment });
    expect(silent).toBe('');
    const withoutTools = {
      ...environment,
      PATH: '/nonexistent',
      npm_config_build_from_source: '1',
    };
    const { stderr } = await run(process.execPath, [script], { env: withoutTools });
    expect(stderr).toMatch(/apt-get install -y g\+\+ cmake make/);
  });
});

test('the platform package is preferred', async () => {
  const { stdout } = await run(
    process.execPath,
    [join(root, 'scripts', 'pack-platform.mjs'), work],
    {
      env: environment,
    },
  );
  await install(stdout.trim());
  const { sums, addon } = await runProgram();
  expect(sums[1]).toEqual([11, 22, 33]);
  expect(addon).toContain(`node_modules/@gradlink/${platform}/`);
});
