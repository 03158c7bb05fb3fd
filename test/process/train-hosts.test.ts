// `gradlink train` on two hosts: network namespaces with a link between them, on which mpirun starts the workers.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { completedSteps } from '../../lib/train/checkpoints/folder.js';
import { readTensors } from '../../lib/train/checkpoints/tensor-file.js';
import { makeHosts, netns, noHosts, removeHosts } from '../support/hosts.js';
import { gradlink, Launches, missing, until, type Where } from '../support/launching.js';
import { measuredIn } from '../support/measure.js';

const name = `gt${String(process.pid % 100_000)}`;
const launches = new Launches();
const { scratch } = launches;
const reason = noHosts() ?? missing(['mpirun.openmpi']);
let addresses: readonly string[] = [];

beforeAll(() => {
  if (reason === undefined) addresses = makeHosts(name);
});
afterAll(async () => {
  await launches.remove();
  if (reason === undefined) removeHosts(name);
});

const hostsTest = (title: string, test: () => Promise<void> | void): void => {
  it(title, async ({ skip }) => {
    if (reason !== undefined) skip(reason);
    await test();
  });
};

/** Started on the first host. MPICH would go through memory from one of these hosts to the other. */
const first = { before: [netns, 'enter', `${name}-a`], env: { GRADLINK_MPI: 'openmpi' } };
/** The patience is that of a busy machine. */
const reach = ['--remote-shell', netns, '--host-timeout', '120'];
const tiny = ['--model', 'mlp', '--dataset', 'mnist', '--image-size', '4', '--batch-size', '4'];

/** No run was watched for longer than it took. */
const stopwatch = (): (() => number) => {
  const begin = performance.now();
  return () => (performance.now() - begin) / 1000;
};

describe('two hosts', () => {
  /** Two workers; returns their weights after four steps, their case, and what was printed. */
  const train = async (label: string, launch: readonly string[], where: Where = {}) => {
    const checkpoints = join(scratch, label);
    const file = join(scratch, `${label}.json`);
    const { code, stdout, stderr } = await launches.run(
      [
        ...['-n', '2', ...launch, process.execPath, gradlink, 'train', ...tiny],
        ...['--style', 'bluefog', '--optimizer', 'momentum', '--steps', '4'],
        ...['--num-warmup-batches', '0', '--output', file],
        ...['--checkpoint-dir', checkpoints, '--checkpoint-every', '4'],
      ],
      where,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const weights = [0, 1].flatMap((rank) =>
      readTensors(join(checkpoints, 'checkpoint-4', `rank-${rank}.safetensors`))
        .filter((one) => one.name.startsWith('model/'))
        .flatMap(({ data }) => [...data]),
    );
    return { weights, one: measuredIn(file), stdout };
  };

  hostsTest('train to the weights that two workers of one host train to', async () => {
    const alone = await train('alone', []);
    expect(alone.stdout).toContain('2 workers on 1 machine\n');
    expect(alone.one.values?.machines).toBe(1);

    const hosts = addresses.map((address) => `${address}:1`).join(',');
    const launch = ['--launcher', 'ssh', '-H', hosts, ...reach];
    const seconds = stopwatch();
    const { weights, one, stdout } = await train('together', launch, first);
    expect(stdout).toMatch(/^Total img\/sec on 2 CPU\(s\): [\d.]+ \+-[\d.]+$/m);
    expect(stdout).toContain('2 workers on 2 machines');
    expect(one.parameters.workers).toBe(2);
    expect(one.values).toMatchObject({ machines: 2, steps: 4 });
    // All gradients of a step go from each host to the other.
    expect(one.bytes).toBeGreaterThan(1e6);
    expect(one.values!.networkSentBytesPerSecond! * seconds()).toBeGreaterThan(4 * one.bytes);
    expect(weights.length).toBeGreaterThan(1e5);
    expect(weights).toHaveLength(alone.weights.length);
    const distance = weights.reduce(
      (most, value, at) => Math.max(most, Math.abs(value - alone.weights[at]!)),
      0,
    );
    expect(distance).toBeLessThan(1e-5);
  });

  hostsTest("are the machines of TianShu's grid, and one by two names is no third", () => {
    const plan = join(scratch, 'plan.yaml');
    const folder = join(scratch, 'grid');
    writeFileSync(
      plan,
      `{model: mlp, dataset: mnist, image-size: 4, batch-size: 4, dist-optimizer: dist_sync,
        grid: [[1, 1], [2, 1], [3, 1]], repeats: 1, warmup: 1, steps: 2,
        hosts: [${addresses.join(', ')}, localhost]}`,
    );
    const args = ['train', '--style', 'tianshu', '--plan', plan, '--output-dir', folder];
    args.push(...reach.map((one) => `--launch-arg=${one}`));
    const [program = '', ...before] = first.before;
    const seconds = stopwatch();
    spawnSync(program, [...before, process.execPath, gradlink, ...args], {
      env: { ...process.env, ...first.env },
    });
    const summary = readFileSync(join(folder, 'summary.md'), 'utf8');
    expect(summary).toMatch(
      /^\| mlp \| 1 \| 1 \| 4 \| [\d.]+ \| [\d.]+ \| 1.00 \| 100 % \| pass \|.*\| - \|$/m,
    );
    expect(summary).toMatch(
      /^\| mlp \| 2 \| 1 \| 4 \| [\d.]+ \| [\d.]+ \| [\d.]+ \| [\d.]+ % \| (pass|fail) \|.*\| - \|$/m,
    );
    expect(summary).toMatch(
      /^\| mlp \| 3 \| 1 \| 4 \| - .*\| [^|]*\b3 machines [^|]*\b2\b[^|]* \|$/m,
    );
    const one = measuredIn(join(folder, '2n1g', 'mlp_b4_fp32_1', 'report.json'));
    expect(one.values?.machines).toBe(2);
    // The server's host has the other's gradients of each step, and that one has the weights.
    expect(one.values!.networkReceivedBytesPerSecond! * seconds()).toBeGreaterThan(2 * one.bytes);
  });

  // Last: the link stays cut.
  hostsTest('train on from the last checkpoint on the one that is left', async () => {
    const checkpoints = join(scratch, 'elastic');
    const file = join(scratch, 'elastic.json');
    const hosts = addresses.map((address) => `${address}:1`).join(',');
    const elastic = ['--elastic', '--host-timeout', '5', '--grace', '1', '--remote-shell', netns];
    const run = launches.start(
      [
        ...['-n', '2', '--launcher', 'ssh', '-H', hosts, ...elastic],
        ...[process.execPath, gradlink, 'train', ...tiny, '--style', 'bluefog'],
        ...['--steps', '400', '--num-warmup-batches', '0', '--output', file],
        ...['--checkpoint-dir', checkpoints, '--checkpoint-every', '10'],
      ],
      first,
    );
    await until(() => completedSteps(checkpoints).length > 0);
    execFileSync(netns, ['cut', name]);
    const { code, stderr } = await run.ended;
    expect(stderr).toMatch(new RegExp(`one worker, .* ${addresses[1]!} \\(--elastic\\)`));
    expect(code).toBe(0);
    const { parameters, values } = measuredIn(file);
    expect(parameters.workers).toBe(1);
    expect(values?.resumedAtStep).toBeGreaterThanOrEqual(10);
  });
});
