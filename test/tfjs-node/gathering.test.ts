// The comparison of gradients that cross each by itself with those of a bucket at once.
import { fileURLToPath } from 'node:url';

import { afterAll, expect, it } from 'vitest';

import { Launches } from '../support/launching.js';

const launches = new Launches();
afterAll(() => launches.remove());

const program = fileURLToPath(new URL('../../lab/peers/training/gathering.js', import.meta.url));

it('times both ways in turns, and counts the reads of a step', async () => {
  const { code, stdout, stderr } = await launches.run([
    ...['-n', '2', process.execPath, program, '--models', 'lenet', '--steps', '2'],
    ...['--batch-size', '2'],
  ]);
  expect(code, stderr).toBe(0);
  const [head, , each, bucket] = stdout.trimEnd().split('\n');
  expect(head).toMatch(/^2 workers .*[CG]PUs, batch 2, .* 2 steps/);
  expect(each).toMatch(/^lenet +each .* 10 +0\.2 MiB( +[\d.]+ ms){3}$/);
  expect(bucket).toMatch(/^lenet +a bucket .* 1 +0\.2 MiB( +[\d.]+ ms){3}$/);
});

it('refuses models that are not there', async () => {
  const { code, stderr } = await launches.run([
    ...['-n', '1', process.execPath, program, '--models', 'lenet,nothing'],
  ]);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/--models.*nothing/);
});
