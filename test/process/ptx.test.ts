// The kernels' PTX that is checked in is what its source gives, and nothing that would change a bit or refuse an old driver.
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

import { modulesOf, ptx as texts } from '../support/ptx.js';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

interface Cubins {
  readonly makes: (release: number, architecture: number) => boolean;
  readonly limits: { readonly registers: number; readonly spilledBytes: number };
  readonly makeCubins: () => {
    readonly reason?: string;
    readonly cubins?: readonly {
      readonly file: string;
      readonly architecture: number;
      readonly kernels: readonly {
        readonly kernel: string;
        readonly registers: number;
        readonly spilledBytes: number;
      }[];
    }[];
  };
}

describe('the PTX of the kernels', () => {
  test('is what nvcc makes of the source', async (context) => {
    const { code, stderr } = await run(process.execPath, ['scripts/ptx.mjs', '--check'], {
      cwd: root,
    }).then(
      () => ({ code: 0, stderr: '' }),
      (error: unknown) => error as { code: number; stderr: string },
    );
    if (code === 3) context.skip(stderr.trim());
    expect(stderr).toBe('');
    expect(code).toBe(0);
  });

  test.each(Object.entries(texts))(
    '%s: for old drivers, and rounds as the host does',
    (_module, ptx) => {
      expect(ptx).toMatch(/^\.version 6\.3\n\.target sm_50$/m);
      expect(ptx).not.toMatch(/^\s*(fma|mad)\.[a-z.]*f(32|64)/m);
      // Without a rounding mode a driver may fuse them itself.
      expect(ptx).not.toMatch(/^\s*(add|sub|mul)\.f(32|64)/m);
      expect(ptx).not.toMatch(/\.(approx|full|ftz)\./);
      // Threads run to their ends alone: what the stand-in can run.
      expect(ptx).not.toMatch(/^\s*(bar|barrier|shfl|vote|\.shared)\b/m);
    },
  );

  test('fits three blocks on a multiprocessor, and spills nothing into memory', async (context) => {
    const script = (await import(join(root, 'scripts/cubins.mjs'))) as Cubins;
    const { limits, makeCubins } = script;
    const { reason, cubins = [] } = makeCubins();
    if (reason !== undefined) context.skip(reason);
    const known = new Set(cubins.map(({ architecture }) => architecture));
    expect([...known]).toEqual(expect.arrayContaining([80, 90, 100, 120]));
    // CUDA 13 knows Volta no more.
    expect([script.makes(1209, 70), script.makes(1300, 70)]).toEqual([true, false]);
    expect(cubins).toHaveLength(2 * known.size);
    for (const { file, kernels } of cubins) {
      expect(kernels.length, file).toBeGreaterThan(10);
      for (const { kernel, registers, spilledBytes } of kernels) {
        const where = `${kernel} in ${file}`;
        expect(registers, where).toBeLessThanOrEqual(limits.registers);
        expect(spilledBytes, where).toBeLessThanOrEqual(limits.spilledBytes);
      }
    }
  });

  test('is loaded in modules of what is used together', () => {
    const modules = new Map(Object.values(texts).flatMap((text) => [...modulesOf(text)]));
    /** Kernels and lines of what a run loads. */
    const load = (...names: string[]) => {
      const loaded = names.map((name) => modules.get(name) ?? { text: '', kernels: [] });
      return {
        kernels: loaded.reduce((sum, { kernels }) => sum + kernels.length, 0),
        lines: loaded.reduce((sum, { text }) => sum + text.split('\n').length, 0),
      };
    };
    // A store without optimizer, p2p, collectives of float32: theirs together. Lines are what compiling takes long for.
    expect(load('sumFloat32')).toMatchObject({ kernels: 1 });
    const together = load('sumFloat32', 'diagnostics', 'pattern');
    expect(together.kernels).toBe(5);
    expect(together.lines).toBeLessThan(2000);
    const steps = [...modules.keys()].filter((name) => name.startsWith('step'));
    expect(steps.length).toBeGreaterThan(10);
    for (const step of steps) {
      expect(load(step).kernels, step).toBe(1);
      expect(load(step).lines, step).toBeLessThan(900);
    }
    // With the norms of a trust ratio the longest.
    expect(load('stepLbsgd', 'LbsgdSquares', 'norms').lines).toBeLessThan(1800);
    // Each text begins as the driver wants it, and has its kernels whole.
    for (const { text, kernels } of modules.values()) {
      expect(text).toMatch(/^\.version 6\.3\n\.target sm_50$/m);
      expect(text.match(/^\.visible \.entry /gm)).toHaveLength(kernels.length);
      expect(text.match(/^\}$/gm)).toHaveLength(kernels.length);
    }
  });
});
