// The closing line of .ci/run: what it counts is what the result files say.
// @module-tag smoke
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

import { folderOfEachTest } from '../support/folders.js';
import { until } from '../support/launching.js';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const script = join(root, 'scripts', 'test-summary.mjs');

let folder: string;
folderOfEachTest((made) => (folder = made));

const put = (name: string, content: unknown) =>
  writeFile(
    join(folder, name),
    typeof content === 'string' ? content : `${JSON.stringify(content)}\n`,
  );

/** Of the results that a phase each has left. */
async function summary(
  names: readonly string[],
  args: readonly string[] = [],
): Promise<{ code: number; stdout: string }> {
  await put('flaky.json', [{ case: 'test/a.test.ts: case 1', cause: 'a race' }]);
  const env = {
    ...process.env,
    GRADLINK_TEST_RESULTS: folder,
    GRADLINK_FLAKY: join(folder, 'flaky.json'),
  };
  if (names.length > 0) await put('phases.txt', names.map((name) => `0 1 0 ${name} x\n`).join(''));
  return run(process.execPath, [script, ...args], { env }).then(
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
        failureMessages: status === 'failed' ? ['Error: it failed\nits reason\n    at a.js:1'] : [],
      })),
    },
  ],
});

const junit = `<?xml version="1.0"?><testsuite tests="3">
  <testcase name="shm.Sum.adds" classname="x" time="0.1" status="run"><system-out>fine</system-out></testcase>
  <testcase name="shm.Sum.fails" classname="x" time="0.1" status="fail"><failure message="Failed"/></testcase>
  <testcase name="shm.Numa.spreads" classname="x" time="0.1" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>numa_test.cc:5: Skipped
one node
</system-out></testcase>
</testsuite>`;

describe('test-summary', () => {
  test('adds up tests, native tests and checks, and names skips with their reasons', async () => {
    await put('vitest.json', vitest('passed', 'passed'));
    await put('native-plain.xml', junit);
    await put('checks.txt', 'pass eslint\nfail prettier\n');
    const { code, stdout } = await summary(['vitest', 'native-plain', 'checks']);
    expect(lastLine(stdout)).toBe('4 passed, 2 failed, 1 skipped');
    expect(code).toBe(1);
    expect(stdout).toMatch(/Skipped:\n {2}native-plain: shm\.Numa\.spreads\n {4}one node/);
    expect(stdout).toMatch(/Failed:\n(.*\n)* {2}prettier/);
  });

  test('names why a case failed with all that its error says, without the stack', async () => {
    await put('vitest.json', vitest('failed'));
    const { stdout } = await summary(['vitest']);
    expect(stdout).toMatch(/case 0\n {4}Error: it failed\n {4}its reason\n0 passed/);
  });

  test('says nothing of skips where there are none', async () => {
    await put('vitest.json', vitest('passed'));
    const { code, stdout } = await summary(['vitest']);
    expect(lastLine(stdout)).toBe('1 passed, 0 failed');
    expect(code).toBe(0);
    expect(stdout).not.toContain('Skipped');
  });

  test('counts no case that the filter left to another layer, and names the reason of a skip', async () => {
    await put('vitest-jobs.json', vitest('passed', 'skipped', 'skipped'));
    const reasons = { 'case 1': 'no Slurm' };
    await put('vitest-jobs.skips.json', { reasons, otherLayers: ['case 2'], outside: [] });
    const { stdout } = await summary(['vitest-jobs']);
    expect(lastLine(stdout)).toBe('1 passed, 0 failed, 1 skipped');
    expect(stdout).toMatch(/case 1\n {4}no Slurm/);
  });

  test('names the seconds of each phase, of the whole though they overlap, and the slowest cases first', async () => {
    await put(
      'phases.txt',
      '0 12 0 - setting up\n12 42 0 vitest,native-plain tests\n13 40 0 - compiling\n',
    );
    await put('vitest.json', vitest('passed', 'passed'));
    await put('native-plain.xml', junit.replace('time="0.1"', 'time="7.5"'));
    const { stdout } = await summary([]);
    expect(stdout).toMatch(/ 12 {2}setting up\n +30 {2}tests\n +27 {2}compiling.*\n +42 {2}/);
    expect(stdout).toMatch(
      / 7\.5 {2}native-plain: shm\.Sum\.adds\n +2\.0 .*case 0\n +2\.0 .*case 1\n/,
    );
    expect(stdout).toMatch(/ 2 {2}vitest\n +1 {2}native-plain\n/);
  });

  test('a run that left no results has failed, and a phase without any', async () => {
    await put('phases.txt', '0 1 0 vitest,native-address tests\n1 2 2 - compiling\n');
    const { code, stdout } = await summary([]);
    expect(lastLine(stdout)).toBe('0 passed, 3 failed');
    expect(code).toBe(1);
  });

  test('a file that could not be loaded, and what lies outside any test, have failed', async () => {
    const broken = vitest('passed');
    await put('vitest.json', { ...broken, success: false });
    expect(lastLine((await summary(['vitest'])).stdout)).toBe('1 passed, 1 failed');
    const outside = ['case 3: killed, since it had not ended after 65 s'];
    await put('vitest.skips.json', { reasons: {}, otherLayers: [], outside });
    const { stdout } = await summary(['vitest']);
    expect(lastLine(stdout)).toBe('1 passed, 1 failed');
    expect(stdout).toMatch(/Failed:\n.*\n {4}case 3: killed/);
    const [file] = broken.testResults;
    const unloaded = { ...file, status: 'failed', assertionResults: [] };
    await rm(join(folder, 'vitest.skips.json'));
    await put('vitest.json', { success: false, testResults: [unloaded] });
    expect(lastLine((await summary(['vitest'])).stdout)).toBe('0 passed, 1 failed');
  });

  test('a case that is known to fail by chance fails the gate, and is reported apart of a part', async () => {
    await put('vitest.json', vitest('passed', 'failed'));
    await put('phases.txt', '0 1 1 vitest tests\n');
    const gate = await summary([]);
    expect([gate.code, lastLine(gate.stdout)]).toEqual([1, '1 passed, 1 failed']);
    const { code, stdout } = await summary([], ['--name', 'jobs']);
    expect([code, lastLine(stdout)]).toEqual([0, 'jobs: 1 passed, 0 failed']);
    expect(stdout).toMatch(/case 1\n {4}a race/);
    // The other case is not.
    await put('vitest.json', vitest('failed', 'failed'));
    expect((await summary([], ['--name', 'jobs'])).code).toBe(1);
  });
});

test('at most ten cases are known to fail by chance, each with its cause', async () => {
  const file = join(root, 'test', 'flaky.json');
  const known = JSON.parse(await readFile(file, 'utf8')) as { case: string; cause: string }[];
  expect(known.length).toBeLessThanOrEqual(10);
  for (const { cause } of known) expect(cause).toMatch(/^.{20,}$/);
});

test('a case that blocks is killed and named, with what it started', async () => {
  // Where the packages are found.
  const own = await mkdtemp(join(root, 'build', 'hung-'));
  const started = join(folder, 'pid');
  try {
    await writeFile(
      join(own, 'blocks.test.ts'),
      `import { execFileSync } from 'node:child_process';
       import { test } from 'vitest';
       test('passes', () => {});
       test('hangs', { timeout: 1000 }, () => {
         execFileSync('sh', ['-c', 'echo $$ >${started}; exec sleep 1000']);
       });`,
    );
    await writeFile(
      join(own, 'vitest.config.mjs'),
      `export default { test: { include: ['**/*.test.ts'], setupFiles: ['${join(root, 'test/setup/running.ts')}'] } };`,
    );
    await mkdir(join(folder, 'running'));
    const args = [
      ...[join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', own],
      ...['--reporter=json', `--outputFile.json=${join(folder, 'vitest.json')}`],
      `--reporter=${join(root, 'scripts/vitest-results.mjs')}`,
    ];
    const env = { ...process.env, GRADLINK_RUNNING: join(folder, 'running') };
    await expect(run(process.execPath, args, { env })).rejects.toMatchObject({ code: 1 });
    const { stdout } = await summary(['vitest']);
    expect(stdout).toMatch(/blocks\.test\.ts: .*hangs/);
    // What has ended, and nobody has asked how, has no program any more.
    const program = `/proc/${(await readFile(started, 'utf8')).trim()}/exe`;
    await until(() => !existsSync(program));
  } finally {
    await rm(own, { recursive: true });
  }
});
