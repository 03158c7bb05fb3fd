// Compiles the addon and the MPI shims of an installed package from its sources, into build/Release of the package,
// where the loader looks first.
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import type { Env } from '../doctor/system.js';
import { makeFolders } from '../files/index.js';
import { binaryFiles } from '../native/load.js';
import { isCheckout, packageFolder } from '../package-folder.js';
import { version } from '../version.js';
import { buildPackages, findPackage, missingTools } from './tools.js';

export interface CompileOptions {
  readonly env: Env;
  /** Parallel processes; the number of cores when absent. */
  readonly jobs?: number;
  /** Keeps sources, tools and objects for inspection or another build. */
  readonly keep?: boolean;
  /** Called at the start of each step. */
  readonly onStep: (text: string) => void;
  /** Called with the progress of compiling, 0 to 100. */
  readonly onPercent: (percent: number) => void;
}

export interface Compiled {
  readonly addon: string;
  /** Shims that could not be compiled and that no platform package has: their MPIs are unavailable. */
  readonly missingShims: readonly (keyof typeof binaryFiles.shims)[];
}

/** Shown lines of a failed program's output: the compiler's first error is often far up. */
const shownLines = 60;

/** @throws Error with the packages to install, or a failed program's output */
export async function compileAddon(options: CompileOptions): Promise<Compiled> {
  const problem = missingTools(options.env);
  if (problem !== undefined) throw new Error(`${problem}\nThen run npx gradlink build again.`);
  const folder = packageFolder();
  if (folder === undefined) throw new Error('gradlink is not installed beside this program');
  const release = join(folder, 'build', 'Release');
  if (isCheckout()) {
    options.onStep('compiling the checkout');
    await run('npm', ['run', 'build:native'], { ...options, folder });
    return { addon: join(release, binaryFiles.addon), missingShims: missingIn(release) };
  }
  const work = join(folder, 'build', 'compile');
  try {
    rmSync(work, { recursive: true, force: true });
    makeFolders(work);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`cannot write to ${work}: run this as the owner of that folder (${message})`, {
      cause,
    });
  }
  options.onStep(`compiling gradlink ${version} in ${work}; this takes minutes`);
  await run('tar', ['-xzf', join(folder, 'native.tar.gz'), '-C', work], {
    ...options,
    folder: work,
  });
  await installTools(work, options);
  await compile(work, options);
  install(join(work, 'out', 'Release'), release, folder);
  // A broken binary would hide that of the platform package.
  const addon = join(release, binaryFiles.addon);
  await run(process.execPath, ['-e', 'require(process.argv[1])', addon], { ...options, folder });
  if (options.keep !== true) rmSync(work, { recursive: true, force: true });
  return { addon, missingShims: missingIn(release) };
}

function missingIn(release: string): Compiled['missingShims'] {
  const names = Object.keys(binaryFiles.shims) as (keyof typeof binaryFiles.shims)[];
  return names.filter((name) => !existsSync(join(release, binaryFiles.shims[name])));
}

/** A cmake-js project: it resolves its packages beside the project, and detects Node-API by the manifest. */
async function installTools(work: string, options: CompileOptions): Promise<void> {
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({
      private: true,
      name: 'gradlink-build',
      version,
      binary: { napi_versions: [8] },
      dependencies: buildPackages,
    }),
  );
  writeFileSync(
    join(work, 'CMakeLists.txt'),
    'cmake_minimum_required(VERSION 3.19)\nproject(gradlink_build LANGUAGES C CXX)\nadd_subdirectory(native)\n',
  );
  const wanted = Object.entries(buildPackages);
  const named = wanted.map(([name, exact]) => `${name}@${exact}`).join(' ');
  if (wanted.every(([name, exact]) => findPackage(work, name)?.version === exact)) {
    options.onStep(`with ${named}, which are installed`);
    return;
  }
  options.onStep(`installing ${named} there`);
  const quiet = ['--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'];
  await run('npm', ['install', '--ignore-scripts', ...quiet], {
    ...options,
    folder: work,
    // npx's variables for its own call must not reach this one.
    env: Object.fromEntries(
      Object.entries(options.env).filter(
        ([name]) => !/^npm_(?!config_(registry|cache|userconfig|offline)$)/i.test(name),
      ),
    ),
  });
}

async function compile(work: string, options: CompileOptions): Promise<void> {
  const place = (name: string): string => {
    const found = findPackage(work, name);
    if (found === undefined) throw new Error(`the package ${name} is missing in ${work}`);
    return found.folder;
  };
  const command = join(place('cmake-js'), 'bin', 'cmake-js');
  const jobs = String(options.jobs ?? availableParallelism());
  // cmake-js's "compile" would build a second time after a failure.
  const args = ['build', '--directory', work, '--out', join(work, 'out'), '--parallel', jobs];
  options.onStep(`compiling with ${jobs} ${jobs === '1' ? 'process' : 'processes'}`);
  await run(process.execPath, [command, ...args], {
    ...options,
    folder: work,
    onLine: (line) => {
      // Make prints "[ 12%] Building …", ninja "[3/130] Building …".
      const [, percent, done, total] = /^\[(?: *(\d+)%|(\d+)\/(\d+))\]/.exec(line) ?? [];
      if (percent !== undefined) options.onPercent(Number(percent));
      else if (total !== undefined) {
        options.onPercent(Math.floor((100 * Number(done)) / Number(total)));
      }
    },
  });
}

/** Each file atomically, because another process may be loading the old one. */
function install(from: string, release: string, folder: string): void {
  makeFolders(release);
  const platform = findPackage(folder, `@gradlink/${process.platform}-${process.arch}-gnu`);
  const { addon, shims } = binaryFiles;
  for (const name of [...Object.values(shims), addon]) {
    const target = join(release, name);
    const built = join(from, name);
    // This machine may lack an MPI's headers, but another machine's shim of this version works too.
    const packed =
      name !== addon && platform?.version === version ? join(platform.folder, name) : built;
    const source = existsSync(built) ? built : packed;
    if (!existsSync(source)) continue;
    copyFileSync(source, `${target}.new`);
    renameSync(`${target}.new`, target);
  }
}

interface RunOptions {
  readonly env: Env;
  readonly folder: string;
  readonly onLine?: (line: string) => void;
}

/** Runs a program; shows its output only on failure. */
function run(
  program: string,
  args: readonly string[],
  { env, folder, onLine }: RunOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        const parts = `${rest}${text}`.split('\n');
        rest = parts.pop() ?? '';
        for (const line of parts) {
          lines.push(line);
          onLine?.(line);
        }
      });
      stream.on('end', () => {
        if (rest !== '') lines.push(rest);
      });
    }
    child.on('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'ENOENT' ? new Error(`${program} is missing: it is needed to build`) : error,
      );
    });
    child.on('close', (code, signal) => {
      if (code === 0) {
        resolve();
        return;
      }
      const first = lines.findIndex((line) => /\berror\b[: ]/i.test(line));
      const from = Math.max(0, first < 0 ? lines.length - shownLines : first - 2);
      const shown = lines.slice(from, from + shownLines).join('\n');
      const how = signal ?? `exit status ${String(code)}`;
      reject(new Error(`${program} failed (${how}):\n${shown}`));
    });
  });
}
