import { existsSync, readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

interface Manifest {
  exports: Record<string, string | { types: string; default: string }>;
}

const root = new URL('../../', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest;

describe('entry points of the package', () => {
  it.each(Object.entries(manifest.exports))('%s comes from a source that there is', (_, target) => {
    if (typeof target === 'string') {
      expect(existsSync(new URL(target, root))).toBe(true);
      return;
    }
    expect(target.types.replace(/\.d\.ts$/, '.js')).toBe(target.default);
    const source = target.default.replace(/^\.\/dist\//, './').replace(/\.js$/, '.ts');
    expect(existsSync(new URL(source, root))).toBe(true);
  });

  it('lists the measuring and model parts, which the main entry does not load', () => {
    expect(Object.keys(manifest.exports)).toEqual(
      expect.arrayContaining(['.', './measure', './models']),
    );
  });
});
