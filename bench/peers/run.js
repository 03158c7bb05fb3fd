#!/usr/bin/env node
// Measures gradlink and each peer in turn, in one run, at the same sizes, and says how far the targets are reached.
//
//   node bench/peers/run.js [--quick] [--markdown] [--output FILE]
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeEnvironment, native } from '../../dist/internal.js';
import { collectPeers, plans } from './collect.js';
import { collectInProcess, collectOverhead, collectStore } from './ours.js';
import { tablesOf } from './tables.js';
import { evaluate } from './targets.js';

const usage = `usage: node bench/peers/run.js [--quick] [--markdown] [--output FILE]

  --quick        every path once with few samples: proves that it runs, measures nothing
  --markdown     print the tables as Markdown
  --output FILE  write everything measured, sample by sample, as JSON

Exit status: 0 when everything ran and every result was right, whether targets are reached or not; 1 when
not; 2 for bad usage. Peers that are not installed are waived.`;

function options() {
  try {
    return parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        markdown: { type: 'boolean', default: false },
        output: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

const firstLine = (command, args) =>
  spawnSync(command, args, { encoding: 'utf8' }).stdout?.split('\n').find(Boolean)?.trim() ?? null;

function versions() {
  return {
    openmpi: firstLine('mpirun.openmpi', ['--version']),
    mpich: firstLine('mpichversion', []),
    torch: firstLine('/usr/bin/python3', ['-c', 'import torch; print(torch.__version__)']),
  };
}

async function main() {
  const { quick, markdown, output, help } = options();
  if (help) {
    console.log(usage);
    return;
  }
  const startedAt = new Date();
  const say = (what) => process.stderr.write(`${elapsed(startedAt)}  ${what}\n`);
  const inProcess = await collectInProcess(quick, say);
  const peers = await collectPeers(quick ? plans.quick : plans.full, say);
  const run = {
    schema: 'gradlink-peers/1',
    startedAt: startedAt.toISOString(),
    commandLine: process.argv.slice(2),
    environment: describeEnvironment({
      simdLevel: native().simdLevel(),
      threads: native().numThreads(),
    }),
    versions: versions(),
    records: [...inProcess.records, ...peers.records],
    memory: inProcess.memory,
    tuned: peers.tuned,
    overhead: await collectOverhead(quick, say),
    store: await collectStore(quick, say),
    waivers: peers.waivers,
  };
  run.targets = evaluate(run);
  say('done');
  if (output !== undefined) writeFileSync(output, `${JSON.stringify(run, null, 1)}\n`);
  console.log(tablesOf(run, markdown ? 'markdown' : 'text'));

  const wrong = run.records.filter((record) => record.wrong > 0);
  for (const { contender, ranks, bytes, place } of wrong) {
    console.error(`WRONG RESULT: ${contender}, ${ranks} ranks, ${bytes} bytes, ${place}`);
  }
  const failed = run.waivers.some(({ reason }) => reason.startsWith('failed: '));
  process.exitCode = wrong.length > 0 || failed ? 1 : 0;
}

function elapsed(since) {
  return `${((Date.now() - since.getTime()) / 1e3).toFixed(0).padStart(4)} s`;
}

await main();
