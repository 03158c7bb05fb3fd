#!/usr/bin/env node
// Counts what really ran, from the result files in build/test-results. Prints the seconds of each phase, the slowest
// cases, failures, skips with their reasons, and, last, one line `N passed, N failed[, N skipped]`. Exit status 1 when
// anything failed, or when a result file that was expected is not there.
//
//   node scripts/test-summary.mjs NAME...
//
// NAME: native-… (CTest's JUnit, NAME.xml), vitest-… (vitest's JSON, NAME.json), or another for lines "pass CASE" and
// "fail CASE" (NAME.txt), as lint.sh and the teardown of the GPU tests write them. phases.txt has a line
// "SECONDS STATUS PHASE" for each phase of scripts/test.sh: one that failed counts where no case did.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = process.env.GRADLINK_TEST_RESULTS ?? join(root, 'build', 'test-results');
/** How many of the slowest cases are named. */
const slowest = 20;

/** @typedef {{name: string, status: 'passed' | 'failed' | 'skipped', reason?: string, seconds?: number}} Result */

/** Why tests were skipped, by full name, which belong to another layer, and errors outside tests: vitest-skips.mjs. */
function skipsOf(name) {
  const file = join(folder, `${name}.skips.json`);
  return existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { reasons: {}, otherLayers: [], errors: [] };
}

/** @returns {Result[]} */
function fromVitest(text, source) {
  const report = JSON.parse(text);
  const { reasons, otherLayers, errors = [] } = skipsOf(source);
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
        reason: test.failureMessages?.[0]?.split('\n')[0] ?? reasons[test.fullName],
        seconds: (test.duration ?? 0) / 1000,
      }));
    // A file that cannot be loaded fails without a case to show for it.
    const broken = file.status === 'failed' && !cases.some(({ status }) => status === 'failed');
    return broken
      ? [...cases, { name: `${source}: ${name}`, status: 'failed', reason: file.message }]
      : cases;
  });
  for (const reason of errors)
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

/** Of each phase of scripts/test.sh: what it took, and its exit status. */
function readPhases() {
  const file = join(folder, 'phases.txt');
  if (!existsSync(file)) return [];
  return [...readFileSync(file, 'utf8').matchAll(/^(\d+) (\d+) (.+)$/gm)].map(
    ([, seconds, status, name]) => ({ seconds: Number(seconds), status: Number(status), name }),
  );
}

function printPhases(phases) {
  if (phases.length === 0) return;
  console.log('Seconds of each phase:');
  for (const { seconds, status, name } of phases) {
    const failure = status === 0 ? '' : `: failed (exit status ${status})`;
    console.log(`  ${String(seconds).padStart(5)}  ${name}${failure}`);
  }
  const together = phases.reduce((sum, { seconds }) => sum + seconds, 0);
  console.log(`  ${String(together).padStart(5)}  together`);
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

const names = process.argv.slice(2);
const counts = names.map((name) => ({ name, results: read(name) }));
const results = counts.flatMap((each) => each.results);
const having = (status, among = results) => among.filter((result) => result.status === status);
const phases = readPhases();
if (having('failed').length === 0)
  results.push(
    ...phases
      .filter(({ status }) => status !== 0)
      .map(({ name, status }) => ({
        name,
        status: 'failed',
        reason: `exit status ${status}, and no case failed; see above`,
      })),
  );
const [passed, failed, skipped] = [having('passed'), having('failed'), having('skipped')];
printPhases(phases);
printSlowest(results);
if (names.length > 1) {
  console.log('Cases that passed:');
  for (const { name, results: own } of counts)
    console.log(`  ${String(having('passed', own).length).padStart(5)}  ${name}`);
}
printList('Skipped', skipped);
printList('Failed', failed);
console.log(
  `${passed.length} passed, ${failed.length} failed` +
    (skipped.length > 0 ? `, ${skipped.length} skipped` : ''),
);
process.exitCode = failed.length > 0 ? 1 : 0;
