// `gradlink ddp` with a model of TensorFlow.js as what computes.
import { spawnSync } from 'node:child_process';

import { expect, it } from 'vitest';

import { backendArguments, testBackend } from '../support/training.js';

const script = new URL('../../bench/ddp.js', import.meta.url).pathname;

it('trains a model of TensorFlow.js', { tags: 'smoke' }, () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      ...[script, '--model', 'mlp', '--dataset', 'mnist', '--batch-size', '2'],
      ...(testBackend === undefined ? ['--backend', 'cpu'] : backendArguments),
      ...['--bucket-sizes', '0.1', '--steps', '2', '--warmup', '1'],
    ],
    { encoding: 'utf8' },
  );
  expect(stderr.replaceAll(/^.*(tfjs|=====|Hi, looks).*$\n?/gim, '').trim()).toBe('');
  expect(status).toBe(0);
  expect(stdout).toMatch(/\bmlp\b.*\bmnist\b.*\bbatch 2\b.*TensorFlow\.js 4\.\d+\.\d+ \(/);
  expect(stdout).toMatch(new RegExp(`\\(${testBackend ?? 'cpu'}, .*CPU\\)`));
  expect(stdout).toContain('# 6 cases: 6 ok, 0 failed');
});
