// The closing line of .ci/run: what it counts is what the result files say.
// @module-tag smoke
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const script = join(root, 'scripts', 'test-summary.mjs');

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gradlink-summary-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function summary(...names: string[]): Promise<{ code: number; stdout: string }> {
  const options = { env: { ...process.env, GRADLINK_TEST_RESULTS: folder } };
  return run(process.execPath, [script, ...names], options).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: unknown) => error as { code: number; stdout: string },
  );
}

const lastLine = (text: string) => text.trimEnd().split('\n').at(-1);

const vitest = (...statuses: string[]) => ({
  success: !statuses.includes('failed'),
  testResults: [
    {
      name: join(root, 'test', 'a.test.ts'),
      status: statuses.includes('failed') ? 'failed' : 'passed',
      message: '',
      assertionResults: statuses.map((status, i) => ({
        fullName: `case ${i}`,
        status,
        duration: 2000 - i,
        failureMessages: [],
      })),
    },
  ],
});

const junit = `<?xml version="1.0"?><testsuite tests="3">
  <testcase name="shm.Sum.adds" classname="x" time="0.1" status="run"><system-out>fine</system-out></testcase>
  <testcase name="shm.Sum.fails" classname="x" time="0.1" status="fail"><failure message="Failed"/></testcase>
  <testcase name="shm.Numa.spreads" classname="x" time="0.1" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>numa_test.cc:5: Skipped
one NUMA node only
</system-out></testcase>
</testsuite>`;

describe('test-summary', () => {
  test('adds up tests, native tests and checks, and names skips with their reasons', async () => {
    await writeFile(join(folder, 'vitest.json'), JSON.stringify(vitest('passed', 'passed')));
    await writeFile(join(folder, 'native-plain.xml'), junit);
    await writeFile(join(folder, 'checks.txt'), 'pass eslint\nfail prettier\n');
    const { code, stdout } = await summary('vitest', 'native-plain', 'checks');
    expect(lastLine(stdout)).toBe('4 passed, 2 failed, 1 skipped');
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /Skipped:\n {2}native-plain: shm\.Numa\.spreads\n {4}one NUMA node only/,
    );
    expect(stdout).toMatch(/Failed:\n(.*\n)* {2}prettier/);
  });

  test('says nothing of skips where there are none', async () => {
    await writeFile(join(folder, 'vitest.json'), JSON.stringify(vitest('passed')));
    const { code, stdout } = await summary('vitest');
    expect(lastLine(stdout)).toBe('1 passed, 0 failed');
    expect(code).toBe(0);
    expect(stdout).not.toContain('Skipped');
  });

  test('counts no case that the filter left to another layer, and names the reason of a skip', async () => {
    const file = JSON.stringify(vitest('passed', 'skipped', 'skipped'));
    await writeFile(join(folder, 'vitest-jobs.json'), file);
    const skips = { reasons: { 'case 1': 'no Slurm here' }, otherLayers: ['case 2'] };
    await writeFile(join(folder, 'vitest-jobs.skips.json'), JSON.stringify(skips));
    const { stdout } = await summary('vitest-jobs');
    expect(lastLine(stdout)).toBe('1 passed, 0 failed, 1 skipped');
    expect(stdout).toMatch(/case 1\n {4}no Slurm here/);
  });

  test('names the seconds of each phase, their sum, and the slowest cases first', async () => {
    await writeFile(join(folder, 'phases.txt'), '12 0 setting up\n30 0 native tests: plain\n');
    await writeFile(join(folder, 'vitest.json'), JSON.stringify(vitest('passed', 'passed')));
    await writeFile(join(folder, 'native-plain.xml'), junit.replace('time="0.1"', 'time="7.5"'));
    const { stdout } = await summary('vitest', 'native-plain');
    expect(stdout).toMatch(/ 12 {2}setting up\n +30 {2}native tests: plain\n +42 {2}together\n/);
    expect(stdout).toMatch(
      / 7\.5 {2}native-plain: shm\.Sum\.adds\n +2\.0 .*case 0\n +2\.0 .*case 1\n/,
    );
    expect(stdout).toMatch(/ 2 {2}vitest\n +1 {2}native-plain\n/);
  });

  test('a phase that failed without a failing case has failed, and is named', async () => {
    await writeFile(join(folder, 'phases.txt'), '12 0 setting up\n30 2 TypeScript\n');
    await writeFile(join(folder, 'vitest.json'), JSON.stringify(vitest('passed')));
    const { code, stdout } = await summary('vitest');
    expect(lastLine(stdout)).toBe('1 passed, 1 failed');
    expect(code).toBe(1);
    expect(stdout).toMatch(/ 30 {2}TypeScript: failed \(exit status 2\)\n/);
    expect(stdout).toMatch(/Failed:\n {2}TypeScript\n {4}exit status 2/);
  });

  test('an error outside any test has failed, and is named, though vitest calls that a success', async () => {
    await writeFile(join(folder, 'vitest.json'), JSON.stringify(vitest('passed')));
    const errors = ['/x/a.test.ts: Error: nobody handled it'];
    const skips = JSON.stringify({ reasons: {}, otherLayers: [], errors });
    await writeFile(join(folder, 'vitest.skips.json'), skips);
    const { code, stdout } = await summary('vitest');
    expect(lastLine(stdout)).toBe('1 passed, 1 failed');
    expect(code).toBe(1);
    expect(stdout).toMatch(/vitest: outside any test\n {4}.*nobody handled it/);
  });

  test('a run that left no results has failed', async () => {
    const { code, stdout } = await summary('vitest', 'native-address');
    expect(lastLine(stdout)).toBe('0 passed, 2 failed');
    expect(code).toBe(1);
  });

  test('a file that could not be loaded, and an error outside any test, have failed', async () => {
    const broken = vitest('passed');
    await writeFile(join(folder, 'vitest.json'), JSON.stringify({ ...broken, success: false }));
    expect(lastLine((await summary('vitest')).stdout)).toBe('1 passed, 1 failed');
    const [file] = broken.testResults;
    const unloaded = { ...file, status: 'failed', assertionResults: [] };
    await writeFile(
      join(folder, 'vitest.json'),
      JSON.stringify({ success: false, testResults: [unloaded] }),
    );
    expect(lastLine((await summary('vitest')).stdout)).toBe('0 passed, 1 failed');
  });
});
