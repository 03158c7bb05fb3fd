import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import {
  describeEnvironment,
  knownVariables,
  lastLevelCache,
} from '../../lib/results/environment.js';
import { folderOfEachTest } from '../support/folders.js';

describe('known variables', () => {
  it('keeps what changes a figure and nothing else', () => {
    const environment = {
      OMP_NUM_THREADS: '2',
      GRADLINK_NUM_THREADS: '4',
      NCCL_DEBUG: 'INFO',
      PATH: '/bin',
      AWS_SECRET_ACCESS_KEY: 'secret',
      HOME: '/root',
      NCCL_TOKEN: 'of a plugin',
      GRADLINK_JOB: 'c0ffee',
      GRADLINK_NEW: 'of a later version',
    };
    expect(knownVariables(environment)).toEqual({
      GRADLINK_NUM_THREADS: '4',
      NCCL_DEBUG: 'INFO',
      OMP_NUM_THREADS: '2',
    });
  });
});

describe('last cache level', () => {
  let folder: string;
  folderOfEachTest((made) => (folder = made));

  function cache(index: number, level: string, size: string): void {
    mkdirSync(join(folder, `index${index}`));
    writeFileSync(join(folder, `index${index}`, 'level'), `${level}\n`);
    writeFileSync(join(folder, `index${index}`, 'size'), `${size}\n`);
  }

  it('is the highest', () => {
    cache(0, '1', '32K');
    cache(1, '1', '32K');
    cache(2, '2', '1024K');
    cache(3, '3', '32M');
    expect(lastLevelCache(folder)).toBe(32 * 2 ** 20);
  });

  it('is null where the kernel says nothing, or nothing that can be read', () => {
    expect(lastLevelCache(folder)).toBeNull();
    cache(0, 'three', 'big');
    expect(lastLevelCache(folder)).toBeNull();
  });
});

describe('environment', () => {
  it('describes this process', () => {
    const found = describeEnvironment({ simdLevel: 'avx2', threads: 2 });
    expect(found).toMatchObject({
      simdLevel: 'avx2',
      threads: 2,
      nodeVersion: process.version,
      architecture: process.arch,
    });
    expect(found.availableCores).toBeGreaterThan(0);
    expect(found.availableCores).toBeLessThanOrEqual(found.onlineCores);
    expect(found.memoryBytes).toBeGreaterThan(found.freeMemoryBytes);
  });
});
