// `gradlink collectives` in a job on this machine: what is no array of allocShared passes between cores, and no figure is
// above what they allow, or it says why.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

import { hasMeasurement, type Measurement, type Report } from '../../lib/results/result.js';
import { folderOfAllTests } from '../support/folders.js';
import { expectReport } from '../support/measure.js';

const run = promisify(execFile);
const bench = (name: string): string =>
  fileURLToPath(new URL(`../../bench/${name}`, import.meta.url));

let folder: string;
folderOfAllTests((made) => (folder = made));

async function sweep(ranks: number, ...options: string[]): Promise<Measurement[]> {
  const output = join(folder, 'report.json');
  const job = ['launch', '-n', String(ranks), process.execPath, bench('collectives.js')];
  const sizes = ['-b', '1K', '-e', '4M', '-f', '16', '--iters', '5', '--output', output];
  await run(process.execPath, [bench('gradlink.js'), ...job, ...options, ...sizes]);
  const report = JSON.parse(await readFile(output, 'utf8')) as Report;
  expectReport(report);
  return report.cases.filter(hasMeasurement);
}

describe('the limit of a job on one host', () => {
  it.each([
    [2, 'all_reduce'],
    [2, 'broadcast'],
    [5, 'alltoall'],
    [3, 'neighbor_all_reduce'],
  ])('of %d processes that call %s is between cores', { tags: 'full' }, async (ranks, name) => {
    const figures = await sweep(ranks, name);
    expect(figures.length).toBeGreaterThan(3);
    // Beyond the caches memory may be slower than what passes between cores.
    expect(figures.map(({ limit }) => limit?.kind)).toContain('between cores');
    for (const { limit, verdict } of figures) {
      expect(limit).not.toBeNull();
      expect(limit!.ratio <= 1.05 || verdict.likelyCause !== null).toBe(true);
    }
  });

  it('of arrays that all can reach is not', { tags: 'full' }, async () => {
    const figures = await sweep(2, 'all_reduce', '--shared');
    expect(figures.map(({ limit }) => limit?.kind)).toEqual(figures.map(() => undefined));
    expect(figures[0]?.limit?.loopBytes).toBeGreaterThan(0);
  });
});
