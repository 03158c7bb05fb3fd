// Where the addon is looked for, in which order, and what is said when there is none.
// @module-tag smoke
import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { madeRun } from '../support/comparing.js';
import { folderOfEachTest } from '../support/folders.js';

const checkout = join(import.meta.dirname, '../..');
const built = join(checkout, 'build/Release/gradlink.node');
const name = `@gradlink/${process.platform}-${process.arch}-gnu`;
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
  version: string;
};

/** A package like the installed one, with no addon anywhere. */
let root: string;
folderOfEachTest((made) => (root = realpathSync(made)));
beforeEach(() => {
  writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'gradlink', type: 'module' }));
  cpSync(join(checkout, 'dist/index.js'), join(root, 'dist/index.js'));
  mkdirSync(join(root, 'node_modules'));
  for (const dependency of ['bindings', 'file-uri-to-path', 'detect-libc']) {
    symlinkSync(join(checkout, 'node_modules', dependency), join(root, 'node_modules', dependency));
  }
});

function write(path: string, text: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

function place(path: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  symlinkSync(built, full);
  return full;
}

/** The platform package, in this version. */
function placePackage(of = version): string {
  write(`node_modules/${name}/package.json`, JSON.stringify({ name, version: of }));
  return place(`node_modules/${name}/gradlink.node`);
}

/** What a program prints that loads the addon and tells from where, or why not. */
function load(
  env: Record<string, string> = {},
  node = process.execPath,
  file = 'dist/index.js',
  cwd = process.cwd(),
): Promise<string> {
  const source = `
    import { nativePath } from ${JSON.stringify(join(root, file))};
    try { console.log(nativePath()); } catch (error) { console.log(error.code + ' ' + error.message); }
  `;
  return new Promise((resolve, reject) => {
    const all = { ...process.env, GRADLINK_BINARY: '', ...env };
    execFile(
      node,
      ['--preserve-symlinks', '--input-type=module', '-e', source],
      { env: all, cwd },
      (error, stdout, stderr) => {
        if (error) reject(new Error(stderr, { cause: error }));
        else resolve(stdout.trim());
      },
    );
  });
}

describe('the addon', () => {
  it('is taken from the platform package, and before that from a build that somebody asked for', async () => {
    const packaged = placePackage();
    expect(await load()).toBe(packaged);
    const local = place('build/Release/gradlink.node');
    expect(await load()).toBe(local);
  });

  it('is passed over where it does not load', async () => {
    write('build/Release/gradlink.node', 'no addon');
    const packaged = placePackage();
    expect(await load()).toBe(packaged);
  });

  it('of another version is not taken', async () => {
    placePackage('0.0.1');
    const said = await load();
    expect(said).toMatch(new RegExp(`package ${name}: .*\\b0\\.0\\.1\\b.* ${version}`));
  });

  it('is not taken from the current folder, where others may write', async () => {
    write('package.json', JSON.stringify({ name: 'an-app-with-gradlink-in-it', type: 'module' }));
    const own = 'elsewhere/node_modules/gradlink';
    write(`${own}/package.json`, JSON.stringify({ name: 'gradlink', version }));
    place(`${own}/build/Release/gradlink.node`);
    place('elsewhere/build/Release/gradlink.node');
    const said = await load({}, process.execPath, 'dist/index.js', join(root, 'elsewhere'));
    expect(said).toMatch(/^ERR_BACKEND_UNAVAILABLE /);
  });

  it('that is nowhere is an error that lists what was tried and what an application does', async () => {
    write('build/Release/gradlink.node', 'no addon');
    const said = await load();
    expect(said).toMatch(/^ERR_BACKEND_UNAVAILABLE /);
    expect(said).toMatch(/build\/Release\/gradlink.node: .*(too short|ELF header)/);
    expect(said).toContain(`package ${name}: not installed`);
    expect(said).toContain(`npm install ${name}@${version}`);
    expect(said).toContain('gradlink build');
    expect(said).not.toContain('setup.sh');
  });

  it('that a bundle by webpack does not find is an error that says to leave gradlink out', async () => {
    const index = join(root, 'dist/index.js');
    const text = readFileSync(index, 'utf8');
    // As webpack does: the path of the file on the machine that bundled.
    const url = JSON.stringify(pathToFileURL(index).href);
    write('dist/app.js', text.replaceAll('import.meta.url', url));
    const said = await load({}, process.execPath, 'dist/app.js');
    expect(said).toContain("externals: { gradlink: 'commonjs gradlink' }");
    expect(await load()).not.toContain('externals');
  });

  it.each(['darwin', 'win32'])(
    'of %s is none, and the error says what works there',
    async (system) => {
      const preload = write(
        'system.mjs',
        `Object.defineProperty(process, 'platform', { value: '${system}' });`,
      );
      const said = await load({ NODE_OPTIONS: `--import=${preload}` });
      expect(said).toMatch(/^ERR_BACKEND_UNAVAILABLE /);
      expect(said).toContain(`${system}-`);
      expect(said).toContain('Linux container');
      expect(said).toContain('report');
      expect(said).not.toContain('gradlink build');
    },
  );

  it('that is missing in a checkout is an error with what a checkout has', async () => {
    write('lib/index.ts', '');
    const said = await load();
    expect(said).toContain('build/Release/gradlink.node: not built');
    expect(said).toContain('bash scripts/setup.sh');
    expect(said).not.toContain('npm install');
  });

  it('is not looked for on musl, and the error says what to take instead', async () => {
    placePackage();
    rmSync(join(root, 'node_modules/detect-libc'));
    write('node_modules/detect-libc/index.js', `exports.familySync = () => 'musl';`);
    const said = await load();
    expect(said).toContain('has musl');
    expect(said).toMatch(/node:22-slim\b.*node:22-alpine\b/);
    expect(said).not.toContain('npm install');
    expect(said).not.toContain('gradlink build');
  });

  it('named by GRADLINK_BINARY is that one and no other', async () => {
    place('build/Release/gradlink.node');
    const named = place('elsewhere/mine.node');
    expect(await load({ GRADLINK_BINARY: named })).toBe(named);
    const missing = join(root, 'missing.node');
    expect(await load({ GRADLINK_BINARY: missing })).toContain(
      `GRADLINK_BINARY=${missing}: no such`,
    );
  });

  it('is not named by GRADLINK_BINARY where node runs as its owner', async (context) => {
    if (process.getuid?.() !== 0) context.skip('needs root, to give a program another owner');
    const node = join(root, 'node');
    cpSync(process.execPath, node);
    chownSync(node, 65534, 65534);
    chmodSync(node, 0o4755);
    chmodSync(root, 0o755);
    const own = execFileSync(node, ['-p', 'process.geteuid()'], { encoding: 'utf8' }).trim();
    if (own !== '65534') context.skip('the folder for temporary files is mounted with nosuid');
    const said = await load({ GRADLINK_BINARY: join(root, 'missing.node') }, node);
    expect(said).toMatch(/^ERR_BACKEND_UNAVAILABLE /);
    expect(said).not.toContain('GRADLINK_BINARY=');
  });
});

it('without an addon reports, compares, predicts and lists models', async () => {
  const preload = write(
    'system.mjs',
    `Object.defineProperty(process, 'platform', { value: 'win32' });`,
  );
  const sizes = Array.from({ length: 9 }, (_, power) => 256 * 4 ** power);
  const run = write('run.json', toJson(madeRun({ seed: 1, sizes })));
  const env = {
    ...process.env,
    NODE_OPTIONS: `--import=${preload}`,
    GRADLINK_BINARY: join(root, 'missing.node'),
  };
  for (const args of [
    ['report', run, '-o', join(root, 'page.html')],
    ['compare', run, run],
    ['predict', run, '--compute', '90', '--batch-size', '32', '--num-layers', '50'],
    ['models'],
  ]) {
    const given = [join(checkout, 'bench/gradlink.js'), ...args];
    const code = await new Promise((resolve) => {
      execFile(process.execPath, given, { env }, (error) => {
        resolve(error?.code ?? 0);
      });
    });
    expect([args[0], code]).toEqual([args[0], 0]);
  }
});

it('classes keep their names in what is packed', async () => {
  const index = pathToFileURL(join(checkout, 'dist/index.js')).href;
  const source = `
    const library = await import(${JSON.stringify(index)});
    const classes = Object.entries(library).filter(([, value]) => /^class\\b/.test(String(value)));
    let stack = '';
    await library.Communicator.join({}).catch((error) => { stack = error.stack; });
    console.log(JSON.stringify({ names: classes.map(([name, { name: own }]) => [name, own]), stack }));
  `;
  const stdout = await new Promise<string>((resolve, reject) => {
    const env = { ...process.env, GRADLINK_DEBUG: '1' };
    execFile(process.execPath, ['--input-type=module', '-e', source], { env }, (error, text) => {
      if (error) reject(new Error('it failed', { cause: error }));
      else resolve(text);
    });
  });
  const { names, stack } = JSON.parse(stdout) as { names: [string, string][]; stack: string };
  expect(names.map(([, own]) => own)).toEqual(names.map(([name]) => name));
  expect(names.map(([name]) => name)).toContain('Communicator');
  expect(stack).toContain('at Communicator.join');
});
