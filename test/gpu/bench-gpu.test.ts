// `npm run bench:gpu`: everything runs, on one GPU too, and is written down.
// @module-tag slow
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

import { runScript } from '../support/gpu-commands.js';

const folder = mkdtempSync(join(tmpdir(), 'gradlink-bench-gpu-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Row {
  readonly name: string;
  readonly status: string;
  readonly value?: number;
  readonly reason?: string;
}

describe('bench/gpu.js', () => {
  it('runs every part, prints one table last and writes JSON', async () => {
    const output = join(folder, 'run.json');
    const { code, stdout } = await runScript('gpu.js', ['--quick', '--output', output]);
    const { rows } = JSON.parse(readFileSync(output, 'utf8')) as { readonly rows: readonly Row[] };
    expect(rows.filter(({ status }) => status === 'error')).toEqual([]);
    expect(code).toBe(0);
    const has = (start: string): void => {
      const row = rows.find(({ name }) => name.startsWith(start));
      expect(row, start).toBeDefined();
      // Two ranks on one GPU need a library that takes them.
      if (row?.status === 'waived') expect(row.name).toContain('2 ranks on one GPU');
      else expect(row?.value, start).toBeGreaterThan(0);
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
    expect(table).toHaveLength(1 + rows.length);
  });

  it('a wrong option is wrong usage', async () => {
    const { code, stderr } = await runScript('gpu.js', ['--gpu', 'none']);
    expect(code).toBe(2);
    expect(stderr).toContain('--gpu');
  });
});
