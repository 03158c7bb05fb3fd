#!/usr/bin/env node
// Whether training on several workers learns what one learns: trains with 1, 2 and 4 of them, draws the curves of
// docs/convergence.md, and prints its table.
//
//   node lab/convergence/run.js [RESULTS]     RESULTS: lines of an earlier run, instead of training anew
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { chartSvg } from '../../dist/internal.js';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const counts = [1, 2, 4];

function trained(workers) {
  const launch = ['launch', '-n', String(workers), '-s', '1', process.execPath];
  return execFileSync(
    process.execPath,
    [join(root, 'bench/gradlink.js'), ...launch, join(here, 'rank.js')],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 2 ** 26 },
  );
}

const [file] = process.argv.slice(2);
const text = file === undefined ? counts.map(trained).join('') : readFileSync(file, 'utf8');
const runs = text
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line));

const distinct = (name) => [...new Set(runs.map((run) => run[name]))];
const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;
const deviation = (list) => {
  const middle = mean(list);
  return Math.sqrt(
    list.reduce((sum, one) => sum + (one - middle) ** 2, 0) / Math.max(1, list.length - 1),
  );
};

/** The mean of all seeds: a small chart for each method, a line for each number of workers. */
function chart(set) {
  const values = distinct('method').flatMap((method) =>
    counts.flatMap((workers) => {
      const own = runs.filter(
        (run) => run.set === set && run.method === method && run.workers === workers,
      );
      return (own[0]?.curve ?? []).map(([samples], at) => ({
        method,
        workers: workers === 1 ? '1 worker' : `${workers} workers`,
        samples,
        loss: mean(own.map(({ curve }) => curve[at][1])),
      }));
    }),
  );
  return {
    data: { values },
    facet: { field: 'method', type: 'nominal', title: null, sort: distinct('method') },
    columns: 2,
    spec: {
      width: 300,
      height: 170,
      mark: { type: 'line', strokeWidth: 2 },
      encoding: {
        x: { field: 'samples', type: 'quantitative', axis: { title: 'samples', tickCount: 5 } },
        y: { field: 'loss', type: 'quantitative', axis: { title: 'loss', tickCount: 5 } },
        color: { field: 'workers', type: 'nominal', legend: { title: null } },
        strokeDash: { field: 'workers', type: 'nominal', legend: null },
      },
    },
  };
}

for (const set of distinct('set')) {
  const id = `convergence-${set.toLowerCase()}`;
  writeFileSync(join(root, 'docs/images', `${id}.svg`), await chartSvg(chart(set), id));
}

const percent = (share) => (share * 100).toFixed(1);
console.log(
  `| data | method | ${counts.map((n) => `${n} worker${n > 1 ? 's' : ''}`).join(' | ')} |`,
);
console.log(`| --- | --- |${' --- |'.repeat(counts.length)}`);
for (const set of distinct('set')) {
  for (const method of distinct('method')) {
    const cells = counts.map((workers) => {
      const reached = runs
        .filter((run) => run.set === set && run.method === method && run.workers === workers)
        .map(({ accuracy }) => accuracy);
      return `${percent(mean(reached))} ± ${percent(deviation(reached))}`;
    });
    console.log(`| ${set} | ${method} | ${cells.join(' | ')} |`);
  }
}
