#!/usr/bin/env node
// Measures gradlink and each peer in turn, in one run, at the same sizes, and says how far the targets are reached.
//
//   node lab/peers/run.js [--quick] [--case PATTERN] [--minutes N] [--beside FILE] [--markdown] [--output FILE]
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { describeEnvironment, native } from '../../dist/internal.js';
import { Budget } from './budget.js';
import { chosen, namesOf, plans } from './cases.js';
import { collectPeers, nothing } from './collect.js';
import { readRun, schema, writeRun } from './result.js';
import { tablesOf } from './tables.js';
import { evaluate } from './targets.js';
import { here } from './work.js';

const defaultOutput = here('../../build/peers.json');

const usage = `usage: node lab/peers/run.js [OPTIONS]

  --case PATTERN  only what matches this regular expression, such as stores, processes-2 or /openmpi
  --list          print the names that --case is held against
  --minutes N     end within N minutes (default: 10); what does not fit is left out and listed
  --beside FILE   show this machine beside another one, whose run is in FILE (written by --output there);
                  a target is reached where it holds on both
  --quick         every path once with few samples: proves that it runs, measures nothing
  --markdown      print the tables as Markdown
  --output FILE   write everything measured, sample by sample, as JSON, anew after each job
                  (default: build/peers.json)
  -h, --help      print this

Each contender is warmed first, and its time limit follows from what that took. Peers that are not installed are
listed as waived; who fails or is late is listed with the reason, keeps what it had, and stops nobody else.

Exit status: 0 when all that ran ended well and every result was right, whether targets are reached or not; 1 when
not; 2 for bad usage.`;

class UsageError extends Error {}

function options() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        case: { type: 'string' },
        list: { type: 'boolean', default: false },
        minutes: { type: 'string', default: '10' },
        beside: { type: 'string' },
        quick: { type: 'boolean', default: false },
        markdown: { type: 'boolean', default: false },
        output: { type: 'string', default: defaultOutput },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }));
  } catch (error) {
    throw new UsageError(error.message);
  }
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) {
    throw new UsageError(`expected a number above 0 for --minutes, got '${values.minutes}'`);
  }
  const plan = planOf(values);
  return { ...values, minutes, plan, other: otherOf(values.beside) };
}

function planOf({ quick, case: pattern }) {
  const plan = quick ? plans.quick : plans.full;
  let expression;
  try {
    expression = pattern === undefined ? undefined : new RegExp(pattern, 'i');
  } catch (error) {
    throw new UsageError(
      `expected a regular expression for --case, got '${pattern}': ${error.message}`,
    );
  }
  const part = chosen(plan, expression);
  if (part.cases.length > 0) return part;
  throw new UsageError(
    `expected --case to match at least one of ${namesOf(plan).join(', ')}; got '${pattern}'`,
  );
}

function otherOf(file) {
  try {
    return file === undefined ? undefined : readRun(file);
  } catch (error) {
    throw new UsageError(error.message);
  }
}

const firstLine = (command, args) =>
  spawnSync(command, args, { encoding: 'utf8', timeout: 30_000 })
    .stdout?.split('\n')
    .find(Boolean)
    ?.trim() ?? null;

function versions() {
  const newer = process.env['GRADLINK_PEERS_OPENMPI'];
  return {
    openmpi: firstLine('mpirun.openmpi', ['--version']),
    newerOpenmpi: newer ? firstLine(`${newer}/bin/mpirun`, ['--version']) : null,
    mpich: firstLine('mpichversion', []),
    torch: firstLine('/usr/bin/python3', ['-c', 'import torch; print(torch.__version__)']),
  };
}

async function main() {
  const { help, list, minutes, plan, other, markdown, output, case: pattern } = options();
  if (help || list) {
    console.log(help ? usage : namesOf(plan).join('\n'));
    return;
  }
  const startedAt = new Date();
  const budget = new Budget(60 * minutes);
  const say = (what) => process.stderr.write(`${elapsed(startedAt)}  ${what}\n`);
  const described = {
    schema,
    startedAt: startedAt.toISOString(),
    commandLine: process.argv.slice(2),
    minutes,
    pattern: pattern ?? null,
    environment: describeEnvironment({
      simdLevel: native().simdLevel(),
      threads: native().numThreads(),
    }),
    versions: versions(),
  };
  const kept = (collected, finished = false) => {
    const run = { ...described, finished, ...collected, targets: evaluate(collected) };
    writeRun(output, run);
    return run;
  };
  mkdirSync(dirname(resolve(output)), { recursive: true });
  kept(nothing());
  say(`what is measured is in ${output} as it comes; at most ${minutes} minutes`);
  const run = kept(await collectPeers(plan, budget, { say, kept }), true);
  say('done');
  const runs = other === undefined ? [run] : [run, other];
  console.log(tablesOf(runs, markdown ? 'markdown' : 'text'));

  const wrong = run.records.filter((record) => record.wrong > 0);
  for (const { contender, ranks, bytes, place } of wrong) {
    console.error(`WRONG RESULT: ${contender}, ${ranks} ranks, ${bytes} bytes, ${place}`);
  }
  const failed = run.waivers.filter(({ kind }) => kind === 'failed' || kind === 'late');
  for (const { contender, case: name, kind, reason } of failed) {
    console.error(`${kind.toUpperCase()}: ${contender}, ${name}: ${reason}`);
  }
  process.exitCode = wrong.length > 0 || failed.length > 0 ? 1 : 0;
}

function elapsed(since) {
  return `${((Date.now() - since.getTime()) / 1e3).toFixed(0).padStart(4)} s`;
}

try {
  await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
