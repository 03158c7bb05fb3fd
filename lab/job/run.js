#!/usr/bin/env node
// A training job end to end, over two hosts of this machine: with 1, 2 and 4 ranks, resumed on another number of them, and
// with one host cut off in the middle. Writes a page of it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { knownShare } from '../learnable.js';
import { makeHosts, removeHosts } from './hosts.js';
import { cutOff, interrupt, resumed, steady } from './jobs.js';
import { pageOf, percent, pictures } from './page.js';
import { globalBatch, lengths, makeData } from './settings.js';

const usage = `usage: node lab/job/run.js [OPTIONS] [RESULTS]

  RESULTS          job.json of an earlier run, to write its page anew instead of training
  --output FOLDER  write job.md, its pictures and job.json there (default: build/job)
  --quick          a short training to a lower accuracy: proves that all of it runs
  -h, --help       print this

Needs root, iproute2 and Open MPI's mpirun. Exit status: 0, or 1 where a job failed or missed its accuracy, 2
for bad usage.`;

function options() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        output: { type: 'string', default: join(import.meta.dirname, '../../build/job') },
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    return { ...values, results: positionals[0] };
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(2);
  }
}

async function trained(length) {
  const name = `jb${process.pid % 100_000}`;
  const addresses = makeHosts(name);
  const folder = mkdtempSync(join(tmpdir(), 'gradlink-job-'));
  const place = { name, length, folder, addresses };
  const jobs = [];
  let left;
  try {
    for (const make of [
      () => steady(place, 1),
      () => steady(place, 2),
      () => steady(place, 4),
      () => resumed(place, 2, 3),
      // Last: the link stays cut.
      () => cutOff(place, 4),
    ]) {
      const job = await make();
      // Of a job that was disturbed, the one that began alike and was not.
      const other = jobs.find(({ id }) => id === `steady-${job.ranks[0]}`) ?? jobs[0] ?? job;
      jobs.push({ ...job, beside: { title: other.title, distance: distance(job, other) } });
      const seconds = job.seconds.toFixed(0);
      process.stderr.write(`${job.title}: ${percent(job.accuracy)} % in ${seconds} s\n`);
    }
  } finally {
    left = await removeHosts(name);
    rmSync(folder, { recursive: true, force: true });
  }
  return { jobs, left };
}

/** Between two curves, at their farthest: those of the same samples in the same order differ by rounding. */
function distance({ curve }, { curve: other }) {
  const lossAt = new Map(other.map(({ step, loss }) => [step, loss]));
  return Math.max(...curve.map(({ step, loss }) => Math.abs(loss - lossAt.get(step))));
}

function failuresOf({ jobs, left, target }) {
  const missed = jobs.filter(({ accuracy }) => accuracy < target);
  const remains = Object.entries(left).filter(([, count]) => count > 0);
  return [
    ...missed.map(
      ({ title, accuracy }) =>
        `${title}: expected an accuracy of at least ${percent(target)} %, got ${percent(accuracy)} %`,
    ),
    ...remains.map(([what, count]) => `${count} ${what} were left behind`),
  ];
}

async function measured(length) {
  const begun = performance.now();
  const taken = await trained(length);
  return {
    length,
    ...lengths[length],
    globalBatch,
    knownAccuracy: knownShare(makeData()),
    machine: { cpu: cpus()[0].model, cores: availableParallelism(), node: process.version },
    seconds: (performance.now() - begun) / 1000,
    ...taken,
  };
}

/** @returns what is not as it should be */
async function main({ output, quick, results }) {
  const result =
    results === undefined
      ? await measured(quick ? 'quick' : 'whole')
      : JSON.parse(readFileSync(results, 'utf8'));
  mkdirSync(output, { recursive: true });
  const files = {
    'job.json': `${JSON.stringify(result, null, 1)}\n`,
    'job.md': pageOf(result),
    ...(await pictures(result)),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(output, file), text);
  console.log(`wrote ${join(output, 'job.md')}`);
  return failuresOf(result);
}

const chosen = options();
if (chosen.help) {
  console.log(usage);
} else {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, interrupt);
  const failures = await main(chosen).catch((error) => [error.message]);
  for (const failure of failures) console.error(`lab/job/run.js: ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}
