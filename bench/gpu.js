#!/usr/bin/env node
// `npm run bench:gpu`: what the GPUs of this machine reach, each figure beside its limit, in one table at the end and as JSON.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `node bench/gpu.js [--gpu N] [--quick] [--output FILE]

Host-device copies, local copies, sums, an optimizer step, a store and NCCL, on the GPUs that are there.

  --gpu N        the GPU of all that needs one (default: 0)
  --quick        small arrays and few samples: proves that everything runs, measures nothing
  --output FILE  where the JSON goes (default: build/bench-gpu.json)

Exit status: 0 everything ran, 1 something failed, 2 wrong usage. A target that is missed is marked, and no failure.`;

const root = fileURLToPath(new URL('..', import.meta.url));
const library = (file) => new URL(`../dist/${file}`, import.meta.url).href;
const mebibyte = 2 ** 20;
const floatBytes = 4;

/**
 * One line of the table. `value` and `limit` are bytes a second; `share` their quotient; `reason` says why there is none.
 * @typedef {{name: string, value?: number, limit?: number, basis?: string, share?: number, target?: number,
 *   samplesSeconds?: number[], status: 'ok' | 'waived' | 'error', reason?: string}} Row
 */

function options() {
  try {
    const { values } = parseArgs({
      options: {
        gpu: { type: 'string', default: '0' },
        quick: { type: 'boolean', default: false },
        output: { type: 'string', default: join(root, 'build', 'bench-gpu.json') },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (!/^\d+$/.test(values.gpu)) throw new Error(`--gpu: expected a number, got ${values.gpu}`);
    return { ...values, gpu: Number(values.gpu) };
  } catch (error) {
    process.stderr.write(`gpu.js: ${error.message}\n${usage}\n`);
    process.exit(2);
  }
}

const best = (seconds) => Math.min(...seconds);
const median = (seconds) => {
  const sorted = [...seconds].sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.floor(sorted.length / 2)]) / 2;
};

/** A row of a rate beside a limit. */
function ratio(name, { bytes, seconds, limit, basis, target }) {
  const value = bytes / median(seconds);
  const share = limit === undefined ? undefined : value / limit;
  return { name, status: 'ok', value, limit, basis, share, target, samplesSeconds: [...seconds] };
}

class Bench {
  /** @type {Row[]} */
  rows = [];

  constructor(modules, settings) {
    Object.assign(this, modules);
    this.gpu = settings.gpu;
    this.quick = settings.quick;
    this.count = (settings.quick ? mebibyte : 512 * mebibyte) / floatBytes;
    this.samples = settings.quick ? 2 : 9;
    this.folder = mkdtempSync(join(tmpdir(), 'gradlink-gpu-'));
  }

  /** Runs one part; what it throws becomes a row. */
  async part(name, run) {
    process.stderr.write(`${name} ...\n`);
    try {
      this.rows.push(...(await run()));
    } catch (error) {
      this.rows.push({ name, status: 'error', reason: error.message });
    }
  }

  /** The best of five copies by the driver's command alone: what ours are held against. */
  async plainCopy(from, to) {
    const { seconds, wrong } = await this.native.gpuCopies({
      copies: [{ from, to, by: this.gpu, kernel: false }],
      measured: 1,
      bytes: this.count * floatBytes,
      warmup: 1,
      loops: 1,
      samples: 5,
      verify: true,
      peerAccess: true,
      affinity: true,
      health: false,
      hostTimes: false,
      timeoutMs: 60_000,
    });
    if (wrong > 0) throw new Error(`${wrong} elements of a plain copy were wrong`);
    return (this.count * floatBytes) / best(seconds[0]);
  }

  async hostCopies() {
    const { DeviceBuffer, pinnedArray, gpu, count } = this;
    const bytes = count * floatBytes;
    const host = pinnedArray('float32', count).fill(1);
    const buffer = DeviceBuffer.alloc(gpu, 'float32', count);
    try {
      const time = async (copy) => {
        const seconds = [];
        await copy();
        for (let i = 0; i < this.samples; i += 1) {
          const start = performance.now();
          await copy();
          seconds.push((performance.now() - start) / 1e3);
        }
        return seconds;
      };
      const basis = 'the best of five plain driver copies';
      const toDevice = await this.plainCopy(-1, gpu);
      const toHost = await this.plainCopy(gpu, -1);
      const pcie = this.limits.hostLimit(this.machine, gpu);
      const there = await time(() => buffer.copyFrom(host));
      const back = await time(() => buffer.copyTo(host));
      return [
        ratio('plain copy, host to device', {
          ...{ bytes, seconds: [bytes / toDevice] },
          ...{ limit: pcie?.bytesPerSecond, basis: pcie?.basis },
        }),
        ratio('plain copy, device to host', {
          ...{ bytes, seconds: [bytes / toHost] },
          ...{ limit: pcie?.bytesPerSecond, basis: pcie?.basis },
        }),
        ratio('copyFrom(pinned)', { bytes, seconds: there, limit: toDevice, basis, target: 0.95 }),
        ratio('copyTo(pinned)', { bytes, seconds: back, limit: toHost, basis, target: 0.95 }),
      ];
    } finally {
      buffer.dispose();
    }
  }

  loop(name, arrays) {
    return this.native.gpuLoop({
      loop: this.loops[name],
      gpu: this.gpu,
      count: name === 'copy' ? this.count : this.count / 2,
      arrays,
      warmup: 2,
      loops: this.quick ? 2 : 16,
      samples: this.samples,
      timeoutMs: 60_000,
    });
  }

  async insideGpu() {
    const bus = this.limits.memoryLimit(this.machine, this.gpu);
    const plain = await this.loop('copy', 1);
    const limit = plain.bytes / median(plain.seconds);
    const basis = 'the plain device-to-device copy of this run';
    const rows = [
      ratio('plain copy, device to device (read + written)', {
        ...{ bytes: plain.bytes, seconds: plain.seconds },
        ...{ limit: bus?.bytesPerSecond, basis: bus?.basis },
      }),
    ];
    const bytes = this.count * floatBytes;
    const local = await this.native.gpuCopies({
      copies: [{ from: this.gpu, to: this.gpu, by: this.gpu, kernel: true }],
      ...{ measured: 1, bytes, warmup: 4, loops: this.quick ? 2 : 16, samples: this.samples },
      ...{ verify: true, peerAccess: true, affinity: true, health: false, hostTimes: false },
      timeoutMs: 60_000,
    });
    if (local.wrong > 0) throw new Error(`${local.wrong} elements of a local copy were wrong`);
    rows.push(
      ratio('local copy by the multiprocessors', {
        ...{ bytes: 2 * bytes, seconds: local.seconds[0], limit, basis, target: 0.9 },
      }),
    );
    for (const arrays of [2, 4, 8]) {
      const sum = await this.loop('sum', arrays);
      rows.push(ratio(`sum of ${arrays} arrays`, { ...sum, limit, basis, target: 0.9 }));
    }
    const step = await this.loop('sgdMomentum', 1);
    rows.push(ratio('optimizer step, sgd with momentum', { ...step, limit, basis }));
    return rows;
  }

  /** Runs a command of gradlink and gives its report. */
  command(args, { timeoutMs, env = {} }) {
    const output = join(this.folder, 'report.json');
    rmSync(output, { force: true });
    const [script, ...rest] = args;
    const { status, signal, stderr, error } = spawnSync(
      process.execPath,
      [join(root, 'bench', script), ...rest, '--format', 'json', '--output', output],
      {
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        encoding: 'utf8',
        env: { ...process.env, ...env },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    if (error?.code === 'ETIMEDOUT' || signal !== null) {
      throw new Error(`it did not end within ${timeoutMs / 1e3} s`);
    }
    if (!existsSync(output))
      throw new Error(stderr.trim().split('\n').at(-1) ?? `status ${status}`);
    return JSON.parse(readFileSync(output, 'utf8'));
  }

  store() {
    const gpus = [this.gpu, this.gpu, this.gpu, this.gpu].join(',');
    const name = `store device, --gpus ${gpus}, resnet-50`;
    const report = this.command(
      [
        ...['measure.js', '--kv-store', 'device', '--gpus', gpus],
        ...['--network', 'resnet', '--num-layers', '50'],
        ...['--num-batches', this.quick ? '2' : '20'],
      ],
      { timeoutMs: 180_000 },
    );
    const [result] = report.cases;
    if (result?.status !== 'ok') throw new Error(result?.reason ?? 'there is no case');
    const seconds = result.samplesSeconds;
    if (result.limit === null) {
      return [ratio(name, { bytes: result.bytes, seconds, target: 0.7 })];
    }
    return [
      ratio(name, {
        ...{ bytes: result.limit.mustMoveBytes, seconds },
        ...{ limit: result.limit.copyBytesPerSecond, target: 0.7 },
        basis: `the bytes that must move, by ${result.limit.basis ?? 'copies of this GPU'}`,
      }),
    ];
  }

  nccl(name, gpus, env) {
    const size = this.quick ? '1M' : '256M';
    const report = this.command(
      [
        ...['collectives.js', 'all_reduce', '-b', size, '-e', size, '--gpus', gpus.join(',')],
        ...['-T', '30', '--iters', String(this.samples)],
      ],
      { timeoutMs: 90_000, env },
    );
    return report.cases.map((result) => {
      const title = `${name}, ${result.parameters.placement}`;
      if (result.status !== 'ok') {
        return { name: title, status: result.status, reason: result.reason };
      }
      const { limit, samplesSeconds: seconds } = result;
      const bytes = limit === null ? result.bytes : limit.mustMoveBytes;
      return ratio(title, {
        ...{ bytes, seconds, limit: limit?.copyBytesPerSecond, basis: limit?.basis },
      });
    });
  }

  /** Only newer libraries take two ranks on one GPU, and only when told to; an older one says that it does not. */
  sharedGpu() {
    const name = 'NCCL all_reduce, 2 ranks on one GPU';
    try {
      return this.nccl(name, [this.gpu, this.gpu], { NCCL_MULTI_RANK_GPU_ENABLE: '1' });
    } catch (error) {
      return [{ name, status: 'waived', reason: error.message }];
    }
  }

  async run() {
    const all = this.machine.gpus.map(({ ordinal }) => ordinal);
    await this.part('host-device copies', () => this.hostCopies());
    await this.part('inside the GPU', () => this.insideGpu());
    await this.part('store', () => this.store());
    const ranks = `${all.length} rank${all.length === 1 ? '' : 's'}`;
    const name = `NCCL all_reduce, ${ranks}, one on each GPU`;
    await this.part(name, () => this.nccl(name, all, {}));
    await this.part('NCCL, several ranks on one GPU', () => this.sharedGpu());
    rmSync(this.folder, { recursive: true, force: true });
    return this.rows;
  }
}

/** @param {Row[]} rows */
function table(rows, quick, tableLines) {
  const rate = (value) => (value === undefined ? '' : (value / 1e9).toFixed(2));
  const percent = (value) => (value === undefined ? '' : `${(value * 100).toFixed(1)} %`);
  const verdict = ({ status, share, target }) => {
    if (status !== 'ok') return status;
    // What is measured quickly is measured wrongly.
    if (target === undefined || share === undefined || quick) return '';
    return `${share >= target ? 'reached' : 'MISSED'} ${percent(target)}`;
  };
  const columns = [
    { title: 'what', align: 'left' },
    { title: 'GB/s', align: 'right' },
    { title: 'limit', align: 'right' },
    { title: 'share', align: 'right' },
    { title: 'target', align: 'left' },
    { title: 'the limit is', align: 'left' },
  ];
  return tableLines(
    columns,
    rows.map((row) => [
      row.name,
      rate(row.value),
      rate(row.limit),
      percent(row.share),
      verdict(row),
      row.basis ?? '',
    ]),
  );
}

async function main() {
  const settings = options();
  if (settings.help) {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  if (!existsSync(fileURLToPath(library('index.js')))) {
    process.stderr.write(
      'gpu.js: dist/ is missing, nothing is built yet. Run `npm run build` first.\n',
    );
    return 1;
  }
  const { DeviceBuffer, pinnedArray } = await import(library('index.js'));
  const internal = await import(library('internal.js'));
  const { describeEnvironment, describeGpus, gpuLines, limits, nativeGpuLoops } = internal;
  const { native, readMachine, tableLines } = internal;

  const addon = native();
  const machine = readMachine();
  if (settings.gpu >= machine.gpus.length) {
    process.stderr.write(
      `gpu.js: --gpu: expected below ${machine.gpus.length}, got ${settings.gpu}\n`,
    );
    return 2;
  }
  const startedAt = new Date().toISOString();
  const modules = {
    DeviceBuffer,
    pinnedArray,
    native: addon,
    loops: nativeGpuLoops,
    limits,
    machine,
  };
  const rows = await new Bench(modules, settings).run();
  const gpus = describeGpus(machine.gpus);
  const environment = describeEnvironment({
    simdLevel: addon.simdLevel(),
    threads: addon.numThreads(),
  });
  const { gpu, quick, output } = settings;
  mkdirSync(dirname(output), { recursive: true });
  const record = { schemaVersion: 1, startedAt, options: { gpu, quick }, environment, gpus, rows };
  writeFileSync(output, `${JSON.stringify(record, null, 2)}\n`);
  const reasons = rows
    .filter(({ reason }) => reason !== undefined)
    .map(({ name, status, reason }) => `${status}: ${name}: ${reason}`);
  const lines = [
    ...gpuLines(gpus),
    ...(quick ? ['--quick: these figures prove that everything runs, and nothing else.'] : []),
    ...reasons,
    `written: ${output}`,
    '',
    ...table(rows, quick, tableLines),
  ];
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  return rows.some(({ status }) => status === 'error') ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  const code = error.code === undefined ? '' : ` (${error.code})`;
  process.stderr.write(`gpu.js: ${error.message}${code}\n`);
  process.exitCode = 1;
}
