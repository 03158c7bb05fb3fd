import { existsSync, readFileSync, readdirSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import type * as Index from '../../lib/index.js';
import type * as Graphs from '../../lib/topology/index.js';
import { version } from '../../lib/version.js';

interface Manifest {
  version: string;
  exports: Record<string, string | { types: string; default: string }>;
  dependencies: Record<string, string>;
}

const root = new URL('../../', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest;

describe('entry points of the package', () => {
  it.each(Object.entries(manifest.exports))(
    '%s is bundled, with types of a source that there is',
    (_, target) => {
      const path = typeof target === 'string' ? target : target.default;
      expect(existsSync(new URL(path, root))).toBe(true);
      if (typeof target === 'string') return;
      const source = target.types.replace('./dist/types/', './lib/').replace(/\.d\.ts$/, '.ts');
      expect(existsSync(new URL(source, root))).toBe(true);
    },
  );

  it('lists the parts that the main entry does not load', () => {
    expect(Object.keys(manifest.exports)).toEqual(
      expect.arrayContaining(['.', './measure', './models', './topology', './decentralised']),
    );
  });
});

describe('the package', () => {
  it('has one version', () => {
    expect(version).toBe(manifest.version);
  });

  it('needs at run time only what finds the addon: the rest is bundled', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual(['bindings', 'detect-libc']);
  });
});

describe('dist/', () => {
  const text = (name: string): string => readFileSync(new URL(`dist/${name}`, root), 'utf8');

  it('index.js is one file: it imports nothing but modules of Node', () => {
    // The bundle has no blanks that it can do without: import{join}from"node:path".
    const imports = [...text('index.js').matchAll(/\bimport[^;()]*?\bfrom ?"(.+?)";/g)].map(
      ([, from]) => from,
    );
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((from) => !from!.startsWith('node:'))).toEqual([]);
  });

  it('holds the class of errors and the loader once, in index.js', () => {
    // launch-rank.js is a program of its own, which loads none of the others.
    const names = readdirSync(new URL('dist/', root)).filter(
      (name) => name.endsWith('.js') && name !== 'launch-rank.js',
    );
    const having = (part: RegExp): string[] => names.filter((name) => part.test(text(name)));
    expect(having(/\bGradlinkError ?= ?class\b/)).toEqual(['index.js']);
    expect(having(/\bfunction nativePath\(/)).toEqual(['index.js']);
  });

  it('hands the modules of index.js to the other entries', async () => {
    const load = (name: string): Promise<Record<string, unknown>> =>
      import(new URL(`dist/${name}.js`, root).href) as Promise<Record<string, unknown>>;
    const [index, internal] = await Promise.all([load('index'), load('internal')]);
    const modules = index['__modules'] as Record<string, Record<string, unknown>>;
    expect(internal['native']).toBe(modules['lib/native/load.ts']!['native']);
    expect(index['GradlinkError']).toBe(modules['lib/errors.ts']!['GradlinkError']);
  });

  it('makes graphs in one entry that communicators of another take', async () => {
    const { Communicator } = (await import(new URL('dist/index.js', root).href)) as typeof Index;
    const { ringGraph } = (await import(new URL('dist/topology.js', root).href)) as typeof Graphs;
    await using group = Communicator.local(3);
    const [one] = await group.openRanks();
    const ring = ringGraph(3);
    one!.setTopology(ring);
    expect(one!.topology).toBe(ring);
  });

  it('brings the licence of everything that is bundled', () => {
    const licenses = text('THIRD-PARTY-LICENSES.txt');
    for (const name of ['ajv', 'commander', 'vega', 'vega-lite', 'yaml']) {
      expect(licenses).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
    }
  });
});
