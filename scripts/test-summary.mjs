#!/usr/bin/env node
// Counts what really ran, from the result files in build/test-results: vitest's JSON, CTest's JUnit and, with --checks,
// the lines lint.sh and the GPU tests' teardown wrote ("pass NAME" or "fail NAME"). Prints failures, skips with their reasons, and, last, one line
// `N passed, N failed[, N skipped]`. Exit status 1 when anything failed, or a result file that was expected is not there.
//
//   node scripts/test-summary.mjs [--checks] NAME...     NAME: vitest, gpu-leaks, native-plain, native-address, …
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = process.env.GRADLINK_TEST_RESULTS ?? join(root, 'build', 'test-results');

/** @typedef {{name: string, status: 'passed' | 'failed' | 'skipped', reason?: string}} Result */

/** Why tests were skipped, by full name, from vitest-skips.mjs. */
function skipReasons() {
  const file = join(folder, 'vitest-skips.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

/** @returns {Result[]} */
function fromVitest(text) {
  const report = JSON.parse(text);
  const results = report.testResults.flatMap((file) => {
    const name = relative(root, file.name);
    const cases = file.assertionResults.map((test) => ({
      name: `${name}: ${test.fullName}`,
      status: test.status === 'passed' || test.status === 'failed' ? test.status : 'skipped',
      reason: test.failureMessages?.[0]?.split('\n')[0] ?? skipReasons()[test.fullName],
    }));
    // A file that cannot be loaded fails without a case to show for it.
    const broken = file.status === 'failed' && !cases.some(({ status }) => status === 'failed');
    return broken ? [...cases, { name, status: 'failed', reason: file.message }] : cases;
  });
  if (!report.success && !results.some(({ status }) => status === 'failed')) {
    results.push({
      name: 'vitest',
      status: 'failed',
      reason: 'an error outside any test; see above',
    });
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
      ...(reason || said ? { reason: unescape(said ?? reason) } : {}),
    };
  });
}

/** @returns {Result[]} */
function fromChecks(text) {
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
  const [file, parse] =
    name === 'vitest'
      ? ['vitest.json', fromVitest]
      : name === 'checks' || name === 'gpu-leaks'
        ? [`${name}.txt`, fromChecks]
        : [`${name}.xml`, (text) => fromJUnit(text, name)];
  const path = join(folder, file);
  if (!existsSync(path))
    return [{ name, status: 'failed', reason: 'it left no results; see above' }];
  const results = parse(readFileSync(path, 'utf8'));
  if (results.length > 0) return results;
  return [{ name, status: 'failed', reason: 'it ran no test' }];
}

const names = process.argv.slice(2).map((name) => name.replace(/^--checks$/, 'checks'));
const results = names.flatMap(read);
const having = (status) => results.filter((result) => result.status === status);
const [passed, failed, skipped] = [having('passed'), having('failed'), having('skipped')];
const list = (title, entries) => {
  if (entries.length > 0) console.log(`${title}:`);
  for (const { name, reason } of entries)
    console.log(`  ${name}${reason ? `\n    ${reason}` : ''}`);
};
list('Skipped', skipped);
list('Failed', failed);
console.log(
  `${passed.length} passed, ${failed.length} failed` +
    (skipped.length > 0 ? `, ${skipped.length} skipped` : ''),
);
process.exitCode = failed.length > 0 ? 1 : 0;
