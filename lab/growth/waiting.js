#!/usr/bin/env node
// What waiting costs, with a core for each rank and without, beside a busy process, and for ranks that come late. With
// another checkout beside this one, both are measured in turns and shown as ratios.
//
//   node lab/growth/waiting.js [--beside FOLDER] [--only PATTERN] [--rounds N] [--quick] [--json]
import { execFile, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { median } from 'simple-statistics';

const usage = `usage: node lab/growth/waiting.js [OPTIONS]

  --beside FOLDER  another built checkout of gradlink, measured in turns with this one
  --only PATTERN   the cases whose names match this regular expression
  --rounds N       so many turns of each case (default: 5)
  --quick          one short turn: proves that it runs, measures nothing
  --json           print what was measured as JSON
  -h, --help       print this

Times are microseconds of a call on rank 0 (median, and mean) and of the processors, all ranks together, a call.`;

const here = resolve(import.meta.dirname, '../..');
const cases = [
  { name: '2 ranks, 8 B', ranks: 2, bytes: 8, calls: 50000 },
  { name: '2 ranks, 64 KiB', ranks: 2, bytes: 65536, calls: 10000 },
  { name: '2 ranks, 1 MiB', ranks: 2, bytes: 1048576, calls: 1000 },
  { name: '2 ranks, 8 B, one comes 20 us late', ranks: 2, bytes: 8, calls: 10000, late: 20 },
  { name: '2 ranks, 8 B, one comes 60 us late', ranks: 2, bytes: 8, calls: 5000, late: 60 },
  { name: '2 ranks, 8 B, busy neighbour', ranks: 2, bytes: 8, calls: 10000, busy: 1 },
  { name: '2 ranks, 1 MiB, busy neighbour', ranks: 2, bytes: 1048576, calls: 500, busy: 1 },
  { name: '2 ranks, 8 B, ten busy processes', ranks: 2, bytes: 8, calls: 100000, busy: 10 },
  { name: '2 ranks, 64 KiB, ten busy processes', ranks: 2, bytes: 65536, calls: 20000, busy: 10 },
  { name: '2 ranks, 1 MiB, ten busy processes', ranks: 2, bytes: 1048576, calls: 3000, busy: 10 },
  { name: '4 ranks, 8 B', ranks: 4, bytes: 8, calls: 10000 },
  { name: '4 ranks, 1 MiB', ranks: 4, bytes: 1048576, calls: 500 },
  { name: '16 ranks, 8 B', ranks: 16, bytes: 8, calls: 2000 },
  { name: '16 ranks, 1 MiB', ranks: 16, bytes: 1048576, calls: 50 },
];

async function measure(folder, { ranks, bytes, calls, late = 0, busy = 0 }, share) {
  const neighbours = Array.from({ length: busy }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  );
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [
      resolve(folder, 'bench/gradlink.js'),
      'launch',
      '-n',
      String(ranks),
      '--',
      process.execPath,
      resolve(here, 'lab/growth/waiting-rank.js'),
      folder,
      ...[bytes, Math.max(20, Math.round(calls * share)), late].map(String),
    ]);
    return JSON.parse(stdout.trim().split('\n').at(-1));
  } finally {
    for (const neighbour of neighbours) neighbour.kill('SIGKILL');
  }
}

function ratio(ours, theirs, of) {
  return median(ours.map((one, i) => of(one) / of(theirs[i])));
}

async function main() {
  const { values } = parseArgs({
    options: {
      beside: { type: 'string' },
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '5' },
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return console.log(usage);
  const rounds = values.quick ? 1 : Number(values.rounds);
  if (!(rounds >= 1))
    throw new Error(`expected a number above 0 for --rounds, got '${values.rounds}'`);
  const folders = [here, ...(values.beside === undefined ? [] : [resolve(values.beside)])];
  const wanted = cases.filter(({ name }) => new RegExp(values.only).test(name));
  if (wanted.length === 0) {
    throw new Error(
      `expected --only to match one of ${cases.map(({ name }) => `'${name}'`).join(', ')}; got '${values.only}'`,
    );
  }
  const results = [];
  for (const one of wanted) {
    const runs = folders.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [i, folder] of folders.entries()) {
        runs[i].push(await measure(folder, one, values.quick ? 0.01 : 1));
      }
    }
    const [ours, theirs] = runs;
    const result = {
      case: one.name,
      microseconds: median(ours.map((run) => run.microseconds)),
      mean: median(ours.map((run) => run.mean)),
      cpu: median(ours.map((run) => run.cpu)),
      ...(theirs === undefined
        ? {}
        : {
            ofBeside: ratio(ours, theirs, (run) => run.microseconds),
            meanOfBeside: ratio(ours, theirs, (run) => run.mean),
            cpuOfBeside: ratio(ours, theirs, (run) => run.cpu),
          }),
      runs,
    };
    results.push(result);
    if (values.json) continue;
    const shown =
      theirs === undefined
        ? ''
        : `   ${result.ofBeside.toFixed(2)}, ${result.meanOfBeside.toFixed(2)} and ${result.cpuOfBeside.toFixed(2)} of the other`;
    console.log(
      `${one.name.padEnd(36)} ${result.microseconds.toFixed(1).padStart(9)} us, mean ${result.mean.toFixed(1).padStart(9)} us ${result.cpu.toFixed(1).padStart(9)} us of processors${shown}`,
    );
  }
  if (values.json) console.log(JSON.stringify(results, null, 2));
}

try {
  await main();
} catch (error) {
  console.error(`waiting.js: ${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
