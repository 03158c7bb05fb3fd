import { PassThrough } from 'node:stream';

import { describe, expect, it } from 'vitest';

import type { Output } from '../../lib/cli/io.js';
import { hasColour, terminalLines, wrapped } from '../../lib/cli/terminal/terminal.js';
import { gradlink } from '../support/cli.js';

function terminal(more: Partial<Output> = {}): Output {
  return Object.assign(new PassThrough(), { isTTY: true, columns: 60, ...more });
}

const summary = [
  '#   verdict    poor: 12 % of the copy limit: far below what this memory can do',
  '#   cause      the times scatter: other load on the machine; repeat when it is quiet, with more batches',
];

describe('lines at a terminal', () => {
  it('are as wide as it is, with the text that follows under the first', () => {
    const lines = terminalLines(summary, terminal(), { NO_COLOR: '1' });
    expect(lines.length).toBeGreaterThan(2);
    for (const line of lines) {
      expect(line.length).toBeLessThanOrEqual(60);
      expect(line).toMatch(/^#   (verdict|cause|  {5,})/);
    }
    const words = (text: readonly string[]) => text.join(' ').replaceAll(/[# ]+/g, ' ').trim();
    expect(words(lines)).toBe(words(summary));
  });

  it('leave tables as they are where the terminal is too narrow for any, and words that have no gap', () => {
    const row = '     1024     256   float32     sum    -1      0.14    7.14    7.14      0';
    expect(wrapped(row, 59)).toEqual([row]);
    const path = `ok        addon             /${'a'.repeat(80)}`;
    expect(wrapped(path, 60)).toEqual([path]);
  });

  it('wrap what doctor says, its advice too', () => {
    const found = [
      'missing   driver            the CUDA driver is not available on this machine',
      `${' '.repeat(28)}-> only needed for GPUs: install the NVIDIA driver`,
    ];
    const lines = terminalLines(found, terminal(), { NO_COLOR: '1' });
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
    expect(lines[1]).toMatch(/^ {28}\S/);
    expect(lines.at(-1)).toMatch(/^ {31}\S|^ {30}\S/);
  });

  it.each([
    ['  assumed: ', '           '],
    ["  BlueFog's statistic  ", '                       '],
    ['everywhere: ', '            '],
    ['    two words: ', '               '],
    ['#   from gpu:0 ', '#   '],
    ['', ''],
  ])('that go on under the text of %j', (head, hang) => {
    const [first, ...rest] = wrapped(`${head}${'word '.repeat(30)}`.trimEnd(), 60);
    expect(first).toMatch(/word$/);
    expect(rest.length).toBeGreaterThan(0);
    for (const line of rest) expect(/^(#? *)word/.exec(line)?.[1]).toBe(hang);
  });

  it('have verdicts in colour', () => {
    const [line] = terminalLines([summary[0]!], terminal({ columns: 200 }), {});
    expect(line).toContain('\u001b[31mpoor\u001b[39m');
    const [ok] = terminalLines(['ok        cores   2 of 2 cores'], terminal({ columns: 200 }), {});
    expect(ok).toBe('\u001b[32mok\u001b[39m        cores   2 of 2 cores');
  });

  it.each([
    ['NO_COLOR', terminal(), { NO_COLOR: '1' }],
    ['a dumb terminal', terminal(), { TERM: 'dumb' }],
    ['a pipe', terminal({ isTTY: false }), {}],
  ])('have no colour with %s', (_, output, env) => {
    expect(hasColour(output, env)).toBe(false);
    expect(terminalLines(summary, output, env).join()).not.toContain('\u001b');
  });

  it('are whole in a pipe', () => {
    expect(terminalLines(summary, terminal({ isTTY: false }), {})).toBe(summary);
  });
});

describe('names', () => {
  it.each(['allreduce', 'all-reduce', 'AllReduce'])('%s is all_reduce', async (name) => {
    const { code } = await gradlink(['collectives', name, '-b', '8', '-e', '8', '-n', '2']);
    expect(code).toBe(0);
  });

  it.each([
    [['collectives', 'all_redcue'], 'all_reduce'],
    [['mesure'], 'measure'],
    [['help', 'mesure'], 'measure'],
    [['baseline', 'lst'], 'list'],
    [['measure', '--kv-stor', 'device'], '--kv-store'],
    [['measure', '--network', 'resnt'], 'resnet'],
    [['measure', '--kv-store', 'devic'], 'device'],
    [['models', 'alexnt'], 'alexnet'],
    [['models', 'resnet', '--dtype', 'flaot32'], 'float32'],
    [['p2p', '-t', 'devce_local_copy'], 'device_local_copy'],
    [['measure', '--optimizer', 'adma'], 'adam'],
    [['train', '--dataset', 'mnits'], 'mnist'],
    [['train', '--dist-optimizer', 'win_pt'], 'win_put'],
    [['launch', '--launcher', 'shh', 'node'], 'ssh'],
    [['report', 'x', '--format', 'htlm'], 'html'],
    [['predict', '--schemes', 'rnig'], 'ring'],
    [['doctor', '--require', 'ncl'], 'nccl'],
    [['ddp', '--modes', 'overlpa'], 'overlap'],
    [['collectives', 'all_reduce', '--datatype', 'flaot'], 'float'],
    [['collectives', 'all_reduce', '--op', 'mni'], 'min'],
    [['collectives', 'neighbor_all_reduce', '--topology', 'rnig'], 'ring'],
    [['completion', 'bahs'], 'bash'],
    [['predict', '--link', '1,1', '--compute', '1', '--network', 'vg'], 'vgg'],
    // What other tools call it.
    [['measure', '--dtype', 'float'], 'float32'],
    [['models', '--dtype', 'double'], 'float64'],
    [['collectives', 'all_reduce', '-o', 'mean'], 'avg'],
    [['collectives', 'all_reduce', '-d', 'fp16'], 'float16'],
    [['collectives', 'all_reduce', '--iterations', '3'], '--iters'],
    [['train', '--learning-rate', '1'], '--lr'],
    [['ddp', '--np', '3'], '--ranks'],
  ])('a misspelt one of %j is answered with the nearest', async (argv, meant) => {
    const { code, stderr } = await gradlink(argv);
    expect(code).toBe(2);
    expect(stderr).toContain(`mean ${meant}?`);
  });

  it('of another kind is answered with none', async () => {
    const { stderr } = await gradlink(['models', 'something']);
    expect(stderr).not.toContain('you mean');
  });
});

describe('help', () => {
  it.each(['collectives', 'measure', 'predict', 'train', 'ddp'])(
    'of %s shows defaults as they are typed',
    async (name) => {
      const { stdout } = await gradlink([name, '--help']);
      expect(stdout).toMatch(/default: [a-z0-9]/);
      expect(stdout).not.toMatch(/default: (["[{]|\d{8})/);
    },
  );

  it('names --json for every command that reports', async () => {
    for (const name of ['collectives', 'measure', 'p2p', 'ddp', 'predict', 'compare', 'doctor']) {
      const { stdout } = await gradlink([name, '--help']);
      expect(stdout, name).toMatch(/--json /);
    }
  });
});

it('--json prints the report on standard output', async () => {
  const { code, stdout } = await gradlink([
    ...['collectives', 'all_reduce', '-b', '8', '-e', '8', '-n', '2', '--json'],
  ]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ run: { tool: 'collectives' } });
});

it('shells are offered networks, stores and types', async () => {
  const { stdout } = await gradlink(['completion', 'bash']);
  expect(stdout).toMatch(/--network\) words='resnet /);
  expect(stdout).toMatch(/--kv-store\) words='local device/);
  expect(stdout).toMatch(/--datatype\) words='[^']*float32/);
  expect(stdout).toMatch(/--launcher\) words='local mpi .*slurm'/);
  expect(stdout).toMatch(/--optimizer\) words='[^']*adam/);
});
