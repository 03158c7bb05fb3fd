// --output and its kin, on disks that are full and to what is no file.
import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import '../support/known-limits.js';
import { outlivesTerminal } from '../../lib/cli/surroundings.js';
import { gradlink } from '../support/cli.js';
import { madeRun } from '../support/comparing.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { folderOfEachTest } from '../support/folders.js';

let folder: string;
let run: string;
folderOfEachTest((made) => (folder = made));
beforeEach(() => {
  run = join(folder, 'run.json');
  writeFileSync(run, JSON.stringify(madeRun({ seed: 1 })));
});

const measure = ['measure', '--kv-store', 'local', '--cpus', '2', '--network', 'mlp'];
const few = ['--image-shape', '1,28,28', '--num-classes', '10', '--num-batches', '1'];
const predict = ['predict', '--link', '2,10', '--compute', '100', '--workers', '2,4'];
const commands: [string, (output: string) => string[]][] = [
  ['measure', (output) => [...measure, ...few, '--format', 'json', '--output', output]],
  ['compare', (output) => ['compare', run, run, '--format', 'json', '--output', output]],
  ['compare --junit', (output) => ['compare', run, run, '--junit', output]],
  ['predict', (output) => [...predict, '--json', '--output', output]],
  ['report', (output) => ['report', run, '--output', output]],
  ['topo', (output) => ['topo', '--format', 'json', '--output', output]],
];

describe('a file whose ending stands for no format', () => {
  const sweep = ['collectives', 'all_reduce', '-b', '8', '-e', '8', '-n', '2'];
  const reports = ['.json', '.csv', '.md', '.xml', '.txt'];
  it.each([
    [[...measure, ...few], '--output', reports],
    [sweep, '--output', reports],
    [['collectives', 'neighbor_all_reduce', '-n', '2'], '--output', reports],
    [['p2p'], '--output', reports],
    [['ddp'], '--output', reports],
    [['ddp', '--bucket-sizes', '1,2'], '--plot', ['.svg']],
    [['train'], '--output', reports],
    [['train', '--style', 'elasticdl', '--workers', '1'], '--output', reports],
    [['compare', 'RUN', 'RUN'], '--output', ['.json', '.md', '.xml', '.txt']],
    [['predict', '--validate', 'dlperf'], '--output', ['.json', '.md', '.txt']],
    [['report', 'RUN'], '--output', ['.html', '.svg', '.md']],
  ])('is refused by %j %s', async (words, option, endings) => {
    const argv = words.map((word) => (word === 'RUN' ? run : word));
    for (const name of ['x.pdf', 'x.json.bak']) {
      const file = join(folder, name);
      const { code, stdout, stderr } = await gradlink([...argv, option, file]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      for (const ending of endings) expect(stderr).toContain(ending);
      expect(readdirSync(folder)).toEqual(['run.json']);
    }
  });

  it('is written in the format that is named, and without an ending as the standard output', async () => {
    const [named, without] = [join(folder, 'x.pdf'), join(folder, 'x')] as const;
    expect((await gradlink([...sweep, '--format', 'csv', '--output', named])).code).toBe(0);
    expect(readFileSync(named, 'utf8')).toMatch(/^name,status,/);
    expect((await gradlink(['report', run, '--output', without])).code).toBe(0);
    expect(readFileSync(without, 'utf8')).toMatch(/^<!doctype html>/i);
    const capitals = join(folder, 'X.CSV');
    expect((await gradlink([...sweep, '--output', capitals])).code).toBe(0);
    expect(readFileSync(capitals, 'utf8')).toMatch(/^name,status,/);
  });
});

describe.skipIf(noSmallDisk !== undefined)('on a full disk', () => {
  it.each(commands)('the old output of %s stays whole', async (_, command) => {
    const disk = new SmallDisk(65_536);
    try {
      const output = join(disk.folder, 'old.html');
      writeFileSync(output, 'old');
      disk.fill(0);
      const { code, stderr } = await gradlink(command(output));
      expect(stderr).toMatch(/old\.html .*ENOSPC.*; free space\b.*\(ERR_SYSTEM\)/);
      expect(code).toBe(1);
      expect(readFileSync(output, 'utf8')).toBe('old');
      expect(readdirSync(disk.folder).sort()).toEqual(['ballast', 'old.html']);
    } finally {
      disk.remove();
    }
  });
});

describe('an output', () => {
  it.each(commands)('of %s goes where a link leads', async (_, command) => {
    const link = join(folder, 'link');
    symlinkSync('new.html', link);
    expect((await gradlink(command(link))).code).toBe(0);
    expect(readlinkSync(link)).toBe('new.html');
    expect(readFileSync(join(folder, 'new.html'), 'utf8').length).toBeGreaterThan(100);
    expect(readdirSync(folder).sort()).toEqual(['link', 'new.html', 'run.json']);
  });

  it('of topo has the form that its ending says', async () => {
    const forms = ['topo.json', 'topo.txt'].map((name) => join(folder, name));
    for (const file of forms) {
      expect(await gradlink(['topo', '-o', file])).toEqual({ code: 0, stdout: '', stderr: '' });
    }
    const [json = '', text = ''] = forms.map((file) => readFileSync(file, 'utf8'));
    expect(JSON.parse(json)).toHaveProperty('links');
    expect(text).toMatch(/^\w/);
  });
});

it.each([
  ['/home/me/nohup.out', true],
  ['/home/me/nohup.txt', false],
  ['/dev/pts/1', false],
])('output to %s tells of nohup: %s', (path, tells) => {
  const none = () => {
    throw new Error('nothing there');
  };
  expect(outlivesTerminal({}, none, (at) => (at.endsWith('/2') ? path : none()))).toBe(tells);
});

describe('a link under a name that a command makes itself', () => {
  const link = (name: string, target: string): string => {
    const path = join(folder, 'out', name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
    return path;
  };

  const tinyPlan =
    '{model: mlp, dataset: mnist, image-size: 4, batch-size: 4, grid: [[1, 1]], repeats: 1, warmup: 0, steps: 1}';
  const ofRun = '1n1g/mlp_b4_fp32_1';
  const train = ['train', '--style', 'tianshu', '--plan', 'PLAN', '--output-dir'];
  it.each([
    ['rank-0.out', ['launch', '-n', '1', '--output-dir']],
    ['1n1g', train],
    [ofRun, train],
    [`${ofRun}/command.json`, train],
    [`${ofRun}/report.json`, train],
    [`${ofRun}/output.log`, train],
    ['summary.csv', train],
  ])('is not followed: %s', async (name, command) => {
    const victim = join(folder, 'victim');
    mkdirSync(victim);
    writeFileSync(join(victim, 'file'), 'precious');
    const path = link(name, name.includes('.') ? join(victim, 'file') : victim);
    writeFileSync(join(folder, 'plan'), tinyPlan);
    const argv = command.map((word) => word.replace('PLAN', join(folder, 'plan')));
    argv.push(join(folder, 'out'), ...(argv[0] === 'launch' ? ['true'] : []));
    const { code, stderr } = await gradlink(argv);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(new RegExp(`${path} .*\\blink\\b`));
    expect(readlinkSync(path)).toContain(victim);
    expect(readdirSync(victim)).toEqual(['file']);
    expect(readFileSync(join(victim, 'file'), 'utf8')).toBe('precious');
  });

  it('is not followed: a chart beside a report', async () => {
    const output = join(folder, 'out', 'page.md');
    expect((await gradlink(['report', run, '--output', output])).code).toBe(0);
    const chart = readdirSync(join(folder, 'out')).find((name) => name.endsWith('.svg')) ?? '';
    rmSync(join(folder, 'out', chart));
    link(chart, join(folder, 'run.json'));
    expect((await gradlink(['report', run, '--output', output])).code).toBe(1);
    expect(readFileSync(run, 'utf8')).toContain('schemaVersion');
  });
});

describe('a folder of another user', () => {
  const plan = '{model: mlp, dataset: mnist, grid: [[1, 1]], repeats: 1}';
  it.for([
    ['the output of ranks', ['launch', '-n', '1', '--output-dir', 'OUT', 'true']],
    [
      'the runs of a plan',
      ['train', '--style', 'tianshu', '--plan', 'PLAN', '--output-dir', 'OUT'],
    ],
    ['charts beside a report', ['report', 'RUN', '--output', 'OUT/page.md']],
  ] as const)('is refused for %s', async ([, command], { skip }) => {
    if (process.getuid?.() !== 0) skip('needs root');
    const out = join(folder, 'out');
    mkdirSync(out);
    chownSync(out, 65534, 65534);
    writeFileSync(join(folder, 'plan'), plan);
    const places = { OUT: out, PLAN: join(folder, 'plan'), RUN: run };
    const argv = command.map((word) =>
      word.replace(/[A-Z]{3,}/, (name) => places[name as keyof typeof places]),
    );
    const { code, stderr } = await gradlink(argv);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(new RegExp(`${out} .*\\b65534\\b`));
    expect(readdirSync(out)).toEqual([]);
  });
});
