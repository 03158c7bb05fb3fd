import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { isPrivileged } from '../../lib/native/privileged.js';
import { folderOfAllTests } from '../support/folders.js';

let folder = '';
folderOfAllTests((made) => (folder = made));

describe('a process has more rights than who started it', () => {
  it.each([
    ['where the kernel says so', [6, 4096, 23, 1, 0, 0], true],
    ['not where it says no', [6, 4096, 23, 0, 0, 0], false],
    ['not where another entry has that value', [9, 23, 23, 0, 0, 0], false],
    ['not where it says nothing', [], false],
  ])('%s', (_, words, privileged) => {
    const file = join(folder, 'auxv');
    writeFileSync(file, Buffer.from(BigUint64Array.from(words, BigInt).buffer));
    expect(isPrivileged(file)).toBe(privileged);
  });

  it('where it may not read what belongs to it, and not where there is no /proc', () => {
    // A folder stands for what cannot be read: root may read every file.
    expect(isPrivileged(folder)).toBe(true);
    expect(isPrivileged(join(folder, 'none', 'auxv'))).toBe(false);
    expect(isPrivileged()).toBe(false);
  });
});
