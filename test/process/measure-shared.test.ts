// `gradlink measure` of stores that several workers share: one of them reports, for all.
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

const small = ['--network', 'resnet', '--num-layers', '20', '--image-shape', '3,28,28'];

/** The one case of a job's report, and what was printed. */
async function measure(
  size: readonly string[],
  ...options: string[]
): Promise<{ result: Measurement; stdout: string; stderr: string }> {
  const output = join(folder, 'report.json');
  const job = ['launch', ...size, process.execPath, bench('measure.js'), ...small];
  const report = ['--num-batches', '3', '--cpus', '2', '--output', output];
  const { stdout, stderr } = await run(process.execPath, [
    ...[bench('gradlink.js'), ...job, ...report, ...options],
  ]);
  const { cases } = JSON.parse(await readFile(output, 'utf8')) as Report;
  const [result] = cases;
  if (result === undefined || !hasMeasurement(result)) throw new Error(JSON.stringify(cases));
  expectReport(JSON.parse(await readFile(output, 'utf8')));
  expect(result.status).toBe('ok');
  return { result, stdout, stderr };
}

describe('measure in a job', () => {
  it('cuts arrays from --big-array-bound elements on', async () => {
    const size = ['-n', '1', '-s', '2'];
    const parts = async (...options: string[]): Promise<number> => {
      const { result } = await measure(size, '--kv-store', 'dist_sync', ...options);
      const { arrays = 0, traffic } = result;
      return (traffic?.servers ?? []).reduce((sum, { shards }) => sum + shards, 0) - arrays;
    };
    expect(await parts()).toBe(0);
    expect(await parts('--big-array-bound', '9216')).toBeGreaterThan(0);
  });

  it.each(['--mode pushpull', '--optimizer sgd', '--gc-type 2bit'])(
    'checks what servers make of it, and says what each did: %s',
    async (text) => {
      const options = text.split(' ');
      const size = ['-n', '2', '-s', '2'];
      const store = ['--kv-store', 'dist_sync', ...options];
      const { result, stderr, stdout } = await measure(size, ...store);
      const { traffic, bytes, samplesSeconds, check } = result;
      expect(check).toMatchObject({ kind: 'error', wrong: 0, passed: true });
      expect(traffic?.workers.map(({ rank }) => rank)).toEqual([0, 1]);
      expect(traffic?.servers.map(({ server }) => server)).toEqual([0, 1]);
      expect(traffic?.batches).toBe(3);
      for (const { bytesSent, bytesReceived } of traffic?.workers ?? []) {
        if (options[1] === '2bit') expect(bytesSent).toBeLessThan((3 * bytes) / 8);
        else expect(bytesSent).toBeGreaterThanOrEqual(3 * bytes);
        expect(bytesReceived).toBeGreaterThanOrEqual(3 * bytes);
      }
      const all = (of: readonly { bytesSent: number }[] = []): number =>
        of.reduce((sum, one) => sum + one.bytesSent, 0);
      // All that servers send, workers receive; headers of the last reports may be under way.
      expect(all(traffic?.servers) / (6 * bytes)).toBeCloseTo(1, 1);
      const slowest = Math.max(...samplesSeconds);
      for (const { medianSeconds } of traffic?.workers ?? []) {
        expect(medianSeconds).toBeLessThanOrEqual(slowest);
      }
      // One worker prints.
      expect(`${stdout}${stderr}`.match(/iter 3, /g)).toHaveLength(1);
      expect(`${stdout}${stderr}`).toMatch(/^ {2}server 1 .* merges /m);
    },
  );

  it('does not check what nobody can know: an asynchronous store with an optimizer', async () => {
    const size = ['-n', '2', '-s', '1'];
    const store = ['--kv-store', 'dist_async', '--optimizer', 'sgd'];
    const { result } = await measure(size, ...store);
    expect(result.check.kind).toBe('none');
  });
});
