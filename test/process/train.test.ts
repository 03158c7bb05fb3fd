// `gradlink train` as it is used: jobs of real processes, at a tiny size.
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

import { mean } from 'simple-statistics';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';

import { completeCheckpoints } from '../../lib/train/checkpoints/folder.js';
import { childrenOf, gradlink, Launches, until, type Ended } from '../support/launching.js';
import { Marked } from '../support/marked.js';
import { measuredIn } from '../support/measure.js';
import { eventsIn } from '../support/timelines.js';
import { backendArguments } from '../support/training.js';

const launches = new Launches();
const { scratch } = launches;
afterAll(() => launches.remove());

afterEach(() => vi.unstubAllEnvs());

const tiny = [
  ...['--model', 'mlp', '--dataset', 'mnist', '--image-size', '4', '--batch-size', '4'],
  ...backendArguments,
];
const program = [process.execPath, gradlink, 'train'];
const workersOf = (launcher: ChildProcess) =>
  childrenOf(launcher).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--checkpoint-dir'),
  );

function train(workers: number, args: readonly string[], servers = 0): Promise<Ended> {
  const places = ['-n', String(workers), '-s', String(servers)];
  return launches.run([...places, ...program, ...tiny, ...args]);
}

/** Without a launcher. */
function alone(args: readonly string[]) {
  return spawnSync(process.execPath, [gradlink, 'train', ...args], { encoding: 'utf8' });
}

describe('gradlink train', () => {
  it("prints BlueFog's lines, and writes a report and a timeline of each rank", async () => {
    const file = join(scratch, 'report.json');
    const trace = join(scratch, 'trace.json');
    const { code, stdout, stderr } = await train(2, [
      ...['--steps', '3', '--output', file, '--timeline', trace],
    ]);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Model: mlp\nBatch size: 4\n.* CPUs: 2\n.* warmup...\n.* benchmark...\nIter #0: /,
    );
    expect(stdout.match(/^Iter #\d: [\d.]+ img\/sec per CPU$/gm)).toHaveLength(3);
    expect(stdout).toMatch(/^Total img\/sec on 2 CPU\(s\): [\d.]+ \+-[\d.]+$/m);
    const one = measuredIn(file);
    expect(one).toMatchObject({ name: 'train', status: 'ok', parameters: { workers: 2 } });
    expect(one.samplesSeconds).toHaveLength(3);
    const { imagesPerSecond, cpuShare } = one.values as Record<string, number>;
    const [, printed] = /^Total img\/sec on 2 CPU\(s\): ([\d.]+)/m.exec(stdout)!;
    expect(imagesPerSecond).toBeCloseTo(Number(printed), 0);
    // Four images of each of two workers in a step, which takes as long as its slower one.
    const slower = one.samplesSeconds.map((seconds) => 8 / seconds);
    expect(imagesPerSecond).toBeGreaterThanOrEqual(0.999 * mean(slower));
    expect(cpuShare).toBeGreaterThan(0);
    expect(cpuShare).toBeLessThanOrEqual(1);
    for (const rank of [0, 1]) {
      const events = eventsIn(join(scratch, `trace.rank-${rank}.json`));
      expect(events.filter(({ name }) => name.startsWith('step '))).toHaveLength(4);
      expect(events.some(({ ph, tid }) => ph === 'X' && tid === 1)).toBe(true);
    }
  });

  it("takes BlueFog's neighbours over nodes, and shows them on the timeline", async () => {
    const trace = join(scratch, 'nodes.json');
    vi.stubEnv('GRADLINK_RANKS_PER_NODE', '3');
    const args = ['--dist-optimizer', 'neighbor_allreduce', '--steps', '2', '--timeline', trace];
    const { code, stdout, stderr } = await train(6, args);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}rank 5 {2}[\d.]+ \+-[\d.]+ img\/sec$/m);
    const events = eventsIn(join(scratch, 'nodes.rank-5.json'));
    const shown = events.filter(({ tid, name }) => tid === 1 && name === 'neighborAllReduce');
    expect(shown.length).toBeGreaterThanOrEqual(2);
    const hierarchical = ['--dist-optimizer', 'hierarchical_neighbor_allreduce', '--steps', '1'];
    expect(await train(6, hierarchical)).toMatchObject({ code: 0, stderr: '' });
  });

  it.each([
    ['allreduce', 0],
    ['neighbor_allreduce', 0],
    ['hierarchical_neighbor_allreduce', 0],
    ['win_put', 0],
    ['kv:allreduce', 0],
    ['dist_sync', 1],
  ])('trains with %s', async (method, servers) => {
    const args = ['--dist-optimizer', method, '--steps', '1', '--style', 'horovod'];
    const { code, stdout, stderr } = await train(2, args, servers);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Total img\/sec on 2 CPU\(s\): [\d.]+ \+-0.0$/m);
  });

  it('trains a convolutional network on wasm, from the script of the checkout', async () => {
    const script = new URL('../../bench/train.js', import.meta.url).pathname;
    const { code, stdout } = await launches.run([
      ...['-n', '2', process.execPath, script, '--model', 'mobilenetv2', '--dataset', 'cifar10'],
      ...['--batch-size', '2', '--steps', '1', '--num-warmup-batches', '0', '--backend', 'wasm'],
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Model: mobilenetv2$/m);
    expect(stdout).toMatch(/^Total img\/sec on 2 CPU\(s\): [\d.]+/m);
    expect(stdout).toContain('gradients 8.532 MiB in 158 arrays');
  });

  it(
    'gives the same losses with two workers as alone with both batches',
    { tags: 'smoke' },
    async () => {
      const losses = async (workers: number, batch: string): Promise<number> => {
        const file = join(scratch, `losses-${workers}.json`);
        const args = ['--optimizer', 'momentum', '--steps', '4', '--num-warmup-batches', '0'];
        await train(workers, [...args, '--batch-size', batch, '--output', file]);
        return measuredIn(file).values?.loss ?? NaN;
      };
      // The loss before the fourth step, a mean over the same samples.
      expect(await losses(2, '4')).toBeCloseTo(await losses(1, '8'), 4);
    },
  );

  it.each([
    ['Ctrl-C', 'SIGINT', [130, null]],
    ['SIGKILL, of which its jobs do not learn', 'SIGKILL', [null, 'SIGKILL']],
  ] as const)('leaves no file and no process at %s', async (_, signal, expected) => {
    const marked = new Marked();
    const folder = mkdtempSync(join(scratch, 'interrupted-'));
    try {
      const args = ['--style', 'elasticdl', '--workers', '2', '--num-iters', '1000000'];
      const report = ['--output', join(folder, 'run.json')];
      const child = spawn(process.execPath, [gradlink, 'train', ...tiny, ...args, ...report], {
        env: { ...process.env, ...marked.env },
        stdio: 'ignore',
        // A group of its own, all of which a terminal would interrupt.
        detached: true,
      });
      const ended = once(child, 'close');
      await until(() => marked.members().length === 2 || child.exitCode !== null);
      expect(readdirSync(marked.temporary)).not.toEqual([]);
      process.kill(signal === 'SIGINT' ? -child.pid! : child.pid!, signal);
      expect(await ended).toEqual(expected);
      await until(() => marked.pids().length === 0);
      // A watchdog bears no mark, and removes the folder last.
      await until(() => readdirSync(marked.temporary).length === 0);
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      marked.remove();
    }
  });

  it("has ElasticDL's table of a plan, and makes no run twice", () => {
    const plan = join(scratch, 'elasticdl.yaml');
    const folder = join(scratch, 'elasticdl');
    writeFileSync(
      plan,
      `{model: [mlp, lenet], dataset: mnist, image-size: 16, batch-size: 4, workers: [1, 2],
        num-batches-per-iter: 2, num-iters: 1, num-warmup-batches: 1}`,
    );
    const args = ['--style', 'elasticdl', '--plan', plan, '--output-dir', folder];
    const first = alone(args);
    expect(first.status, first.stderr).toBe(0);
    const rows = first.stdout.trimEnd().split('\n').slice(1);
    expect(rows.map((row) => row.split(/ +/).slice(0, 3).join(' '))).toEqual([
      ...['mlp ok 1', 'mlp ok 2', 'lenet ok 1', 'lenet ok 2'],
    ]);
    for (const row of [rows[0], rows[2]]) expect(row).toMatch(/ 1\.00$/);
    for (const row of [rows[1], rows[3]]) expect(row).toMatch(/ 10:[\d.]+ +[\d.]+ % /);
    const summary = readFileSync(join(folder, 'summary.md'), 'utf8');
    expect(summary).toMatch(/^\| lenet \| ok \| 2 \|/m);
    const second = alone(args);
    expect(second.stdout).toBe(first.stdout);
    expect(second.stderr).not.toContain('…');
  });

  it("runs TianShu's grid, and goes on where it was interrupted", () => {
    const plan = join(scratch, 'plan.yaml');
    const folder = join(scratch, 'grid');
    writeFileSync(
      plan,
      `{model: mlp, dataset: mnist, image-size: 4, batch-size: 4, grid: [[1, 1], [1, 2], [2, 1]],
        repeats: 2, warmup: 1, steps: 2}`,
    );
    const run = () =>
      alone(['--style', 'tianshu', '--plan', plan, '--output-dir', folder, '--format', 'csv']);
    const first = run();
    expect(first.status).toBe(0);
    expect(first.stderr.match(/…$/gm)).toHaveLength(4);
    expect(readdirSync(join(folder, '1n2g'))).toEqual(['mlp_b4_fp32_1', 'mlp_b4_fp32_2']);
    expect(readdirSync(join(folder, '1n2g', 'mlp_b4_fp32_1')).sort()).toEqual([
      ...['command.json', 'output.log', 'report.json'],
    ]);
    const summary = readFileSync(join(folder, 'summary.md'), 'utf8');
    expect(summary).toMatch(
      /^\| mlp \| 1 \| 1 \| 4 \| [\d.]+ [\d.]+ \| [\d.]+ \| 1.00 \| 100 % \| pass \|/m,
    );
    expect(summary).toMatch(/^\| mlp \| 2 \| 1 .*\b2 machines, .*\b0 \|$/m);
    // One run is lost half-way: the others stay.
    const lost = join(folder, '1n1g', 'mlp_b4_fp32_2', 'report.json');
    const kept = readFileSync(join(folder, '1n1g', 'mlp_b4_fp32_1', 'report.json'), 'utf8');
    writeFileSync(lost, readFileSync(lost, 'utf8').slice(0, 100));
    const second = run();
    expect(second.status).toBe(0);
    expect(second.stderr.match(/…$/gm)).toHaveLength(1);
    expect(second.stderr).toContain(join('1n1g', 'mlp_b4_fp32_2'));
    expect(readFileSync(join(folder, '1n1g', 'mlp_b4_fp32_1', 'report.json'), 'utf8')).toBe(kept);
  });

  it('goes on from a checkpoint with fewer workers when one is killed', async () => {
    const checkpoints = join(scratch, 'checkpoints');
    const file = join(scratch, 'elastic.json');
    const { child, ended } = launches.start([
      ...['-n', '2', '--elastic', '--tag-output', ...program, ...tiny, '--steps', '200'],
      ...['--shard', '--optimizer', 'adam'],
      ...['--checkpoint-dir', checkpoints, '--checkpoint-every', '20', '--output', file],
    ]);
    await until(() => completeCheckpoints(checkpoints).length > 0);
    const workers = workersOf(child);
    expect(workers).toHaveLength(2);
    process.kill(workers[1]!, 'SIGKILL');
    const { code, stderr } = await ended;
    expect(stderr).toMatch(/rank 1 \(process \d+\).* SIGKILL;/);
    expect(stderr).toContain('one worker (--elastic)');
    expect(code).toBe(0);
    const one = measuredIn(file);
    expect(one.parameters).toMatchObject({ workers: 1, shard: true });
    expect(one.values?.resumedAtStep).toBeGreaterThanOrEqual(20);
    expect(one.values?.steps).toBe(201);
    expect(existsSync(join(checkpoints, 'checkpoint-200', 'complete.json'))).toBe(true);
  });
});
