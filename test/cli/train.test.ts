import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

describe('gradlink train', () => {
  it.each([
    [['--style', 'bluefog', '--workers', '1,2'], /--workers: .*--style elasticdl\b/],
    [['--plan', 'x.yaml', '--style', 'tianshu'], /--plan and --output-dir: .*\bboth\b/],
    [['--model', 'bert-tiny', '--dataset', 'cifar10'], /--dataset .*bert-tiny: .*\btokens\b/],
    [['--dataset', 'mnist', '--data-dir', '/'], /--data-dir: .*--dataset cifar10\b/],
    [['--dist-optimizer', 'adam'], /--dist-optimizer .*'adam'.*: gradient_allreduce\b/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await gradlink(['train', ...args]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});
