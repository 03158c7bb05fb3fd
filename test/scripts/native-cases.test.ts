// The runner of the native cases, on a program that takes GoogleTest's options and does what its cases are called.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { until } from '../support/launching.js';

interface Outcome {
  readonly name: string;
  readonly status: 'run' | 'fail' | 'notrun';
  readonly seconds: number;
  readonly said: string;
}
interface Choice {
  readonly only?: RegExp;
  readonly exclude?: RegExp;
  readonly excludeLabel?: RegExp;
}
type Cases = readonly { readonly name: string }[];

const script = new URL('../../scripts/native-cases.mjs', import.meta.url).href;
const { casesOf, junit, runCases } = (await import(script)) as {
  casesOf: (listing: object, choice?: Choice) => Cases;
  runCases: (cases: Cases, options: { readonly jobs: number }) => Promise<readonly Outcome[]>;
  junit: (outcomes: readonly Outcome[]) => string;
};

const program = `#!${process.execPath}
const { appendFileSync, writeFileSync } = require('node:fs');
const option = (name) => process.argv.find((one) => one.startsWith('--' + name + '='))?.split('=')[1];
const names = option('gtest_filter').split(':');
writeFileSync(process.env.STARTS + '.pid', String(process.pid));
appendFileSync(process.env.STARTS, names.join(' ') + '\\n');
const done = [];
let status = 0;
for (const name of names) {
  console.log('[ RUN      ] ' + name);
  const [suite, test] = name.split('.');
  if (test.startsWith('Crashes')) process.kill(process.pid, 'SIGSEGV');
  if (test.startsWith('Hangs')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (test.startsWith('Leaks')) status = 23;
  if (test.startsWith('LeaksBeside') && names.length === 1) status = 0;
  const failed = test.startsWith('Fails');
  if (failed) status = 1;
  if (failed) console.log('expected 1, got 2');
  console.log((failed ? '[  FAILED  ] ' : test.startsWith('Skips') ? '[  SKIPPED ] ' : '[       OK ] ') + name + ' (5 ms)');
  const own = { classname: suite, name: test, time: '0.005s', result: test.startsWith('Skips') ? 'SKIPPED' : 'COMPLETED' };
  done.push({ testsuite: [failed ? { ...own, failures: [{}] } : own] });
}
const report = option('gtest_output')?.slice('json:'.length);
if (report) writeFileSync(report, JSON.stringify({ testsuites: done }));
process.exitCode = status;
`;

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gradlink-cases-'));
  writeFileSync(join(folder, 'program.cjs'), program);
  chmodSync(join(folder, 'program.cjs'), 0o755);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** As CTest lists them. */
const listing = (names: readonly string[], more: Record<string, unknown> = {}) => ({
  tests: names.map((name) => ({
    name: `layer.${name}`,
    command: [join(folder, 'program.cjs'), `--gtest_filter=${name}`],
    properties: Object.entries({
      LABELS: ['layer'],
      TIMEOUT: 120,
      ENVIRONMENT: [`STARTS=${join(folder, 'starts')}`],
      ...more,
    }).map(([key, value]) => ({ name: key, value })),
  })),
});

/** The outcomes by case, and what each process was told to run. */
async function outcomesOf(names: readonly string[], more?: Record<string, unknown>) {
  rmSync(join(folder, 'starts'), { force: true });
  const outcomes = await runCases(casesOf(listing(names, more)), { jobs: 2 });
  expect(outcomes.map(({ name }) => name).sort()).toEqual(
    names.map((name) => `layer.${name}`).sort(),
  );
  return {
    of: Object.fromEntries(outcomes.map(({ name, status }) => [name.slice(6), status])),
    said: Object.fromEntries(outcomes.map(({ name, said }) => [name.slice(6), said])),
    starts: readFileSync(join(folder, 'starts'), 'utf8').trimEnd().split('\n'),
    outcomes,
  };
}

describe('native cases', () => {
  it('share a process, and each has its own outcome and output', async () => {
    const { of, said, starts } = await outcomesOf(['A.Works', 'A.Fails', 'A.Skips', 'B.Works']);
    expect(of).toEqual({
      'A.Works': 'run',
      'A.Fails': 'fail',
      'A.Skips': 'notrun',
      'B.Works': 'run',
    });
    expect(said['A.Fails']).toContain('expected 1, got 2');
    expect(said['A.Fails']).not.toContain('A.Skips');
    expect(starts).toEqual(['A.Works A.Fails A.Skips B.Works']);
  });

  it('that crash cost themselves alone', async () => {
    const names = ['A.Works', 'A.Fails', 'A.Crashes', 'A.AlsoWorks', 'A.CrashesToo', 'B.Works'];
    const { of, said, starts } = await outcomesOf(names);
    expect(of).toEqual({
      'A.Works': 'run',
      'A.Fails': 'fail',
      'A.Crashes': 'fail',
      'A.AlsoWorks': 'run',
      'A.CrashesToo': 'fail',
      'B.Works': 'run',
    });
    expect(said['A.Crashes']).toContain('the process ended by SIGSEGV');
    expect(starts).toHaveLength(3);
  });

  it('that hang are ended, and said to', async () => {
    // On a busy machine a process takes seconds to start.
    const { of, said } = await outcomesOf(['A.Works', 'A.Hangs', 'B.Works'], { TIMEOUT: 8 });
    expect(of).toEqual({ 'A.Works': 'run', 'A.Hangs': 'fail', 'B.Works': 'run' });
    expect(said['A.Hangs']).toContain('it took longer than 8 s');
  });

  it('that leave something at the end are found alone', async () => {
    const { of } = await outcomesOf(['A.Works', 'A.Leaks', 'B.Works']);
    expect(of).toEqual({ 'A.Works': 'run', 'A.Leaks': 'fail', 'B.Works': 'run' });
  });

  it('that do so only beside others fail all the same', async () => {
    const { outcomes } = await outcomesOf(['A.Works', 'A.LeaksBeside', 'B.Works']);
    const failed = outcomes.filter(({ status }) => status === 'fail');
    expect(failed).toHaveLength(1);
    expect(failed[0]!.said).toContain('status 23 after its 3 cases; none of them fails alone');
  });

  it('that want the processors are apart from the others, and so are single commands', async () => {
    const wide = listing(['C.Works', 'C.AlsoWorks'], { PROCESSORS: 2 });
    const pattern = listing(['D.*']);
    const all = { tests: [...listing(['A.Works', 'B.Works']).tests, ...wide.tests] };
    rmSync(join(folder, 'starts'), { force: true });
    const cases = casesOf({ tests: [...all.tests, ...pattern.tests] });
    const outcomes = await runCases(cases, { jobs: 1 });
    expect(outcomes.every(({ status }) => status === 'run')).toBe(true);
    const starts = readFileSync(join(folder, 'starts'), 'utf8').trimEnd().split('\n');
    expect(starts.sort()).toEqual(['A.Works B.Works', 'C.Works C.AlsoWorks', 'D.*']);
    expect(starts.at(-1)).toBe('D.*');
  });

  it('are chosen by name and label', () => {
    const list = listing(['A.Works', 'A.Slow', 'B.Works']);
    const names = (options: Choice) => casesOf(list, options).map(({ name }) => name);
    expect(names({ exclude: /Slow/ })).toEqual(['layer.A.Works', 'layer.B.Works']);
    expect(names({ only: /\.A\./ })).toEqual(['layer.A.Works', 'layer.A.Slow']);
    expect(names({ excludeLabel: /^layer$/ })).toEqual([]);
  });

  it('end with the runner', async () => {
    const build = mkdtempSync(join(folder, 'build-'));
    const started = join(build, 'starts');
    writeFileSync(
      join(build, 'CTestTestfile.cmake'),
      `add_test(A.Hangs "${join(folder, 'program.cjs')}" "--gtest_filter=A.Hangs")\n`,
    );
    const args = [fileURLToPath(script), build, '--output', join(build, 'cases.xml')];
    const env = { ...process.env, STARTS: started };
    const runner = spawn(process.execPath, args, { env, stdio: 'ignore' });
    const ended = new Promise((resolve) => runner.on('exit', resolve));
    await until(() => existsSync(started));
    const pid = readFileSync(`${started}.pid`, 'utf8');
    runner.kill('SIGTERM');
    expect(await ended).toBe(128 + 15);
    await until(() => !existsSync(`/proc/${pid}`));
  });

  it('are written as CTest writes them', async () => {
    const { outcomes } = await outcomesOf(['A.Works', 'A.Fails', 'A.Skips']);
    const text = junit(outcomes);
    expect(text.match(/<testcase name="layer\.A\.\w+" time="0\.005" status="\w+">/g)).toEqual([
      '<testcase name="layer.A.Works" time="0.005" status="run">',
      '<testcase name="layer.A.Fails" time="0.005" status="fail">',
      '<testcase name="layer.A.Skips" time="0.005" status="notrun">',
    ]);
    expect(junit([{ name: '"<&', status: 'fail', seconds: 0, said: '\u001b[1m' }])).toContain(
      'name="&quot;&lt;&amp;"',
    );
  });
});
