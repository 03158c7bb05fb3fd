import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it, vi } from 'vitest';

import type { Io } from '../../lib/cli/io.js';
import { runTrainJob } from '../../lib/cli/train/job.js';
import { startWatchdog } from '../../lib/launch/watchdog.js';
import { gradlink } from '../support/cli.js';
import { folderOfAllTests } from '../support/folders.js';

vi.mock('../../lib/launch/watchdog.js', () => ({
  startWatchdog: vi.fn(() => ({ dismiss: () => undefined })),
}));

describe('gradlink train', () => {
  it.each([
    [['--style', 'bluefog', '--workers', '1,2'], /--workers .*--style elasticdl\b/],
    [['--plan', 'x.yaml', '--style', 'tianshu'], /--plan and --output-dir must\b/],
    [['--launch-arg=--mpirun=x'], /--launch-arg .*--plan or --workers\b/],
    [['--style', 'elasticdl', '--workers', '1', '--launch-arg=--dry-run'], /-arg .*--dry-run\b/],
    [['--model', 'bert-tiny', '--dataset', 'cifar10'], /--dataset .*bert-tiny: .*\btokens\b/],
    [['--dataset', 'mnist', '--data-dir', '/'], /--data-dir .*--dataset cifar10\b/],
    [['--shard', '--dist-optimizer', 'adasum'], /--shard .*--dist-optimizer gradient_allreduce\b/],
    [['--dist-optimizer', 'adam'], /--dist-optimizer .*'adam'.*: gradient_allreduce\b/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await gradlink(['train', ...args]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});

describe('a plan of somebody else', () => {
  let scratch = '';
  folderOfAllTests((made) => (scratch = made));

  it.each([
    // Words that become arguments.
    ['launch: [--env, NODE_OPTIONS=--require=./evil.cjs]', /launch: .*"--env".*--launch-arg\b/],
    ['hosts: [localhost]\nlaunch: [--mpirun, ./evil.sh]', /"--mpirun"/],
    ['launch: [--bind-to=none, ./evil.sh]', /launch: .*"\.\/evil\.sh"/],
    ['launch: [--bind-to, --mpirun=./evil.sh]', /bind-to: .*core, none\b.*"--mpirun/],
    ['launch: [--gpu-per-worker=--mpirun]', /"--gpu-per-worker=--mpirun"/],
    ['launch: [--gpus-per-worker]', /gpus-per-worker: .*""/],
    ['allow-cpu: --checkpoint-dir=evil', /allow-cpu: .*\btrue, got "--checkpoint-dir=evil"/],
    ['seed: true', /seed: .*"true"/],
    ['hosts: [localhost]\nlauncher: --mpirun=./evil.sh', /launcher: .*"--mpirun=.*"/],
    ['hosts: [-oProxyCommand=./evil.sh]', /host 1: .*'-oProxyCommand=/],
    ["hosts: ['a:2,b']", /hosts: .*"a:2,b"/],
    // Files.
    ['data-dir: /etc', /entry data-dir\b.*command line\b/],
    ['checkpoint_dir: evil', /entry checkpoint-dir\b/],
    ['timeline: evil.json', /entry timeline\b/],
    // What becomes the name of a folder.
    ['model: ../../escaped/m', /model: .*\bresnet50, .*"\.\.\/\.\.\/escaped\/m"/],
    ['model: [mlp, /escaped]', /model: .*"\/escaped"/],
    ['dataset: ../cifar10', /dataset: .*"\.\.\/cifar10"/],
    ['model: [mlp', /line 2, column \d+\.$/],
  ])('is refused with %s, and makes nothing', async (entry, message) => {
    const plan = join(scratch, 'plan.yaml');
    const folder = join(scratch, 'out');
    writeFileSync(plan, `grid: [[1, 1]]\n${entry}`);
    const args = ['--style', 'tianshu', '--plan', plan, '--output-dir', folder];
    const { code, stderr } = await gradlink(['train', ...args]);
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(message)]);
    expect(code).toBe(2);
    expect(existsSync(folder)).toBe(false);
  });
});

describe('a run of several', () => {
  let scratch = '';
  folderOfAllTests((made) => (scratch = made));

  it('is a case that failed where its launcher does, and goes with its folder', async () => {
    const io = { env: process.env, on: () => undefined, off: () => undefined } as unknown as Io;
    const files = { reportFile: join(scratch, 'report'), logFile: join(scratch, 'log'), scratch };
    const identity = { name: 'train', parameters: {} };
    const job = { workers: 1, servers: 0, launch: ['--nonsense'], train: [], identity, ...files };
    const reason = expect.stringMatching(/\b2: .*--nonsense/) as string;
    expect(await runTrainJob(job, io)).toMatchObject({ status: 'error', reason });
    expect(startWatchdog).toHaveBeenCalledWith(expect.stringMatching(/^\w+=.{36}$/), 5000, scratch);
  });
});
