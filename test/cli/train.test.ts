import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';

describe('gradlink train', () => {
  it.each([
    [
      ['--style', 'bluefog', '--workers', '1,2'],
      '--workers: expected an option of --style elasticdl',
    ],
    [['--plan', 'x.yaml', '--style', 'tianshu'], '--plan and --output-dir: expected both or none'],
    [['--model', 'bert-tiny', '--dataset', 'cifar10'], '--dataset for bert-tiny: expected tokens'],
    [
      ['--dataset', 'mnist', '--data-dir', '/'],
      '--data-dir: expected an option of --dataset cifar10',
    ],
    [['--dist-optimizer', 'adam'], 'Expected one of: gradient_allreduce'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await gradlink(['train', ...args]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
