#!/usr/bin/env node
// Runs the cases that CTest lists, many in a process: starting one takes longer than most cases do, under a sanitizer
// several times as long. A process that crashes or hangs costs the case that it was at; the others of it run in another.
//
//   node scripts/native-cases.mjs FOLDER --output FILE.xml [--exclude REGEX] [--exclude-label REGEX] [--only REGEX] [--jobs N]
//
// FOLDER is a build folder, FILE.xml gets the outcomes as JUnit. REGEX is matched against a case's name (LAYER.SUITE.CASE) or
// its labels. As under CTest, a case that asks for two processors or more has them alone. `ctest --test-dir FOLDER -R NAME`
// runs a case in a process of its own.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/** What a process runs at most: so many that its start is little beside them, so few that the processes end together. */
const casesPerProcess = 40;

/**
 * @typedef {{name: string, filter?: string, program: string, args: string[], environment: Record<string, string>,
 *   folder: string, limit: number, processors: number}} Case filter: its name for GoogleTest; without one it is a command
 * @typedef {{name: string, status: 'run' | 'fail' | 'notrun', seconds: number, said: string}} Outcome
 */

/**
 * From what `ctest --show-only=json-v1` prints.
 * @returns {Case[]}
 */
export function casesOf(listing, { only, exclude, excludeLabel } = {}) {
  return listing.tests
    .map((test) => ({
      test,
      properties: Object.fromEntries(test.properties.map(({ name, value }) => [name, value])),
    }))
    .filter(({ test, properties }) => {
      const labels = properties.LABELS ?? [];
      return (
        (only === undefined || only.test(test.name)) &&
        !exclude?.test(test.name) &&
        !labels.some((label) => excludeLabel?.test(label))
      );
    })
    .map(({ test, properties }) => {
      const [program, ...args] = test.command;
      // What has a pattern for its filter is a case of its own: it says so by its exit status.
      const filter = /^--gtest_filter=([^*:]+)$/.exec(args[0] ?? '')?.[1];
      return {
        name: test.name,
        ...(filter === undefined ? {} : { filter }),
        program,
        args,
        environment: Object.fromEntries(
          (properties.ENVIRONMENT ?? []).map((entry) => {
            const at = entry.indexOf('=');
            return [entry.slice(0, at), entry.slice(at + 1)];
          }),
        ),
        folder: properties.WORKING_DIRECTORY ?? process.cwd(),
        limit: properties.TIMEOUT ?? 600,
        processors: properties.PROCESSORS ?? 1,
      };
    });
}

/** Cases that one process can run, in their order. */
function batchesOf(cases) {
  const batches = new Map();
  const done = [];
  for (const each of cases) {
    if (each.filter === undefined) {
      done.push([each]);
      continue;
    }
    const key = JSON.stringify([each.program, each.environment, each.folder, each.processors > 1]);
    const batch = batches.get(key) ?? [];
    batch.push(each);
    batches.set(key, batch);
    if (batch.length === casesPerProcess) {
      done.push(batch);
      batches.delete(key);
    }
  }
  return [...done, ...batches.values()];
}

/** The programs that run, each the leader of a process group. */
const running = new Set();

/** Ends a program and what it started. */
function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // It has just ended by itself.
    if (error.code !== 'ESRCH') throw error;
  }
}

/**
 * Runs a program until it ends, or until nothing was said of its cases for so many seconds.
 * @returns {Promise<{status: number | null, signal: string | null, late: boolean, said: string}>}
 */
function execute(program, args, { environment, folder, limit }, onText = () => {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: what it started ends with it.
      detached: true,
    });
    if (child.pid !== undefined) running.add(child.pid);
    let said = '';
    let late = false;
    let timer;
    const wind = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        late = true;
        endGroup(child.pid);
      }, limit * 1000);
    };
    const take = (text) => {
      said += text;
      if (onText(said)) wind();
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', (error) => {
      said += error.message;
      clearTimeout(timer);
      resolve({ status: null, signal: null, late, said });
    });
    child.on('close', (status, signal) => {
      running.delete(child.pid);
      clearTimeout(timer);
      resolve({ status, signal, late, said });
    });
    wind();
  });
}

const howItEnded = ({ status, signal, late }, limit) =>
  late
    ? `it took longer than ${limit} s`
    : `the process ended ${signal ? `by ${signal}` : `with status ${status}`}`;

/** @returns {Promise<Outcome[]>} */
async function runAlone(each) {
  const began = performance.now();
  const end = await execute(each.program, each.args, each);
  const failed = end.status !== 0;
  return [
    {
      name: each.name,
      status: failed ? 'fail' : end.said.includes('[  SKIPPED ]') ? 'notrun' : 'run',
      seconds: (performance.now() - began) / 1000,
      said: failed ? `${end.said}\n${howItEnded(end, each.limit)}` : end.said,
    },
  ];
}

/** How many were asked for, which names them. */
let reports = 0;

/** What GoogleTest's own report says of each case that ended; undefined where the process wrote none. */
function reportOf(file) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
  const outcomes = new Map();
  for (const suite of report.testsuites)
    for (const test of suite.testsuite)
      outcomes.set(`${test.classname}.${test.name}`, {
        status: test.failures ? 'fail' : test.result === 'SKIPPED' ? 'notrun' : 'run',
        seconds: Number.parseFloat(test.time),
      });
  return outcomes;
}

/** What was printed between a case's start and the next one's. */
function saidOf(said, filter) {
  const at = said.lastIndexOf(`[ RUN      ] ${filter}\n`);
  if (at < 0) return said;
  const next = said.indexOf('[ RUN      ]', at + 1);
  return next < 0 ? said.slice(at) : said.slice(at, next);
}

/**
 * Runs cases of one executable in as few processes as they let it.
 * @returns {Promise<Outcome[]>}
 */
async function runBatch(batch, folder) {
  if (batch.length === 1) return runAlone(batch[0]);
  const report = join(folder, `${++reports}.json`);
  const [{ program, limit }] = batch;
  let started = 0;
  const end = await execute(
    program,
    [
      `--gtest_filter=${batch.map(({ filter }) => filter).join(':')}`,
      '--gtest_also_run_disabled_tests',
      '--gtest_color=no',
      `--gtest_output=json:${report}`,
    ],
    batch[0],
    (said) => {
      const count = said.split('[ RUN      ]').length;
      const more = count > started;
      started = count;
      return more;
    },
  );
  const reported = reportOf(report);
  rmSync(report, { force: true });
  const of = ({ name, filter }, outcome) => ({ name, ...outcome, said: saidOf(end.said, filter) });
  if (reported !== undefined && batch.every(({ filter }) => reported.has(filter))) {
    const outcomes = batch.map((each) => of(each, reported.get(each.filter)));
    if (end.status === 0 || outcomes.some(({ status }) => status === 'fail')) return outcomes;
    // As of a leak, which is found when all have run: whose it is, they say alone.
    const alone = [];
    for (const each of batch) alone.push(...(await runAlone(each)));
    if (alone.some(({ status }) => status === 'fail')) return alone;
    const [first, ...others] = alone;
    const said = `${end.said}\n${howItEnded(end, limit)} after its ${batch.length} cases; none of them fails alone`;
    return [{ ...first, status: 'fail', said }, ...others];
  }
  // It broke off: at the case that was running, whose outcome was not printed.
  const isDone = ({ filter }) => {
    const own = saidOf(end.said, filter);
    return own !== end.said && /\[ {2}(?: {5}OK|FAILED {0,1}|SKIPPED) \] /.test(own);
  };
  const before = batch.filter(isDone);
  const rest = batch.filter((each) => !before.includes(each));
  const outcomes = before.map((each) => {
    const own = saidOf(end.said, each.filter);
    const status = own.includes('[  FAILED  ]')
      ? 'fail'
      : own.includes('[  SKIPPED ]')
        ? 'notrun'
        : 'run';
    return of(each, { status, seconds: Number(/\((\d+) ms\)/.exec(own)?.[1] ?? 0) / 1000 });
  });
  const broken =
    rest.find(({ filter }) => end.said.includes(`[ RUN      ] ${filter}\n`)) ?? rest[0];
  if (broken !== undefined) {
    const said = `${saidOf(end.said, broken.filter)}\n${howItEnded(end, limit)}`;
    outcomes.push({ name: broken.name, status: 'fail', seconds: 0, said });
  }
  const left = rest.filter((each) => each !== broken);
  return left.length === 0 ? outcomes : [...outcomes, ...(await runBatch(left, folder))];
}

/**
 * Runs all cases, those that want the processors alone last.
 * @param {Case[]} cases
 * @param {{jobs?: number, onBatch?: (outcomes: Outcome[]) => void}} [options]
 * @returns {Promise<Outcome[]>}
 */
export async function runCases(cases, { jobs = availableParallelism(), onBatch = () => {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'native-cases-'));
  const outcomes = [];
  const work = async (queue) => {
    for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
      const own = await runBatch(batch, folder);
      onBatch(own);
      outcomes.push(...own);
    }
  };
  try {
    const beside = batchesOf(cases.filter(({ processors }) => processors <= 1));
    await Promise.all(Array.from({ length: jobs }, () => work(beside)));
    await work(batchesOf(cases.filter(({ processors }) => processors > 1)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return outcomes;
}

const escape = (text) =>
  // What XML has no room for, sanitizers' colours for one, says nothing.
  text.replace(/[\u0000-\u0008\u000b-\u001f]/g, '').replace(/[&<>"]/g, (sign) => {
    return { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }[sign];
  });

/** As CTest writes it. */
export function junit(outcomes) {
  const cases = outcomes.map(({ name, status, seconds, said }) => {
    const start = `  <testcase name="${escape(name)}" time="${seconds.toFixed(3)}" status="${status}">`;
    const failure = status === 'fail' ? '<failure message="see above"/>' : '';
    const skipped = status === 'notrun' ? '<skipped message="SKIPPED"/>' : '';
    const out = status === 'run' ? '' : `<system-out>${escape(said)}</system-out>`;
    return `${start}${failure}${skipped}${out}</testcase>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuite>\n${cases.join('\n')}\n</testsuite>\n`;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      output: { type: 'string' },
      only: { type: 'string' },
      exclude: { type: 'string' },
      'exclude-label': { type: 'string' },
      jobs: { type: 'string' },
    },
  });
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1 || values.output === undefined) {
    throw new Error('native-cases.mjs: expected a build folder and --output FILE.xml');
  }
  // Those groups are no part of this one, which a terminal's Ctrl-C reaches.
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
    ['SIGHUP', 1],
  ]) {
    process.on(signal, () => {
      running.forEach(endGroup);
      process.exit(128 + number);
    });
  }
  const listed = spawnSync('ctest', ['--test-dir', folder, '--show-only=json-v1'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (listed.status !== 0) throw new Error(`ctest cannot list the cases:\n${listed.stderr}`);
  const pattern = (text) => (text === undefined ? undefined : new RegExp(text));
  const cases = casesOf(JSON.parse(listed.stdout), {
    only: pattern(values.only),
    exclude: pattern(values.exclude),
    excludeLabel: pattern(values['exclude-label']),
  });
  if (cases.length === 0) throw new Error('native-cases.mjs: no case is left to run');
  const began = performance.now();
  const outcomes = await runCases(cases, {
    ...(values.jobs === undefined ? {} : { jobs: Number(values.jobs) }),
    onBatch: (own) => {
      const failed = own.filter(({ status }) => status === 'fail');
      const seconds = own.reduce((sum, each) => sum + each.seconds, 0);
      const suites = [...new Set(own.map(({ name }) => name.split('.').slice(0, 2).join('.')))];
      console.log(
        `${String(own.length - failed.length).padStart(4)} ok ${seconds.toFixed(1).padStart(7)} s  ` +
          (suites.length > 3 ? `${suites.slice(0, 3).join(', ')}, …` : suites.join(', ')),
      );
      for (const { name, said } of failed) console.log(`FAILED  ${name}\n${said}`);
    },
  });
  writeFileSync(values.output, junit(outcomes));
  const failed = outcomes.filter(({ status }) => status === 'fail');
  console.log(
    `${outcomes.length - failed.length} of ${outcomes.length} cases ok in ${((performance.now() - began) / 1000).toFixed(0)} s`,
  );
  for (const { name } of failed) console.log(`  failed: ${name}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
