import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it } from 'vitest';

import { hasMeasurement } from '../../lib/results/result.js';
import type { Prediction } from '../../lib/predict/index.js';
import { toJson } from '../../lib/report/render.js';
import { gradlink } from '../support/cli.js';
import { madeRun } from '../support/comparing.js';
import { words } from '../support/words.js';
import { folderOfAllTests } from '../support/folders.js';

let folder = '';
let run = '';

folderOfAllTests((made) => (folder = made));
beforeAll(() => {
  run = join(folder, 'run.json');
  const sizes = Array.from({ length: 12 }, (_, power) => 256 * 4 ** power).slice(0, 9);
  writeFileSync(run, toJson(madeRun({ seed: 1, sizes })));
});

const given = ['--compute', '90', '--batch-size', '32', '--num-layers', '50'];

describe('gradlink predict', () => {
  it('never shows a predicted figure as a measured one', async () => {
    const { code, stdout } = await gradlink(['predict', run, ...given, '--all']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^PREDICTED\b/);
    const rows = stdout.split('\n').filter((line) => /^ +\d+ {2}[a-z]/.test(line));
    expect(rows).toHaveLength(60);
    for (const row of rows) {
      // The number of workers, and behind it figures with a tilde or bands of two.
      expect(row.match(/~[\d.]+/g)).toHaveLength(5);
      expect(row.match(/[\d.]+ (?:[mu]?s )?to [\d.]+/g)).toHaveLength(2);
    }
    const crossings = [...stdout.matchAll(/^ {2}(\S.*): (?=.* 80 % )(.*)$/gm)];
    expect(crossings.length).toBeGreaterThan(0);
    // What is true of several schemes is said once.
    expect(new Set(crossings.map(([, , text]) => text)).size).toBe(crossings.length);
  });

  it('shows the best scheme of each number of workers, in Markdown and JSON too', async () => {
    const text = await gradlink(['predict', run, ...given, '--workers', '2,16']);
    expect(text.stdout.match(/ best/g)).toHaveLength(2);
    const markdown = await gradlink(['predict', run, ...given, '--format', 'md']);
    expect(markdown.stdout).toMatch(/^## gradlink predict: PREDICTED/);
    const file = join(folder, 'out.json');
    expect((await gradlink(['predict', run, ...given, '--output', file])).stdout).toBe('');
    const prediction = JSON.parse(readFileSync(file, 'utf8')) as Prediction;
    expect(prediction).toMatchObject({ predicted: true, targetEfficiency: 0.8 });
    expect(prediction.steps).toHaveLength(60);
  });

  it('takes links by hand and gradients from a file', async () => {
    const gradients = join(folder, 'gradients.json');
    writeFileSync(gradients, '[1000000, 2000000]');
    const { code, stdout } = await gradlink([
      'predict',
      ...['--link', '5,10', '--between-link', '50,3', '--per-host', '8', '--forward', '1'],
      ...['--backward', '2', '--gradients', gradients, '--schemes', 'ring', '--workers', '8,64'],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('gradients of 2.861 MiB');
    expect(stdout).toContain('8 workers a host');
  });

  it('forecasts a cluster of GPUs by hosts, up to a thousand', async () => {
    const links = ['--link', '10,200', '--between-link', '20,40', '--per-host', '8'];
    const { code, stdout } = await gradlink([
      ...['predict', ...links, '--rails', '8', '--hosts', '2,1000', '--compute', '90', '--json'],
    ]);
    expect(code).toBe(0);
    const { steps, searchedWorkers, assumptions } = JSON.parse(stdout) as {
      steps: { workers: number }[];
      searchedWorkers: number;
      assumptions: string[];
    };
    expect([...new Set(steps.map(({ workers }) => workers))]).toEqual([16, 8000]);
    expect(searchedWorkers).toBe(8000);
    expect(assumptions[0]).toBe('8 workers a host, which share its 8 links to the others');
    const alone = await gradlink(words('predict --link 10,200 --hosts 2 --compute 90'));
    expect(alone).toMatchObject({ code: 2 });
    expect(alone.stderr).toMatch(/--hosts .*--per-host\b/);
  });

  it('checks itself on published tables and on a sweep', async () => {
    const { code, stdout } = await gradlink(['predict', run, '--validate', 'all']);
    expect(code).toBe(0);
    for (const table of ['dlperf', 'bluefog', 'elasticdl', 'own']) {
      expect(stdout).toMatch(new RegExp(`^${table}: `, 'm'));
    }
    expect(stdout.match(/promised: kept/g)).toHaveLength(6);
    expect(stdout).not.toContain('MISSED');
  });

  it('fails when it misses what it promises', async () => {
    const erratic = join(folder, 'erratic.json');
    const report = madeRun({ seed: 1, sizes: [256, 1024, 4096, 16384, 65536, 262144, 1 << 20] });
    const cases = report.cases.map((one, index) =>
      hasMeasurement(one)
        ? { ...one, statistics: { ...one.statistics, medianSeconds: index % 2 === 0 ? 1 : 2 } }
        : one,
    );
    writeFileSync(erratic, toJson({ ...report, cases }));
    const { code, stdout } = await gradlink(['predict', erratic, '--validate', 'own']);
    expect(code).toBe(1);
    expect(stdout).toContain('MISSED');
  });

  it.each([
    [[], /RUN, .*--link\b/],
    [['RUN'], /--compute, .*--backward, got none/],
    [['RUN', '--compute', '3', '--forward', '2'], /got --compute and --forward/],
    [['RUN', '--link', '1,2', '--compute', '3'], /RUN .*--link, not both/],
    [['--link', '1', '--compute', '3'], /MICROSECONDS,GB_PER_SECOND/],
    [['--link', '1,2', '--between-link', '3,4', '--compute', '3'], /--per-host/],
    [['--link', '1,2', '--compute', '3', '--network', 'none'], /--network <name>/],
    [
      ['--link', '1,2', '--compute', '3', '--gradients', '/dev/null'],
      /--gradients: .*JSON array\b/,
    ],
    [['--validate', 'own'], /--validate own .*RUN\b/],
    [['--validate', 'mine'], /--validate\b.*'mine'.*: dlperf/],
  ])('says what is wrong with %j', async (argv, message) => {
    const { code, stdout, stderr } = await gradlink([
      'predict',
      ...argv.map((one) => (one === 'RUN' ? run : one)),
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });
});
