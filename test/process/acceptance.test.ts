// The sizes and errors that MXNet's tool prints for whole networks, by the commands a user types.
import { describe, expect, it } from 'vitest';

import { runScript } from '../support/gpu-commands.js';

const measure = (...args: string[]) => runScript('measure.js', args);

function errors(stderr: string): number[] {
  return [...stderr.matchAll(/^INFO:root:iter .* error (\S+)$/gm)].map((match) => Number(match[1]));
}

describe('published sizes, error 0.000000', () => {
  it.each([
    [['--network', 'resnet', '--num-layers', '200', '--cpus', '2'], 205, '257.991328'],
    [
      ['--network', 'inception-v3', '--image-shape', '3,299,299', '--optimizer', 'sgd'],
      96,
      '95.200544',
    ],
  ])('%j', async (args, arrays, megabytes) => {
    const { code, stdout, stderr } = await measure(...args, '--num-batches', '2');
    expect(stderr).toMatch(
      new RegExp(`^INFO:root:.* = ${String(arrays)}, .* = ${megabytes} MB$`, 'm'),
    );
    expect(errors(stderr)).toEqual([0, 0]);
    expect(stderr).toMatch(/error 0\.000000$/m);
    expect(stdout).toMatch(/verdict +(good|fair|poor|none): /);
    expect(code).toBe(0);
  });
});

// The five runs of the original's own test, which expects one line each and an error below 1e-4.
describe("the runs of the original's test", () => {
  it.each([
    ['alexnet', '152', 'None', 'device'],
    ['resnet', '50', 'sgd', 'device'],
    ['inception-bn', '152', 'None', 'local'],
    ['resnet', '50', 'None', 'local'],
    ['resnet', '50', 'sgd', 'local'],
  ])('%s %s, optimizer %s, store %s', async (network, layers, optimizer, store) => {
    const { code, stderr } = await measure(
      ...[
        '--network',
        network,
        '--num-layers',
        layers,
        '--optimizer',
        optimizer,
        '--kv-store',
        store,
      ],
      ...['--num-batches', '2', '--disp-batches', '2', '--cpus', '2'],
    );
    expect(errors(stderr)).toHaveLength(1);
    expect(errors(stderr)[0]).toBeLessThan(1e-4);
    expect(code).toBe(0);
  });
});
