#!/usr/bin/env node
// Builds the addon: native/ -> build/Release/gradlink.node, and beside it gradlink_openmpi.so and gradlink_mpich.so for
// the MPIs whose compiler wrappers are there. CMake is called directly, so that whoever rebuilds from
// source needs no further package; binding.gyp, `npm rebuild` and scripts/install.mjs all end here.
//
//   node scripts/build.mjs [--strict] [--clean] [--jobs N] [--tests]
//
// --tests builds the native tests and the stand-ins of test/fakes besides, of the same objects.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const output = join(root, 'build', 'Release');
// Not build/ itself: node-gyp keeps its own Makefile there.
const cmakeFolder = join(root, 'build', 'cmake');
const require = createRequire(import.meta.url);

/** A checkout has the native tests; the published package leaves them out. */
export const isCheckout = existsSync(join(root, 'native', 'test'));

const runs = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** What is missing to build, as a message with the packages to install; undefined when nothing is. */
export function missingTools() {
  const missing = [];
  const compilers = process.env.CXX ? [process.env.CXX.split(' ')[0]] : ['c++', 'g++', 'clang++'];
  if (!compilers.some(runs)) missing.push('a C++20 compiler (g++ 11 or clang 14, or newer)');
  if (!runs('cmake')) missing.push('cmake (3.19 or newer)');
  if (!['make', 'gmake', 'ninja'].some(runs)) missing.push('make');
  if (missing.length === 0) return undefined;
  return [
    `The native addon cannot be built here: ${missing.join(', ')} not found.`,
    '  Debian, Ubuntu:        apt-get install -y g++ cmake make',
    '  Fedora, RHEL, Rocky:   dnf install -y gcc-c++ cmake make',
    '  Alpine:                apk add g++ cmake make linux-headers',
  ].join('\n');
}

function headerFolder(name) {
  try {
    return require(name).include_dir.replace(/^"|"$/g, '');
  } catch (cause) {
    throw new Error(`The npm package ${name} is missing; run "npm ci" (or "npm install") first.`, {
      cause,
    });
  }
}

/** Runs CMake; throws when it fails. */
export function cmake(args) {
  // To standard error: pack-platform.mjs and `npm pack --json` keep standard output for what they print. Without
  // MAKEFLAGS: under node-gyp they name the job server of a make that is not CMake's.
  const env = { ...process.env, MAKEFLAGS: '' };
  const { status, error, signal } = spawnSync('cmake', args, {
    stdio: ['ignore', 2, 2],
    cwd: root,
    env,
  });
  if (error) throw error;
  if (status !== 0) {
    throw new Error(`"cmake ${args[0]}" failed (${signal ?? `exit status ${status}`}); see above.`);
  }
}

/** CMake refuses a cache made for another source folder, as after the checkout was moved or copied. */
export function dropForeignCache(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const home = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'))?.[1];
  if (home !== join(root, 'native')) rmSync(folder, { recursive: true });
}

/** Warnings fail our own builds in CI; in somebody else's, a newer compiler's warning is no reason to fail. */
export const strictByDefault = isCheckout && Boolean(process.env.CI) && process.env.CI !== 'false';

/**
 * Configures build/cmake. What was asked for in an earlier call (tests, stand-ins) stays asked for.
 * @param {readonly string[]} definitions further ones, as `-DNAME=VALUE`
 */
function configure(strict, definitions) {
  const problem = missingTools();
  if (problem) throw new Error(problem);
  mkdirSync(cmakeFolder, { recursive: true });
  dropForeignCache(cmakeFolder);
  cmake([
    ...['-S', join(root, 'native'), '-B', cmakeFolder],
    '-DCMAKE_BUILD_TYPE=Release',
    '-DGRADLINK_ADDON=ON',
    `-DGRADLINK_WERROR=${strict ? 'ON' : 'OFF'}`,
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${output}`,
    `-DNODE_ADDON_API_DIR=${headerFolder('node-addon-api')}`,
    `-DNODE_API_HEADERS_DIR=${headerFolder('node-api-headers')}`,
    ...definitions,
    '-Wno-dev',
  ]);
}

/** Builds targets of build/cmake, or all. */
function buildTargets(targets, jobs) {
  const named = targets.length > 0 ? ['--target', ...targets] : [];
  cmake(['--build', cmakeFolder, ...named, '--parallel', String(jobs)]);
}

/**
 * Configures and builds, doing only what is stale.
 * @param {{strict?: boolean, clean?: boolean, tests?: boolean, jobs?: number}} options strict: warnings are errors
 * @returns {string} the path of the addon
 */
export function build({
  strict = false,
  clean = false,
  tests = false,
  jobs = availableParallelism(),
} = {}) {
  if (clean) rmSync(cmakeFolder, { recursive: true, force: true });
  // Left by a packing that failed half-way, it would be loaded instead of what is built now.
  if (isCheckout) rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
  configure(strict, tests ? ['-DGRADLINK_TESTS=ON', '-DGRADLINK_FAKES=ON'] : []);
  buildTargets(tests ? [] : ['gradlink', 'gradlink_mpi_shims'], jobs);
  return join(output, 'gradlink.node');
}

/** Builds the stand-ins of test/fakes; the folder that holds them. */
export function buildFakes() {
  configure(strictByDefault, ['-DGRADLINK_FAKES=ON']);
  buildTargets(['fakes'], availableParallelism());
  return join(cmakeFolder, 'fakes');
}

/** What was built: the addon first, then a shim for each MPI that was there; all belong into one folder. */
export function builtFiles() {
  const names = ['gradlink.node', 'gradlink_openmpi.so', 'gradlink_mpich.so'];
  return names.map((name) => join(output, name)).filter((file) => existsSync(file));
}

function main() {
  const { values } = parseArgs({
    options: {
      strict: { type: 'boolean', default: strictByDefault },
      clean: { type: 'boolean', default: false },
      tests: { type: 'boolean', default: false },
      jobs: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1) {
    throw new Error(
      `Expected a whole number of at least 1 for --jobs but received ${values.jobs}.`,
    );
  }
  build({ ...values, jobs });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
