#!/usr/bin/env node
// The same training beside the peers: two hidden layers of 1024, a batch of 128 on each worker, plain SGD, on 1 worker and on
// 2, a core and a thread for each. What a step takes longer with 2 is communication and whatever else they cost each other.
//
//   node lab/peers/training/run.js [--rounds N] [--steps N] [--markdown] [--output FILE]
//
// Status 1: a contender failed, and is named; the figures of the others, and what it had, are printed all the same.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { listenOn } from '../../../dist/internal.js';
import { answers, runJob } from '../children.js';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const tfjsNode = fileURLToPath(new URL('../../../build/tfjs-node/', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    steps: { type: 'string', default: '60' },
    markdown: { type: 'boolean', default: false },
    output: { type: 'string' },
  },
});
const rounds = count('rounds');
const steps = count('steps');

function count(name) {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 1) return value;
  console.error(`expected an integer of at least 1 for --${name}, got ${values[name]}`);
  process.exit(2);
}

/** The first Python that has the module; torch comes from the distribution, TensorFlow from an environment of its own. */
function pythonWith(module) {
  const named = process.env['GRADLINK_PEERS_PYTHON'];
  const pythons = [...(named === undefined ? [] : [named]), '/usr/bin/python3', 'python3'];
  return pythons.find((python) => answers(python, ['-c', `import ${module}`]));
}

/** As many ports of the loopback interface as are asked for, free a moment ago. The system gives none of them to others. */
async function freePorts(n) {
  const servers = Array.from({ length: n }, () => createServer());
  const range = { ports: { first: 10_000, last: 19_999 } };
  const ports = [];
  for (const server of servers) ports.push(await listenOn(server, range, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

const oneThread = {
  OMP_NUM_THREADS: '1',
  TF_NUM_INTRAOP_THREADS: '1',
  TF_NUM_INTEROP_THREADS: '1',
  TF_CPP_MIN_LOG_LEVEL: '2',
  CUDA_VISIBLE_DEVICES: '',
};
const onCore = (rank, command, args, env) => ({
  command: 'taskset',
  args: ['-c', String(rank), command, ...args],
  env: { ...oneThread, ...env },
});
let meetings = 0;
const folder = mkdtempSync(join(tmpdir(), 'gradlink-training-'));

/** @type {{id: string, label: string, waived: () => string | undefined, programs: (workers: number) => Promise<object[]>}[]} */
const contenders = [
  {
    id: 'gradlink',
    label: 'gradlink, tfjs-node',
    waived: () =>
      answers(process.execPath, [here('gradlink-rank.js'), tfjsNode])
        ? undefined
        : 'tfjs-node does not load (bash scripts/tfjs-node.sh)',
    programs: async (workers) => {
      const name = `training-${process.pid}-${++meetings}`;
      return Array.from({ length: workers }, (_, rank) =>
        onCore(rank, process.execPath, [
          ...[here('gradlink-rank.js'), tfjsNode, name],
          ...[String(rank), String(workers), String(steps)],
        ]),
      );
    },
  },
  {
    id: 'tensorflow',
    label: 'TensorFlow, MultiWorkerMirroredStrategy',
    waived: () =>
      pythonWith('tensorflow') === undefined
        ? 'TensorFlow cannot be imported (pip install tensorflow-cpu, its python3 in GRADLINK_PEERS_PYTHON)'
        : undefined,
    programs: async (workers) => {
      const ports = await freePorts(workers);
      return ports.map((_, index) =>
        onCore(
          index,
          pythonWith('tensorflow'),
          [here('tensorflow_multi_worker.py'), String(steps)],
          {
            TF_CONFIG: JSON.stringify({
              cluster: { worker: ports.map((port) => `127.0.0.1:${port}`) },
              task: { type: 'worker', index },
            }),
          },
        ),
      );
    },
  },
  {
    id: 'torch',
    label: 'torch, DistributedDataParallel over Gloo',
    waived: () =>
      pythonWith('torch.distributed') === undefined
        ? 'torch cannot be imported (apt-get install python3-torch)'
        : undefined,
    programs: async (workers) => {
      const meeting = join(folder, `torch-${++meetings}`);
      return Array.from({ length: workers }, (_, rank) =>
        onCore(
          rank,
          pythonWith('torch.distributed'),
          [here('torch_ddp.py'), String(steps), meeting],
          {
            RANK: String(rank),
            WORLD_SIZE: String(workers),
            GLOO_SOCKET_IFNAME: 'lo',
          },
        ),
      );
    },
  },
];

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** Seconds of each step: as long as the slowest worker's. */
function slowest(records, workers) {
  if (records.length !== workers) throw new Error(`${records.length} of ${workers} workers told`);
  return records[0].seconds.map((_, step) =>
    Math.max(...records.map(({ seconds }) => seconds[step])),
  );
}

/** One job; the figures go to the contender's. */
async function take(one, workers, round) {
  const records = await runJob(await one.programs(workers), { timeoutMs: 300_000 });
  const samples = slowest(records, workers);
  one.samples[workers].push(samples);
  one.losses.push(records[0].loss);
  console.error(
    `round ${round + 1} of ${rounds}: ${one.label}, ${workers}: ${(1e3 * median(samples)).toFixed(1)} ms`,
  );
}

/** A contender that fails is left alone from then on; what it and the others have stays. */
async function measure() {
  const waived = new Map();
  const failed = new Map();
  const taken = [];
  for (const one of contenders) {
    const reason = one.waived();
    if (reason === undefined) taken.push({ ...one, samples: { 1: [], 2: [] }, losses: [] });
    else waived.set(one.label, reason);
  }
  for (let round = 0; round < rounds; ++round) {
    for (const workers of [1, 2]) {
      for (const one of taken) {
        if (failed.has(one.label)) continue;
        try {
          await take(one, workers, round);
        } catch (error) {
          failed.set(one.label, `${workers} in round ${round + 1}: ${error.message}`);
        }
      }
    }
  }
  return { taken, waived, failed };
}

function rowsOf(taken) {
  return taken.map(({ label, samples, losses }) => {
    const [alone, together] = [1, 2].map((workers) => median(samples[workers].flat()));
    const shown = (number, digits, unit = '') =>
      Number.isFinite(number) ? `${number.toFixed(digits)}${unit}` : '-';
    return [
      label,
      shown(1e3 * alone, 2, ' ms'),
      shown(1e3 * together, 2, ' ms'),
      shown(1e3 * (together - alone), 2, ' ms'),
      shown(100 * (1 - alone / together), 1, ' %'),
      shown((2 * alone) / together, 2),
      shown(losses.at(-1), 3),
    ];
  });
}

function print(rows, { waived, failed }) {
  const header = ['training', '1 worker', '2 workers', 'more', 'share', 'scaling', 'loss'];
  const widths = header.map((text, i) =>
    Math.max(text.length, ...rows.map((row) => row[i].length)),
  );
  const line = (cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i])).join(' | ')} |`;
  const plain = (cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i]))
      .join('  ')
      .trimEnd();
  const show = values.markdown ? line : plain;
  console.log(show(header));
  if (values.markdown) console.log(line(widths.map((width) => '-'.repeat(width))));
  for (const row of rows) console.log(show(row));
  for (const [label, reason] of waived) console.log(`${label}: waived, ${reason}`);
  for (const [label, reason] of failed) console.log(`${label}: failed with ${reason}`);
}

if (availableParallelism() < 2 || spawnSync('taskset', ['--version']).status !== 0) {
  console.error('needs two cores, and taskset (util-linux) to give each worker one of them');
  process.exit(1);
}
try {
  const { taken, waived, failed } = await measure();
  print(rowsOf(taken), { waived, failed });
  if (values.output !== undefined) {
    const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version };
    const raw = taken.map(({ id, label, samples, losses }) => ({ id, label, samples, losses }));
    writeFileSync(
      values.output,
      JSON.stringify({ machine, rounds, steps, raw, failed: [...failed] }, null, 1),
    );
  }
  if (failed.size > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
