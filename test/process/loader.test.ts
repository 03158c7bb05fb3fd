// Where the addon is looked for, in which order, and what is said when there is none.
// @module-tag smoke
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const checkout = join(import.meta.dirname, '../..');
const built = join(checkout, 'build/Release/gradlink.node');
const platform = `${process.platform}-${process.arch}`;

/** A package like the installed one, with no addon anywhere. */
let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'gradlink-loader-')));
  writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'gradlink', type: 'module' }));
  for (const file of ['native.js', 'errors.js']) {
    cpSync(join(checkout, 'dist/lib', file), join(root, 'dist/lib', file));
  }
  mkdirSync(join(root, 'node_modules'));
  for (const name of ['bindings', 'file-uri-to-path']) {
    symlinkSync(join(checkout, 'node_modules', name), join(root, 'node_modules', name));
  }
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function place(path: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  symlinkSync(built, full);
  return full;
}

/** What a program prints that loads the addon and tells from where, or why not. */
function load(env: Record<string, string> = {}): Promise<string> {
  const source = `
    import { nativePath } from ${JSON.stringify(join(root, 'dist/lib/native.js'))};
    try { console.log(nativePath()); } catch (error) { console.log(error.code + ' ' + error.message); }
  `;
  return new Promise((resolve, reject) => {
    const all = { ...process.env, GRADLINK_BINARY: '', ...env };
    execFile(
      process.execPath,
      ['--preserve-symlinks', '--input-type=module', '-e', source],
      { env: all },
      (error, stdout, stderr) => {
        if (error) reject(new Error(stderr, { cause: error }));
        else resolve(stdout.trim());
      },
    );
  });
}

describe('the addon', () => {
  it('is taken from the platform package, then prebuilds, then the local build', async () => {
    const local = place('build/Release/gradlink.node');
    expect(await load()).toBe(local);
    const prebuilt = place(`prebuilds/${platform}/gradlink.node`);
    expect(await load()).toBe(prebuilt);
    const packaged = place(`node_modules/@gradlink/${platform}/gradlink.node`);
    expect(await load()).toBe(packaged);
  });

  it('is passed over where it does not load', async () => {
    const broken = join(root, 'prebuilds', platform, 'gradlink.node');
    mkdirSync(dirname(broken), { recursive: true });
    writeFileSync(broken, 'no addon');
    const local = place('build/Release/gradlink.node');
    expect(await load()).toBe(local);
  });

  it('that is nowhere is an error that lists what was tried and what to do', async () => {
    const broken = join(root, 'prebuilds', platform, 'gradlink.node');
    mkdirSync(dirname(broken), { recursive: true });
    writeFileSync(broken, 'no addon');
    const said = await load();
    expect(said).toMatch(/^ERR_BACKEND_UNAVAILABLE /);
    expect(said).toContain(`package @gradlink/${platform}: Cannot find module`);
    expect(said).toMatch(
      new RegExp(`prebuilds/${platform}/gradlink.node: .*(file too short|invalid ELF header)`),
    );
    expect(said).toContain('build/Release/gradlink.node: not built');
    expect(said).toContain(`npm install @gradlink/${platform}`);
    expect(said).toContain('npm run build:native');
    expect(said).toContain('apt-get install g++ make cmake');
  });

  it('named by GRADLINK_BINARY is that one and no other', async () => {
    place('build/Release/gradlink.node');
    const named = place('elsewhere/mine.node');
    expect(await load({ GRADLINK_BINARY: named })).toBe(named);
    const missing = join(root, 'missing.node');
    expect(await load({ GRADLINK_BINARY: missing })).toContain(
      `GRADLINK_BINARY=${missing}: no such file`,
    );
  });
});
