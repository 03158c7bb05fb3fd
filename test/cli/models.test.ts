import { describe, expect, it } from 'vitest';

import { gradlink } from '../support/cli.js';
import { words } from '../support/words.js';

interface Row {
  name: string;
  numLayers: number | null;
  arrays: number;
  bytes: number;
}

describe('gradlink models', () => {
  it('lists every network with arrays and MiB', async () => {
    const { code, stdout } = await gradlink(['models']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^resnet +200 +- +3,224,224 +205 +64497832 +246\.040$/m);
    expect(stdout).toMatch(/^inception-v3 +- +- +3,299,299 +96 +23800136 +90\.790$/m);
  });

  it('tells them apart on a narrow terminal', async () => {
    const { stdout } = await gradlink(['models'], { columns: 60 });
    const rows = stdout.split('\n').filter((line) => line.startsWith('mobilenet '));
    expect(new Set(rows.map((row) => row.split(/ +/).slice(0, 3).join(' '))).size).toBe(4);
  });

  it('lists them as JSON too', async () => {
    const { stdout } = await gradlink(['models', '--json', '--dtype', 'float64']);
    const rows = JSON.parse(stdout) as Row[];
    const found = rows.find(({ name, numLayers }) => name === 'resnet' && numLayers === 50);
    expect(found).toMatchObject({ arrays: 55, bytes: 8 * 25503912 });
  });

  it('prints the ordered names and shapes of one', async () => {
    const { code, stdout } = await gradlink(['models', 'resnet', '--num-layers', '50', '--json']);
    expect(code).toBe(0);
    const { arrays, bytes, parameters } = JSON.parse(stdout) as {
      arrays: number;
      bytes: number;
      parameters: { name: string; shape: number[] }[];
    };
    expect({ arrays, bytes }).toEqual({ arrays: 55, bytes: 102015648 });
    expect(parameters).toHaveLength(55);
    expect(parameters[0]).toEqual({ name: 'conv0_weight', shape: [64, 3, 7, 7] });
    expect(parameters.at(-1)).toEqual({ name: 'fc1_bias', shape: [1000] });
  });

  it('prints a table of one, and its sum, as the original counts too', async () => {
    const { stdout } = await gradlink(words('models lenet --image-shape 1,28,28 --num-classes 10'));
    expect(stdout).toMatch(/^0 +\S+ +20 x 1 x 5 x 5 +500$/m);
    expect(stdout).toMatch(/^lenet: 8 arrays, 1\.644 MiB \(1\.724320 MB\b/m);
  });

  it.each([
    [['models', 'alexnot'], ' resnet, ', "'alexnot'"],
    [['models', 'vgg'], '11, 13, 16, 19 for --num-layers', 'got 152'],
    [
      ['models', 'inception-v3', '--image-shape', '3,224,224'],
      '3,299,299, for --image-shape',
      'got 3,224,224',
    ],
    [['models', 'resnet', '--num-layers', 'deep'], 'whole number', "'deep'"],
  ])('refuses %j with what is possible', async (argv, expected, got) => {
    const { code, stdout, stderr } = await gradlink(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(expected);
    expect(stderr).toContain(got);
  });
});
