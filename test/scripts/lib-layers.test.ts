// The check of lib's floors, on small trees that break one rule each.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { folderOfEachTest } from '../support/folders.js';

const script = new URL('../../scripts/lib-layers.mjs', import.meta.url).href;
const { layerBreaches } = (await import(script)) as {
  layerBreaches: (lib: string) => readonly string[];
};

let folder = '';
folderOfEachTest((made) => (folder = made));

/** The breaches of a lib/ with these files. */
function breachesOf(files: Readonly<Record<string, string>>): readonly string[] {
  const lib = mkdtempSync(join(folder, 'lib-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(lib, path)), { recursive: true });
    writeFileSync(join(lib, path), text);
  }
  return layerBreaches(lib);
}

describe('the floors of lib/', () => {
  it('hold in lib/ itself', () => {
    expect(layerBreaches(join(import.meta.dirname, '..', '..', 'lib'))).toEqual([]);
  });

  it('an import goes down, to the files of lib/ itself, and stays in its folder', () => {
    const breaches = breachesOf({
      'index.ts': `export * from './cli/main.js';`,
      'errors.ts': '',
      'native/load.ts': `import '../errors.js';`,
      'cli/main.ts': `import { native } from '../native/load.js';\nimport './io.js';`,
      'cli/io.ts': '',
    });
    expect(breaches).toEqual([]);
  });

  it.each([
    ['a value', `import { main } from '../cli/main.js';`],
    ['a type', `import type { Main } from '../cli/main.js';`],
    ['what is loaded later', `const load = () => import('../cli/main.js');`],
    ['what is passed on', `export * from '../cli/main.js';`],
    ['over several lines', `import {\n  main,\n} from '../cli/main.js';`],
  ])('an import that goes up is a breach: %s', (_, text) => {
    const [breach, ...others] = breachesOf({ 'kvstore/types.ts': text, 'cli/main.ts': '' });
    expect(breach).toContain('lib/kvstore/types.ts: imports lib/cli/main.ts');
    expect(others).toEqual([]);
  });

  it('so is one of a neighbour on the same floor, and one of a file of lib/ itself', () => {
    const files = { 'native/load.ts': '', 'results/case.ts': `import '../native/load.js';` };
    expect(breachesOf(files)).toHaveLength(1);
    expect(breachesOf({ 'native/load.ts': '', 'errors.ts': `import './native/load.js';` })).toEqual(
      ['lib/errors.ts: imports lib/native/load.ts; it may import no other folder'],
    );
  });

  it('so is one of the entry, and a folder that nobody gave a floor', () => {
    expect(breachesOf({ 'index.ts': '', 'cli/a.ts': `import '../index.js';` })).toHaveLength(1);
    expect(breachesOf({ 'errors.ts': '', 'new/a.ts': `import '../cli/b.js';` })).toEqual([
      'lib/new: has no floor in scripts/lib-layers.mjs',
    ]);
  });

  it('folders within a folder make no circle; files of one folder may', () => {
    const [breach, ...others] = breachesOf({
      'measure/a/one.ts': `import '../b/one.js';`,
      'measure/b/one.ts': '',
      'measure/b/two.ts': `import '../shared.js';`,
      'measure/shared.ts': `import './a/one.js';`,
      'measure/c/one.ts': `import './two.js';`,
      'measure/c/two.ts': `import './one.js';`,
    });
    expect(breach).toMatch(/lib\/measure: .*circle/);
    expect(others).toEqual([]);
  });
});
