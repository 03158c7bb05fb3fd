// The package under other package managers, each in its newest version for Node 20, in a fresh project and with no
// compiler within reach: installing must end well and say nothing of scripts that were not run.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Packed, type Project, sumProgram, type Summed } from '../support/packages.js';

const pnpm = 'pnpm@12.21.0';
const yarn = '@yarnpkg/cli-dist@4.18.1';

let packed: Packed;
let publicRegistry: string;

beforeAll(async () => {
  packed = await Packed.make();
  const project = await packed.project('registry');
  publicRegistry = (await project.run('npm', ['config', 'get', 'registry'])).trim();
});
afterAll(() => packed.remove());

const unbuilt = /ignored build|approve-builds|be built|node-gyp/i;

/** Runs the sum as a module and as CommonJS. */
async function bothSum(app: Project, start: readonly [string, ...string[]]): Promise<void> {
  const [program, ...args] = start;
  for (const kind of ['esm', 'cjs'] as const) {
    const file = kind === 'esm' ? 'sum.mjs' : 'sum.cjs';
    await app.write(file, sumProgram(kind));
    const { sum, addon } = JSON.parse(await app.run(program, [...args, file])) as Summed;
    expect(sum).toEqual([11, 22, 33]);
    expect(addon).toMatch(/@gradlink.linux-\w+-gnu/);
  }
}

describe('pnpm', () => {
  test('adds it, installs it again from its lock file, and runs it', async () => {
    const app = await packed.project('with-pnpm');
    const npx = ['--yes', '--package', pnpm, 'pnpm'];
    const store = ['--store-dir', `${packed.work}/pnpm-store`];
    const added = await app.end('npx', [...npx, 'add', ...store, packed.main]);
    expect(added.code, `${added.stdout}${added.stderr}`).toBe(0);
    expect(`${added.stdout}${added.stderr}`).not.toMatch(unbuilt);
    // As CI does, where pnpm makes an error of a script that it did not run.
    const again = [...npx, 'install', ...store, '--frozen-lockfile'];
    const frozen = await app.end('npx', again, { CI: 'true' });
    expect(frozen.code, `${frozen.stdout}${frozen.stderr}`).toBe(0);
    await bothSum(app, ['node']);
    const command = await app.run('npx', [...npx, 'exec', 'gradlink', '--version']);
    expect(command.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

describe('yarn 4', () => {
  const npx = ['--yes', '--package', yarn, 'yarn'];

  async function install(linker: 'node-modules' | 'pnp'): Promise<Project> {
    const app = await packed.project(`with-yarn-${linker}`, {
      dependencies: { gradlink: `file:${packed.main}` },
    });
    await app.write('yarn.lock', '');
    await app.write(
      '.yarnrc.yml',
      [
        `nodeLinker: ${linker}`,
        'enableGlobalCache: false',
        'enableTelemetry: false',
        `npmRegistryServer: ${JSON.stringify(publicRegistry)}`,
        'unsafeHttpWhitelist: ["127.0.0.1", "localhost"]',
        // What was published a moment ago is taken too: that is what is tested here.
        'npmMinimalAgeGate: 0',
        'npmScopes:',
        `  gradlink: { npmRegistryServer: ${JSON.stringify(packed.registry)} }`,
        '',
      ].join('\n'),
    );
    const told = await app.end('npx', [...npx, 'install', '--no-immutable']);
    expect(told.code, `${told.stdout}${told.stderr}`).toBe(0);
    expect(told.stdout).not.toMatch(unbuilt);
    return app;
  }

  test('installs it into node_modules, and it runs', async () => {
    await bothSum(await install('node-modules'), ['node']);
  });

  test("installs it for Plug'n'Play, and it runs", async () => {
    await bothSum(await install('pnp'), ['npx', ...npx, 'node']);
  });
});
