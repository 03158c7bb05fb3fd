// What NVIDIA's programs print, read: lines as they print them.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import {
  findRival,
  nvbandwidth,
  readAllReducePerf,
  readNvbandwidth,
  runRival,
} from '../gpu/rivals.js';
import { allReduceOutput, nvbandwidthOutput } from '../../test/support/rivals.js';

const folder = mkdtempSync(join(tmpdir(), 'gradlink-rivals-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function program(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  chmodSync(file, 0o755);
  return file;
}

describe('nvbandwidth', () => {
  it('is the sum of its case, in 1e9 bytes', () => {
    const text = nvbandwidthOutput('host_to_device_memcpy_ce', 55.36);
    expect(readNvbandwidth(text, 'host_to_device_memcpy_ce')).toBe(55.36e9);
    expect(() => readNvbandwidth(text, 'device_local_copy')).toThrow('SUM device_local_copy');
    expect(() => readNvbandwidth('Running device_local_copy.\nWAIVED\n', 'other')).toThrow(
      'WAIVED',
    );
  });
});

describe('nccl-tests', () => {
  it('is algbw of the size, out of place and in place', () => {
    const text = allReduceOutput(1048576, 12.5, 13.75);
    expect(readAllReducePerf(text, 1048576)).toEqual({ outOfPlace: 12.5e9, inPlace: 13.75e9 });
    expect(() => readAllReducePerf(text, 2048)).toThrow('2048 bytes');
    expect(() => readAllReducePerf(allReduceOutput(8, 1, 1, 3), 8)).toThrow('wrong results');
  });
});

describe('programs', () => {
  it('are found by variable, then in PATH', () => {
    const file = program('nvbandwidth', '#!/bin/sh\necho found\n');
    expect(findRival(nvbandwidth, { PATH: `/nonexistent:${folder}` })).toBe(file);
    expect(findRival(nvbandwidth, { PATH: '', GRADLINK_NVBANDWIDTH: file })).toBe(file);
    const elsewhere = { PATH: folder, GRADLINK_NVBANDWIDTH: '/nonexistent/nvbandwidth' };
    expect(findRival(nvbandwidth, elsewhere)).toBeUndefined();
    expect(runRival(file, [], 60_000)).toBe('found\n');
  });

  it('that fail or do not end are errors that say so', () => {
    const failing = program('failing', '#!/bin/sh\necho no GPU >&2\nexit 3\n');
    expect(() => runRival(failing, [], 60_000)).toThrow('status 3: no GPU');
    const hanging = program('hanging', '#!/bin/sh\nexec sleep 600\n');
    expect(() => runRival(hanging, [], 300)).toThrow('within 0.3 s');
  });
});
