#!/usr/bin/env node
// Builds native/ with cmake-js, doing only what is stale: build/Release/gradlink.node, and beside it gradlink_openmpi.so
// and gradlink_mpich.so for the MPIs whose compiler wrappers are there.
//
//   node scripts/native.mjs [addon] [tests] [fakes] [--sanitize address|thread] [--strict] [--clean] [--jobs N]
//
// tests are the native tests with the stand-ins of test/fakes, fakes the stand-ins alone; without a name it is the addon.
// What a sanitizer instruments goes into build-address or build-thread, the addon there into Release/ too.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'native');

/** A checkout has the native tests; the published package leaves them out. */
export const isCheckout = existsSync(join(source, 'test'));

/** Warnings fail our own builds in CI; in somebody else's, a newer compiler's warning is no reason to fail. */
export const strictByDefault = isCheckout && Boolean(process.env.CI) && process.env.CI !== 'false';

const runs = (command) => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;

/** What is missing to build, as a message with the packages to install; undefined when nothing is. */
export function missingTools() {
  const missing = [];
  const compilers = process.env.CXX ? [process.env.CXX.split(' ')[0]] : ['c++', 'g++', 'clang++'];
  if (!compilers.some(runs)) missing.push('a C++20 compiler (g++ 11 or clang 14, or newer)');
  if (!runs('cmake')) missing.push('cmake (3.19 or newer)');
  if (!['ninja', 'make', 'gmake'].some(runs)) missing.push('make');
  if (missing.length === 0) return undefined;
  return [
    `The native addon cannot be built here: ${missing.join(', ')} not found.`,
    '  Debian, Ubuntu:        apt-get install -y g++ cmake make',
    '  Fedora, RHEL, Rocky:   dnf install -y gcc-c++ cmake make',
    '  Alpine:                apk add g++ cmake make linux-headers',
  ].join('\n');
}

function cmakeJs(folder, args) {
  let program;
  try {
    program = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js');
  } catch (cause) {
    throw new Error('The npm package cmake-js is missing; run "npm ci" first.', { cause });
  }
  // To standard error: `npm pack --json` and the like keep standard output for what they print. Without MAKEFLAGS: under
  // node-gyp they name the job server of a make that is not CMake's.
  const { status, error, signal } = spawnSync(
    process.execPath,
    [program, ...args, '--directory', source, '--out', folder, '--log-level', 'warn'],
    { stdio: ['ignore', 2, 2], cwd: root, env: { ...process.env, MAKEFLAGS: '' } },
  );
  if (error) throw error;
  if (status !== 0) {
    throw new Error(
      `"cmake-js ${args[0]}" failed (${signal ?? `exit status ${status}`}); see above.`,
    );
  }
}

/** An entry of the folder's CMake cache. */
function cached(folder, name) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache)) return undefined;
  return new RegExp(`^${name}:\\w+=(.*)$`, 'm').exec(readFileSync(cache, 'utf8'))?.[1];
}

/** CMake refuses a cache made for another source folder, as after the checkout was moved or copied. */
function dropForeignCache(folder) {
  const home = cached(folder, 'CMAKE_HOME_DIRECTORY');
  if (home !== undefined && home !== source) rmSync(folder, { recursive: true });
}

/**
 * Names the files that differ from the last commit: native/units.cmake has them compiled alone. Who worked on a file
 * works on it again, so that it stays alone until the folder is made anew: a commit compiles nothing.
 */
function writeApart(folder) {
  const file = join(folder, 'apart.txt');
  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const args = [
    'status',
    '--porcelain',
    '-z',
    '--untracked-files=all',
    '--',
    'native',
    'test/fakes',
  ];
  const { status, stdout } = spawnSync('git', ['--no-optional-locks', ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  // Not a checkout of its own: a package inside somebody's repository.
  const changed = isCheckout && status === 0 ? stdout.split('\0').map((line) => line.slice(3)) : [];
  const names = new Set([...(before?.split('\n') ?? []), ...changed]);
  const text = [...names]
    .filter((name) => name.endsWith('.cc') && existsSync(join(root, name)))
    .sort()
    .map((name) => `${name}\n`)
    .join('');
  // Written only when it says something else: its time is what CMake compares.
  if (text !== before) writeFileSync(file, text);
  return file;
}

/**
 * Configures where something is asked for that the folder was not made for, and builds.
 * @param {{addon?: boolean, tests?: boolean, fakes?: boolean, testsOf?: string[], sanitize?: string, strict?: boolean,
 *   clean?: boolean, jobs?: number}} options testsOf: only the tests of these layers, with the stand-ins; strict: warnings
 *   are errors
 * @returns {string} the build folder
 */
export function build({
  addon = false,
  tests = false,
  fakes = false,
  testsOf = [],
  sanitize = '',
  strict = strictByDefault,
  clean = false,
  jobs = availableParallelism(),
} = {}) {
  const problem = missingTools();
  if (problem) throw new Error(problem);
  // Not build/ itself: node-gyp keeps its own Makefile there.
  const folder = join(root, sanitize === '' ? 'build/cmake' : `build-${sanitize}`);
  if (clean) rmSync(folder, { recursive: true, force: true });
  dropForeignCache(folder);
  mkdirSync(folder, { recursive: true });
  const onOff = (name, on) => [name, on ? 'ON' : 'OFF'];
  // What was asked for in an earlier call stays asked for, so that two callers do not configure in turns.
  const keep = (name, on) => onOff(name, on || cached(folder, name) === 'ON');
  const wanted = [
    keep('GRADLINK_TESTS', tests || testsOf.length > 0),
    keep('GRADLINK_FAKES', tests || fakes || testsOf.length > 0),
    // Kept like those: another flag compiles everything again.
    keep('GRADLINK_WERROR', strict),
    ['GRADLINK_SANITIZE', sanitize],
    ['APART', writeApart(folder)],
    [
      'CMAKE_LIBRARY_OUTPUT_DIRECTORY',
      join(sanitize === '' ? join(root, 'build') : folder, 'Release'),
    ],
  ];
  if (wanted.some(([name, value]) => cached(folder, name) !== value)) {
    const generator = cached(folder, 'CMAKE_GENERATOR');
    cmakeJs(folder, [
      'configure',
      ...wanted.map(([name, value]) => `--CD${name}=${value}`),
      ...(generator ? ['-G', generator] : []),
    ]);
  }
  const named = Object.entries({ addon, tests, fakes }).flatMap(([name, asked]) =>
    asked ? [name] : [],
  );
  const onGpus = testsOf.some((layer) => !/^(core|shm|process|hosts|mpi|train)$/.test(layer));
  const targets =
    testsOf.length > 0
      ? [
          ...(addon ? ['addon'] : []),
          ...(onGpus || fakes ? ['fakes'] : []),
          ...testsOf.map((layer) => `${layer}_test`),
        ]
      : [named.length > 1 ? 'all' : (named[0] ?? 'addon')];
  for (const target of targets) {
    cmakeJs(folder, ['build', '--target', target, '--parallel', String(jobs)]);
  }
  return folder;
}

/** What was built: the addon first, then a shim for each MPI that was there; all belong into one folder. */
export function builtFiles() {
  const names = ['gradlink.node', 'gradlink_openmpi.so', 'gradlink_mpich.so'];
  return names.map((name) => join(root, 'build/Release', name)).filter((file) => existsSync(file));
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      sanitize: { type: 'string', default: '' },
      strict: { type: 'boolean', default: strictByDefault },
      clean: { type: 'boolean', default: false },
      jobs: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const unknown = positionals.find((name) => !['addon', 'tests', 'fakes'].includes(name));
  if (unknown !== undefined) {
    throw new Error(`Expected addon, tests or fakes but received ${unknown}.`);
  }
  if (!['', 'address', 'thread'].includes(values.sanitize)) {
    throw new Error(`Expected address or thread for --sanitize but received ${values.sanitize}.`);
  }
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1) {
    throw new Error(
      `Expected a whole number of at least 1 for --jobs but received ${values.jobs}.`,
    );
  }
  const named = Object.fromEntries(positionals.map((name) => [name, true]));
  build({ ...named, ...values, jobs });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
