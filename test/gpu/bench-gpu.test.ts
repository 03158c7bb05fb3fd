// `npm run bench:gpu`: everything runs, on one GPU too, and is written down.
// @module-tag full
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';

import { readReport } from '../../lib/results/read-report.js';
import { reportSchema } from '../../lib/results/schema.js';
import { renderReport } from '../../lib/report/index.js';
import { hasMeasurement } from '../../lib/results/result.js';
import { folderOfAllTests } from '../support/folders.js';
import { runScript } from '../support/gpu-commands.js';
import { allReduceOutput, nvbandwidthOutput } from '../support/rivals.js';
import { onRealGpus } from './setup/fakes.js';

/** What needs a newer library, or programs that are not everywhere. */
const mayBeWaived = /2 ranks|beside nv|beside nccl-tests/;

const validate = new Ajv({ allowUnionTypes: true }).compile(reportSchema);
let folder = '';
folderOfAllTests((one) => (folder = one));

describe('lab/gpu.js', () => {
  it('runs every part, prints one table last and writes JSON', async () => {
    const output = join(folder, 'run.json');
    const { code, stdout } = await runScript('../lab/gpu.js', ['--quick', '--output', output]);
    const { run, gpus, cases } = readReport(output);
    expect(run).toMatchObject({ tool: 'gpu', options: { gpu: 0, quick: true } });
    expect(gpus?.devices.length).toBeGreaterThan(0);
    expect(cases.filter(({ status }) => status === 'error')).toEqual([]);
    expect(code).toBe(0);
    const has = (start: string): void => {
      const row = cases.find(({ name }) => name.startsWith(start));
      expect(row, start).toBeDefined();
      // Two ranks on one GPU need a library that takes them.
      if (row?.status === 'waived') expect(row.name).toMatch(mayBeWaived);
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
      'store device',
      'host_to_device_memcpy_ce, beside nvbandwidth',
      'device_to_host_memcpy_ce, beside nvbandwidth',
      'device_local_copy, beside nvbandwidth',
    ]) {
      has(start);
    }
    const table = stdout.slice(stdout.indexOf('\nwhat ')).trim().split('\n');
    expect(table).toHaveLength(1 + cases.length);
    // A report like any other: what reads those reads this.
    expect(validate(JSON.parse(readFileSync(output, 'utf8')))).toBe(true);
    expect(renderReport(readReport(output), 'text')).toBe(stdout);
  });

  it.skipIf(onRealGpus)(
    "has NVIDIA's figure and the ratio where its programs are, and goes on where one fails",
    async () => {
      const program = (name: string, text: string): string => {
        const file = join(folder, name);
        writeFileSync(file, `#!${process.execPath}\n${text}`);
        chmodSync(file, 0o755);
        return file;
      };
      const printed = JSON.stringify(nvbandwidthOutput('CASE', 27.5));
      const env = {
        // Half of what the stand-in reaches; one case fails.
        GRADLINK_NVBANDWIDTH: program(
          'nvbandwidth.cjs',
          `const name = process.argv[process.argv.indexOf('-t') + 1];
           if (name === 'device_local_copy') { console.error('CUDA error'); process.exit(1); }
           process.stdout.write(${printed}.replaceAll('CASE', name));`,
        ),
        GRADLINK_ALL_REDUCE_PERF: program(
          'all_reduce_perf.cjs',
          `process.stdout.write(${JSON.stringify(allReduceOutput(1048576, 12.5, 13.75))});`,
        ),
      };
      const output = join(folder, 'beside.json');
      const { code, stdout } = await runScript(
        '../lab/gpu.js',
        ['--quick', '--output', output],
        env,
      );
      expect(code).toBe(1);
      const { cases } = readReport(output);
      const limits = Object.fromEntries(
        cases.filter(hasMeasurement).map(({ name, limit }) => [name, limit]),
      );
      const copy = limits['host_to_device_memcpy_ce, beside nvbandwidth'];
      expect(copy).toMatchObject({
        copyBytesPerSecond: 27.5e9,
        basis: expect.stringMatching(/^nvbandwidth/),
      });
      expect(copy?.ratio).toBeCloseTo(2, 1);
      const name = Object.keys(limits).filter((one) => one.includes('beside nccl-tests'));
      expect(name.map((one) => limits[one]?.copyBytesPerSecond)).toEqual([12.5e9, 13.75e9]);
      expect(cases.filter(({ status }) => status === 'error')).toMatchObject([
        { name: 'device_local_copy, beside nvbandwidth' },
      ]);
      expect(stdout).toContain('status 1: CUDA error');
    },
  );

  it('a wrong option is wrong usage', async () => {
    const { code, stderr } = await runScript('../lab/gpu.js', ['--gpu', 'none']);
    expect(code).toBe(2);
    expect(stderr).toContain('--gpu');
  });
});
