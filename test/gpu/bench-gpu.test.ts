// `npm run bench:gpu`: everything runs, on one GPU too, and is written down.
// @module-tag slow
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, describe, expect, it } from 'vitest';

import { readReport } from '../../lib/results/read-report.js';
import { reportSchema } from '../../lib/results/schema.js';
import { renderReport } from '../../lib/report/index.js';
import { runScript } from '../support/gpu-commands.js';

const validate = new Ajv({ allowUnionTypes: true }).compile(reportSchema);
const folder = mkdtempSync(join(tmpdir(), 'gradlink-bench-gpu-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('bench/gpu.js', () => {
  it('runs every part, prints one table last and writes JSON', async () => {
    const output = join(folder, 'run.json');
    const { code, stdout } = await runScript('gpu.js', ['--quick', '--output', output]);
    const { run, gpus, cases } = readReport(output);
    expect(run).toMatchObject({ tool: 'gpu', options: { gpu: 0, quick: true } });
    expect(gpus?.devices.length).toBeGreaterThan(0);
    expect(cases.filter(({ status }) => status === 'error')).toEqual([]);
    expect(code).toBe(0);
    const has = (start: string): void => {
      const row = cases.find(({ name }) => name.startsWith(start));
      expect(row, start).toBeDefined();
      // Two ranks on one GPU need a library that takes them.
      if (row?.status === 'waived') expect(row.name).toContain('2 ranks on one GPU');
      else expect(row).toMatchObject({ status: 'ok', check: { kind: 'none' } });
    };
    for (const start of [
      'plain copy, host to device',
      'plain copy, device to host',
      'copyFrom(pinned)',
      'copyTo(pinned)',
      'plain copy, device to device',
      'local copy by the multiprocessors',
      'sum of 2 arrays',
      'sum of 4 arrays',
      'sum of 8 arrays',
      'optimizer step',
      'store device, --gpus 0,0,0,0',
      'NCCL all_reduce',
      'NCCL all_reduce, 2 ranks on one GPU',
    ]) {
      has(start);
    }
    const table = stdout.slice(stdout.indexOf('\nwhat ')).trim().split('\n');
    expect(table).toHaveLength(1 + cases.length);
    // A report like any other: what reads those reads this.
    expect(validate(JSON.parse(readFileSync(output, 'utf8')))).toBe(true);
    expect(renderReport(readReport(output), 'text')).toBe(stdout);
  });

  it('a wrong option is wrong usage', async () => {
    const { code, stderr } = await runScript('gpu.js', ['--gpu', 'none']);
    expect(code).toBe(2);
    expect(stderr).toContain('--gpu');
  });
});
