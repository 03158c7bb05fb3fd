#!/usr/bin/env node
// The tests nearest to what has changed (`npm run test:changed`): those that name a changed file themselves, or else
// those behind the fewest files in between. What a change may break further away is for `npm test`.
//
//   node scripts/changed.mjs [--since REF] [--all] [--list] [FILE...]
//
// Without FILE it is what differs from REF, which is the last commit. --all: every test that reaches a change, however
// many files are in between; --list: names them and runs none.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { filesUnder, importsOf, includesOf } from './graph.mjs';
import { build, root } from './native.mjs';

/** As many files of tests as two cores run in five seconds of TypeScript, and in twenty of C++. */
const most = { '.ts': 3, '.cc': 6 };

/** Those that run in another build, or with another TensorFlow. */
const elsewhere = /^test\/(tfjs-node\/|native\/sanitized)/;
/** Not those that start processes, or a browser, unless they have changed themselves. */
const isTest = (file, changed) =>
  /^native\/test\/.*_test\.cc$/.test(file) ||
  (/^(lab\/)?test\/.*\.test\.ts$/.test(file) &&
    !elsewhere.test(file) &&
    (file === changed || !/^(lab|test\/(process|distributed|mpi|attack|report\/page))/.test(file)));
/** The layers whose tests are a layer's own. */
const ownTests = { shm: ['shm', 'process', 'hosts'] };
const stem = (file) =>
  basename(file)
    .split('.', 1)[0]
    .replace(/_test$/, '');

/** Which files name each file. A source counts as named by the header of its name, which declares what it has. */
function namedBy() {
  const users = new Map();
  const add = (from, to) => users.set(to, (users.get(to) ?? new Set()).add(from));
  for (const [from, to] of importsOf(root, ['lib', 'test', 'lab'])) add(from, to);
  for (const file of filesUnder(root, 'native', /\.(cc|h)$/)) {
    const included = includesOf(readFileSync(join(root, file), 'utf8'))
      .map((name) => join('native', name))
      .filter((path) => existsSync(join(root, path)));
    for (const path of included) add(file, path);
    if (!file.endsWith('.cc')) continue;
    const header = file.replace(/\.cc$/, '.h');
    if (included.includes(header)) add(header, file);
  }
  // What is loaded at run time: the addon, and the stand-ins.
  for (const [folder, tests, pattern] of [
    ['native/binding', 'test/native', /\.test\.ts$/],
    ['test/fakes', 'native/test/fake', /_test\.cc$/],
  ]) {
    for (const file of filesUnder(root, folder, /\.(cc|h)$/)) {
      for (const test of filesUnder(root, tests, pattern)) add(test, file);
    }
  }
  return users;
}

/** The tests that reach a file: a list for each number of files in between. */
function testsOf(file, users) {
  const seen = new Set([file]);
  const rings = [];
  for (let ring = [file]; ring.length > 0;) {
    const tests = ring.filter((one) => isTest(one, file));
    if (tests.length > 0) rings.push(tests);
    const next = ring
      .filter((one) => !isTest(one, file))
      .flatMap((one) => [...(users.get(one) ?? [])]);
    ring = [...new Set(next)].filter((one) => !seen.has(one));
    for (const one of ring) seen.add(one);
  }
  return rings;
}

/** Of a file of native/, of these tests those of its layer, since others would be compiled first. */
function ofLayer(file, rings) {
  const [, layer] = /^native\/(\w+)\//.exec(file) ?? [];
  if (layer === undefined || layer === 'test') return rings;
  const own = (ownTests[layer] ?? [layer]).map((name) => `native/test/${name}/`);
  const inside = rings
    .map((tests) => tests.filter((test) => own.some((folder) => test.startsWith(folder))))
    .filter((tests) => tests.length > 0);
  return inside.length > 0 ? inside : rings;
}

/** How much a test's name and folders say that it is of this file. */
function likeness(test, file) {
  const folders = dirname(file).split('/').slice(1);
  const shared = folders.filter((folder) => test.split('/').includes(folder)).length;
  return (stem(test) === stem(file) ? folders.length : 0) + shared;
}

/**
 * The tests that name the file, or are named like it; in native/ else those of the folder named like its own, since much
 * there is tested through others. Of many, those named most like it.
 */
function nearestTo(file, rings) {
  const alike = rings
    .flat()
    .filter((test) => stem(test) === stem(file) && likeness(test, file) > 1);
  const candidates = new Set([...alike, ...(rings[0] ?? [])]);
  const folder = join('native/test', relative('native', dirname(file)));
  const near = [...candidates].some((test) => dirname(test) === folder);
  if (file.startsWith('native/') && !near && existsSync(join(root, folder))) {
    for (const test of filesUnder(root, folder, /_test\.cc$/)) candidates.add(test);
  }
  const sorted = [...candidates].toSorted((a, b) => likeness(b, file) - likeness(a, file));
  return sorted.slice(0, most[extname(sorted[0] ?? '')]);
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr.trim());
  return stdout.split('\0').filter(Boolean);
}

function changedFiles({ since = 'HEAD' }) {
  return [
    ...git('diff', '--name-only', '-z', since),
    ...git('ls-files', '--others', '--exclude-standard', '-z'),
  ];
}

/**
 * The tests for these files, and how many more reach them.
 * @returns {{typescript: string[], native: string[], further: number, without: string[]}} without: the files without any
 */
export function choose(files, all = false) {
  const users = namedBy();
  const chosen = new Set();
  const reached = new Set();
  const without = [];
  for (const file of files) {
    const rings = ofLayer(file, testsOf(file, users));
    const nearest = nearestTo(file, rings);
    if (nearest.length === 0) without.push(file);
    for (const test of [...nearest, ...rings.flat()]) reached.add(test);
    for (const test of all ? [...nearest, ...rings.flat()] : nearest) chosen.add(test);
  }
  const tests = [...chosen].filter((test) => existsSync(join(root, test)));
  return {
    typescript: tests.filter((test) => test.endsWith('.ts')),
    native: tests.filter((test) => test.endsWith('.cc')),
    further: reached.size - chosen.size,
    without,
  };
}

function run(command, args, options = {}) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  return status === 0;
}

/** Whether a test, or what it imports from test/ or lab/, starts a command, which runs from dist/. */
function startsCommands(tests) {
  const folders = ['test', 'lab'];
  const inTests = importsOf(root, folders).filter(([, to]) => folders.includes(to.split('/')[0]));
  const seen = new Set(tests);
  for (const file of seen) {
    for (const [from, to] of inTests) if (from === file) seen.add(to);
  }
  return [...seen].some((file) => /\b(dist|bench)\//.test(readFileSync(join(root, file), 'utf8')));
}

function runTypeScript(tests, addon) {
  if (addon) build({ addon });
  const bundled = ['scripts/bundle.mjs', '--if-stale'];
  if (startsCommands(tests) && !run(process.execPath, bundled)) return false;
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--tags-filter', '!full'];
  return run(process.execPath, [...vitest, ...tests]);
}

/** The suites of these files, in the builds of their layers. */
function runNative(tests) {
  const layers = new Set(tests.map((test) => test.split('/')[2]));
  const suites = tests.flatMap((test) =>
    [...readFileSync(join(root, test), 'utf8').matchAll(/^(?:TYPED_)?TEST(?:_[FP])?\((\w+)/gm)].map(
      ([, suite]) => suite,
    ),
  );
  const folder = build({ testsOf: [...layers] });
  const named = `^(ptx\\.)?(${[...layers].join('|')})\\.(\\w+/)?(${[...new Set(suites)].join('|')})[./]`;
  const options = [
    '--parallel',
    `${availableParallelism()}`,
    '--output-on-failure',
    '--no-tests=error',
    '-R',
    named,
  ];
  return run('ctest', ['--test-dir', folder, ...options, '-E', '[./]Slow']);
}

function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      since: { type: 'string' },
      all: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
    },
  });
  const files =
    positionals.length > 0
      ? positionals.map((file) => relative(root, resolve(file)))
      : changedFiles(values);
  const { typescript, native, further, without } = choose(files, values.all);
  if (files.length === 0) {
    console.log(
      `Nothing differs from ${values.since ?? 'the last commit'}; --since REF: from another.`,
    );
    return true;
  }
  for (const test of [...native, ...typescript]) console.log(test);
  if (without.length > 0) console.log(`No test names ${without.join(', ')}: npm test runs all.`);
  if (further > 0) console.log(`${further} more files of tests reach the change: --all runs them.`);
  if (values.list) return true;
  const addon = files.some((file) => /^native\/(?!test\/)/.test(file));
  // Both, whatever the first comes to.
  const outcomes = [
    native.length === 0 || runNative(native),
    typescript.length === 0 || runTypeScript(typescript, addon),
  ];
  return !outcomes.includes(false);
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    if (!main()) process.exitCode = 1;
  } catch (error) {
    console.error(`changed.mjs: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 2;
  }
}
