import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { gradlink } from '../support/cli.js';
import { matrixRun, storesRun, sweepRun, trainRun } from '../support/page-runs.js';
import { folderOfAllTests } from '../support/folders.js';

let folder = '';
const at = (name: string): string => join(folder, name);

folderOfAllTests((made) => (folder = made));
beforeAll(() => {
  mkdirSync(at('runs'));
  writeFileSync(at('sweep.json'), toJson(sweepRun()));
  writeFileSync(at('runs/a.json'), toJson(sweepRun(7e9)));
  writeFileSync(at('runs/b.json'), toJson(sweepRun(5e9)));
  writeFileSync(at('links.json'), toJson(matrixRun()));
  writeFileSync(at('train.json'), toJson(trainRun()));
  writeFileSync(at('stores.json'), toJson(storesRun()));
});

async function chartNames(...files: string[]): Promise<string[]> {
  const { stdout } = await gradlink(['report', ...files.map(at), '--list']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');
}

const program = join(import.meta.dirname, '../../bench/gradlink.js');

describe('gradlink report', () => {
  it.each(['report', 'compare'])('%s reads standard input where a run is -', (command) => {
    const args = command === 'report' ? ['-', '--list'] : [at('sweep.json'), '-'];
    const input = toJson(sweepRun());
    const told = spawnSync(process.execPath, [program, command, ...args], {
      input,
      encoding: 'utf8',
    });
    expect(told).toMatchObject({ status: 0, stderr: '' });
    expect(told.stdout).toContain(command === 'report' ? 'bandwidth-all-reduce' : 'standard input');
    const torn = spawnSync(process.execPath, [program, command, ...args], {
      input: input.slice(9),
    });
    expect(torn.status).toBe(2);
  });

  it('finds the charts that each run has figures for', async () => {
    expect(await chartNames('sweep.json')).toEqual([
      'bandwidth-all-reduce',
      'time-all-reduce',
      'samples',
    ]);
    expect(await chartNames('links.json')).toEqual(['matrix-0-device-to-device-memcpy-write-ce']);
    expect(await chartNames('train.json')).toEqual(['speedup', 'split', 'samples']);
    expect(await chartNames('stores.json')).toEqual(['split', 'servers', 'samples']);
  });

  it('writes a page with every run of a folder', async () => {
    const output = at('out/report.html');
    const { code, stderr } = await gradlink(['report', at('sweep.json'), at('runs'), '-o', output]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const page = readFileSync(output, 'utf8');
    for (const name of ['sweep', 'runs 1', 'runs 2']) expect(page).toContain(`<h3>${name}</h3>`);
    // The only script is the one that sorts, which the policy names.
    const [, script = ''] = page.split(/<\/?script>/);
    expect(page.split('<script').length).toBe(2);
    const hash = createHash('sha256').update(script).digest('base64');
    expect(page).toContain(`script-src 'sha256-${hash}'`);
    expect(page).not.toMatch(/NaN|undefined|<script[^>]|https?:\/\/(?!www\.w3\.org)/);
  });

  it('gives each run a label of its own, whatever the files are called', async () => {
    const files = ['runs', 'runs 1.json', 'runs 1 (3).json', 'runs 1 (4).json'];
    for (const file of files.slice(1)) writeFileSync(at(file), toJson(sweepRun()));
    const { stdout } = await gradlink(['report', ...files.map(at)]);
    // What ran comes last, a heading for each run.
    const labels = stdout.match(/(?<=<h3>)runs.*?(?=<\/h3>)/g)?.slice(-5);
    expect(new Set(labels).size).toBe(5);
  });

  it('tables of charts have the figures', async () => {
    const { stdout } = await gradlink(['report', at('train.json'), '--format', 'md']);
    expect(stdout).toMatch(/^\| overlap \| 4 \| 360\.00 images \| 3\.60 \| 90 % \|$/m);
    expect(stdout).toMatch(/^\| sync \| 2 \| 160\.00 images \| 1\.60 \| 80 % \|$/m);
    const sweep = await gradlink(['report', at('sweep.json'), '--format', 'md']);
    // 16 MiB at 10 GB/s and 2 us: bus factor 1.5 of 4 ranks.
    expect(sweep.stdout).toMatch(
      /^\| in-place \| 16 MiB \| 1\.680 ms \| 2\.016 ms \| 14\.98 GB\/s \|/m,
    );
  });

  it('Markdown in a file has its pictures beside it', async () => {
    mkdirSync(at('md'));
    const { code } = await gradlink(['report', at('stores.json'), '-o', at('md/issue.md')]);
    expect(code).toBe(0);
    expect(readdirSync(at('md')).sort()).toEqual([
      'issue.md',
      'issue.samples.svg',
      'issue.servers.svg',
      'issue.split.svg',
    ]);
    expect(readFileSync(at('md/issue.md'), 'utf8')).toContain('](issue.servers.svg)');
  });

  it('draws the charts that are named, and lists them for a name that is none', async () => {
    const chart = ['report', at('train.json'), '--format', 'svg', '--chart'];
    const one = await gradlink([...chart, 'speedup']);
    expect(one.stdout).toMatch(/^<svg /);
    expect(one.stdout).toContain('Speedup over');
    expect(one.stdout).not.toMatch(/\bsample\b/);
    const none = await gradlink([...chart, 'speed']);
    expect(none).toMatchObject({ code: 2, stdout: '' });
    expect(none.stderr).toMatch(/\bspeed\b.* speedup, split, /);
  });
});
