// Folders of tests, which are gone after them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

type Use = (folder: string) => void;

const hooks = { each: [beforeEach, afterEach], all: [beforeAll, afterAll] } as const;

function folderOf([before, after]: (typeof hooks)['each' | 'all'], use: Use): void {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'gradlink-test-'));
    use(folder);
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });
}

/** A new folder for each test of a file or block, which hears of it before its other hooks. */
export const folderOfEachTest = (use: Use): void => folderOf(hooks.each, use);

/** One for all tests of a file or block. */
export const folderOfAllTests = (use: Use): void => folderOf(hooks.all, use);
