import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';
import { folderOfAllTests } from '../support/folders.js';

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
