#!/usr/bin/env node
// Counts what really ran, from the result files in build/test-results. Prints the seconds of each phase, the slowest
// cases, failures, skips with their reasons, and, last, one line `N passed, N failed[, N skipped]`. Exit status 1 when
// anything failed, or when a result file that was expected is not there.
//
//   node scripts/test-summary.mjs [--name PART]     PART: part of `npm run test:full`, with whose name the last line begins
//
// phases.txt has a line "BEGAN ENDED STATUS RESULTS PHASE" for each phase of scripts/test.sh, which may overlap: both in seconds
// from the beginning. RESULTS are the names of the files that it left, with commas between them, or -: native-… (CTest's JUnit, NAME.xml), vitest-… (vitest's JSON, NAME.json),
// another for lines "pass CASE" and "fail CASE" (NAME.txt), as lint.sh and the teardown of the GPU tests write them. A phase
// that failed counts where none of its cases did.
//
// test/flaky.json has the cases that fail by chance, with the cause. A part reports such failures apart and does not fail by
// them; the gate (no --name) has no such cases, so that there they are failures as all others.
//
// failed.txt and counted.txt get the names of what failed and the last line, for scripts/repeat.sh and test.sh.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = process.env.GRADLINK_TEST_RESULTS ?? join(root, 'build', 'test-results');
/** How many of the slowest cases are named. */
const slowest = 20;
/** How much of a failure is shown. */
const mostLines = 12;

/** @typedef {{name: string, status: 'passed' | 'failed' | 'skipped', reason?: string, seconds?: number}} Result */

/** Why tests were skipped, by full name, which belong to another layer, and what lies outside tests: vitest-results.mjs. */
function skipsOf(name) {
  const file = join(folder, `${name}.skips.json`);
  return existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { reasons: {}, otherLayers: [], outside: [] };
}

/** A failure's message without the stack; with what a process that failed wrote, as execFile has it. */
function withoutPlaces(message) {
  const lines = message?.split('\n').filter((line) => line !== '' && !/^\s+at /.test(line));
  return lines?.slice(0, mostLines).join('\n    ');
}

/** @returns {Result[]} */
function fromVitest(text, source) {
  const report = JSON.parse(text);
  const { reasons, otherLayers, outside = [] } = skipsOf(source);
  const elsewhere = new Set(otherLayers);
  const results = report.testResults.flatMap((file) => {
    const name = relative(root, file.name);
    const cases = file.assertionResults
      .filter(
        (test) =>
          test.status === 'passed' || test.status === 'failed' || !elsewhere.has(test.fullName),
      )
      .map((test) => ({
        name: `${source}: ${name}: ${test.fullName}`,
        status: test.status === 'passed' || test.status === 'failed' ? test.status : 'skipped',
        reason: withoutPlaces(test.failureMessages?.[0]) ?? reasons[test.fullName],
        seconds: (test.duration ?? 0) / 1000,
      }));
    // A file that cannot be loaded fails without a case to show for it.
    const broken = file.status === 'failed' && !cases.some(({ status }) => status === 'failed');
    return broken
      ? [...cases, { name: `${source}: ${name}`, status: 'failed', reason: file.message }]
      : cases;
  });
  for (const reason of outside)
    results.push({ name: `${source}: outside any test`, status: 'failed', reason });
  if (!report.success && !results.some(({ status }) => status === 'failed')) {
    const reason = 'an error outside any test; see above';
    results.push({ name: source, status: 'failed', reason });
  }
  return results;
}

const unescape = (text) =>
  text.replace(/&(lt|gt|quot|apos|amp);/g, (_, entity) => {
    return { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }[entity];
  });

/** @returns {Result[]} */
function fromJUnit(text, source) {
  return [...text.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map((match) => {
    const [, attributes, body = ''] = match;
    const attribute = (name) =>
      unescape(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
    const status = { run: 'passed', fail: 'failed' }[attribute('status')] ?? 'skipped';
    const reason =
      /<(?:skipped|failure)[^>]*message="([^"]*)"/.exec(body)?.[1] ??
      (status === 'skipped' ? attribute('status') : undefined);
    // GTEST_SKIP() << "reason" is printed; CTest itself says no more than that the case was skipped.
    const said = /: Skipped\s*\n([^\n]+)/.exec(body)?.[1];
    return {
      name: `${source}: ${attribute('name')}`,
      status,
      seconds: Number(attribute('time')),
      ...(reason || said ? { reason: unescape(said ?? reason) } : {}),
    };
  });
}

/** @returns {Result[]} */
function fromLines(text) {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [word, ...name] = line.split(' ');
      return { name: name.join(' '), status: word === 'pass' ? 'passed' : 'failed' };
    });
}

/** @returns {Result[]} */
function read(name) {
  const [file, parse] = name.startsWith('vitest')
    ? [`${name}.json`, (text) => fromVitest(text, name)]
    : name.startsWith('native')
      ? [`${name}.xml`, (text) => fromJUnit(text, name)]
      : [`${name}.txt`, fromLines];
  const path = join(folder, file);
  if (!existsSync(path))
    return [{ name, status: 'failed', reason: 'it left no results; see above' }];
  const results = parse(readFileSync(path, 'utf8'));
  if (results.length > 0) return results;
  return [{ name, status: 'failed', reason: 'it ran no test' }];
}

/** Of each phase of scripts/test.sh, by their beginnings: its times, its exit status, and which results it left. */
function readPhases() {
  const file = join(folder, 'phases.txt');
  if (!existsSync(file)) throw new Error(`${file} is missing: scripts/test.sh writes it`);
  const lines = readFileSync(file, 'utf8').matchAll(/^(\d+) (\d+) (\d+) (\S+) (.+)$/gm);
  return [...lines]
    .map(([, began, ended, status, results, name]) => ({
      began: Number(began),
      ended: Number(ended),
      status: Number(status),
      results: results === '-' ? [] : results.split(','),
      name,
    }))
    .sort((a, b) => a.began - b.began);
}

/** @returns {{case: string, cause: string}[]} */
function readFlaky() {
  const file = process.env.GRADLINK_FLAKY ?? join(root, 'test', 'flaky.json');
  return JSON.parse(readFileSync(file, 'utf8'));
}

function printPhases(phases) {
  console.log('Seconds of each phase:');
  const print = (seconds, text) => console.log(`  ${String(seconds).padStart(5)}  ${text}`);
  let end = 0;
  for (const { began, ended, status, name } of phases) {
    const beside = began < end ? ', beside others' : '';
    print(
      ended - began,
      `${name}${beside}${status === 0 ? '' : `: failed (exit status ${status})`}`,
    );
    end = Math.max(end, ended);
  }
  print(end - (phases[0]?.began ?? 0), 'from beginning to end');
}

function printSlowest(results) {
  const timed = results.filter(({ seconds = 0 }) => seconds >= 1);
  if (timed.length === 0) return;
  timed.sort((a, b) => b.seconds - a.seconds);
  console.log('The slowest cases, in seconds:');
  for (const { name, seconds } of timed.slice(0, slowest))
    console.log(`  ${seconds.toFixed(1).padStart(7)}  ${name}`);
}

function printList(title, results) {
  if (results.length > 0) console.log(`${title}:`);
  for (const { name, reason } of results)
    console.log(`  ${name}${reason ? `\n    ${reason}` : ''}`);
}

const { name: part } = parseArgs({ options: { name: { type: 'string' } } }).values;
const flaky = part === undefined ? [] : readFlaky();
const isFlaky = ({ name }) => flaky.find((each) => name.endsWith(`: ${each.case}`));

const phases = readPhases();
const counts = [];
for (const { name, status, results: left } of phases) {
  const own = left.map((each) => ({ name: each, results: read(each) }));
  counts.push(...own);
  const failures = own.flatMap(({ results }) => results.filter((each) => each.status === 'failed'));
  if (status !== 0 && failures.length === 0) {
    const reason = `exit status ${status}, and no case failed; see above`;
    counts.push({ name, results: [{ name, status: 'failed', reason }] });
  }
}
const results = counts.flatMap((each) => each.results);
const byChance = results.filter((result) => result.status === 'failed' && isFlaky(result));
const having = (status, among = results) =>
  among.filter((result) => result.status === status && !byChance.includes(result));
const [passed, failed, skipped] = [having('passed'), having('failed'), having('skipped')];
printPhases(phases);
printSlowest(results);
if (counts.length > 1) {
  console.log('Cases that passed:');
  for (const { name, results: own } of counts)
    console.log(`  ${String(having('passed', own).length).padStart(5)}  ${name}`);
}
printList('Skipped', skipped);
printList(
  'Failed by chance, as test/flaky.json says',
  byChance.map((result) => ({ ...result, reason: isFlaky(result).cause })),
);
printList('Failed', failed);
const counted =
  (part === undefined ? '' : `${part}: `) +
  `${passed.length} passed, ${failed.length} failed` +
  (skipped.length > 0 ? `, ${skipped.length} skipped` : '');
console.log(counted);
writeFileSync(join(folder, 'failed.txt'), failed.map(({ name }) => `${name}\n`).join(''));
writeFileSync(join(folder, 'counted.txt'), `${counted}\n`);
process.exitCode = failed.length > 0 ? 1 : 0;
