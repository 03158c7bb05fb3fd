import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { gradlink } from '../support/cli.js';
import { madeRun, type MadeRun } from '../support/comparing.js';
import { folderOfEachTest } from '../support/folders.js';

let folder = '';
let before: Record<string, string | undefined> = {};

folderOfEachTest((made) => (folder = made));
beforeEach(() => {
  before = { XDG_DATA_HOME: process.env.XDG_DATA_HOME, XDG_STATE_HOME: process.env.XDG_STATE_HOME };
  process.env.XDG_DATA_HOME = join(folder, 'data');
  process.env.XDG_STATE_HOME = join(folder, 'state');
});
afterEach(() => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
});

function write(name: string, run: MadeRun): string {
  const file = join(folder, name);
  writeFileSync(file, toJson(madeRun(run)));
  return file;
}

describe('gradlink compare', () => {
  it('passes an equal run and flags one slowed on purpose', async () => {
    const base = write('base.json', { seed: 1 });
    const equal = await gradlink(['compare', base, write('equal.json', { seed: 2 })]);
    expect({ code: equal.code, stderr: equal.stderr }).toEqual({ code: 0, stderr: '' });
    expect(equal.stdout).toMatch(/^3 same\nno regression .*5\.0 %$/m);
    const slowed = write('slowed.json', { seed: 3, factor: 1.2 });
    const worse = await gradlink(['compare', base, slowed]);
    expect(worse.code).toBe(1);
    expect(worse.stdout).toMatch(/regression: 3 worse .*5\.0 %/);
    expect((await gradlink(['compare', base, slowed, '--tolerance', '40%'])).code).toBe(0);
  });

  it('says the ratio first, and in 80 columns what each case took', async () => {
    const base = write('base.json', { seed: 1 });
    const next = write('next.json', { seed: 2, factor: 1.2 });
    const { stdout } = await gradlink(['compare', base, next], { columns: 80 });
    const lines = stdout.replaceAll(/\u001b\[\d+m/g, '').split('\n');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    const [, factor, half] = /^\D+(\d\.\d+) ± (\d\.\d+) .*\bslower\b/.exec(lines[0]!)!;
    expect(Number(factor)).toBeCloseTo(1.2, 1);
    expect(Number(half)).toBeLessThan(0.1);
    for (const size of ['4 KiB', '256 KiB', '4 MiB']) {
      const row = new RegExp(
        String.raw`^worse +${size} +[\d.]+ [mu]s +[\d.]+ [mu]s +1\.\d+ +1\.\d+ to 1\.\d+$`,
      );
      expect(lines.filter((line) => row.test(line))).toHaveLength(1);
    }
    // What all cases have in common.
    expect(stdout.match(/float32/g)).toHaveLength(1);
    expect(stdout.match(/2 ranks/g)).toHaveLength(1);
    const alone = await gradlink(['compare', next, base]);
    expect(alone.stdout).toMatch(/^\D+1\.\d+ ± 0\.\d+ .*\bfaster\b/);
  });

  it('tells what unclear cases have in common once, in colours on a terminal alone', async () => {
    const sizes = [1, 2, 4, 8, 16].map((count) => count << 10);
    const scattered = { scatter: 2, samples: 6, sizes };
    const [base, next] = [1, 2].map((seed) =>
      write(`${String(seed)}.json`, { ...scattered, seed }),
    ) as [string, string];
    const { stdout } = await gradlink(['compare', base, next]);
    expect(stdout.match(/^unclear {2}/gm)).toHaveLength(5);
    expect(stdout.match(/^unclear: /gm)).toHaveLength(1);
    expect(stdout).not.toContain('\u001b');
    const shown = await gradlink(['compare', base, next], { columns: 80 });
    expect(shown.stdout.match(/^\u001b\[33munclear\u001b\[39m {2}/gm)).toHaveLength(5);
    process.env.NO_COLOR = '1';
    const plain = await gradlink(['compare', base, next], { columns: 80 });
    delete process.env.NO_COLOR;
    expect(plain.stdout).not.toContain('\u001b');
  });

  it('names the operation and the type where they differ', async () => {
    const run = madeRun({ seed: 1 });
    const others = run.cases.map((one) => ({
      ...one,
      name: 'all_gather',
      parameters: { ...one.parameters, op: null, dtype: 'float64' },
    }));
    const file = join(folder, 'both.json');
    writeFileSync(file, toJson({ ...run, cases: [...run.cases, ...others] }));
    const { stdout } = await gradlink(['compare', file, file]);
    expect(stdout).toMatch(/^same +all_gather 4 KiB float64 /m);
    expect(stdout).toMatch(/^same +all_reduce 4 KiB float32 /m);
    expect(stdout).toMatch(/\bop sum \(all_reduce\)/);
  });

  it('writes JSON, Markdown and JUnit', async () => {
    const files = [write('a.json', { seed: 1 }), write('b.json', { seed: 2, factor: 1.2 })];
    const json = await gradlink(['compare', ...files, '--format', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      regressed: true,
      tolerance: 0.05,
      ratio: { confidence: expect.closeTo(0.95, 6) as number },
    });
    const markdown = await gradlink(['compare', ...files, '--format', 'md']);
    expect(markdown.stdout).toMatch(/^\| worse \| 4 KiB \|/m);
    const junit = join(folder, 'junit.xml');
    const xml = await gradlink(['compare', ...files, '--junit', junit]);
    expect(xml.stdout).toContain('regression');
    const text = readFileSync(junit, 'utf8');
    expect(text).toContain('tests="3" failures="3" errors="0" skipped="0"');
    expect(text.match(/<failure type="worse"/g)).toHaveLength(3);
  });

  it('takes folders of runs', async () => {
    mkdirSync(join(folder, 'runs'));
    for (const seed of [1, 2, 3]) write(`runs/${String(seed)}.json`, { seed });
    const { stdout, code } = await gradlink([
      'compare',
      join(folder, 'runs'),
      write('next.json', { seed: 4 }),
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('3 runs)');
  });

  it('refuses a third run and a tolerance that is none', async () => {
    const base = write('base.json', { seed: 1 });
    expect((await gradlink(['compare', base, base, base])).stderr).toMatch(/runs, got 3\b/);
    expect((await gradlink(['compare', base, base, '--tolerance', 'x'])).code).toBe(2);
    const none = await gradlink(['compare', base, join(folder, 'nothing.json')]);
    expect(none).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/nothing\.json/) as string,
    });
  });
});

describe('gradlink baseline', () => {
  it('saves, lists, uses and removes', async () => {
    const files = [1, 2].map((seed) => write(`${String(seed)}.json`, { seed }));
    expect((await gradlink(['baseline', 'list'])).stdout).toMatch(/^No baselines/);
    expect(await gradlink(['baseline', 'save', 'v1', ...files])).toMatchObject({ code: 0 });
    expect(await gradlink(['baseline', 'use', 'v1'])).toMatchObject({ code: 0 });
    expect((await gradlink(['baseline', 'list'])).stdout).toMatch(/^\* +v1 +2 +3 +collectives/m);
    const slowed = write('slowed.json', { seed: 5, factor: 1.3 });
    const alone = await gradlink(['compare', slowed]);
    expect(alone).toMatchObject({ code: 1 });
    expect(alone.stdout).toContain('base  v1 (collectives');
    expect(await gradlink(['compare', 'v1', files[0]!])).toMatchObject({ code: 0 });
    expect(await gradlink(['baseline', 'remove', 'v1'])).toMatchObject({ code: 0 });
    expect(JSON.parse((await gradlink(['baseline', 'list', '--json'])).stdout)).toEqual([]);
    expect((await gradlink(['compare', slowed])).stderr).toContain('no baseline');
  });

  it('replaces the runs of a name, and keeps them when the new ones are bad', async () => {
    const good = write('good.json', { seed: 1 });
    await gradlink(['baseline', 'save', 'v1', good, good, good]);
    writeFileSync(join(folder, 'bad.json'), '{}');
    const bad = await gradlink(['baseline', 'save', 'v1', join(folder, 'bad.json')]);
    expect(bad.code).toBe(2);
    expect((await gradlink(['baseline', 'list'])).stdout).toMatch(/v1 +3 /);
    await gradlink(['baseline', 'save', 'v1', good]);
    expect((await gradlink(['baseline', 'list'])).stdout).toMatch(/v1 +1 /);
  });

  it.each([
    [['save', '../v1', 'RUN'], /letters, .*got '\.\.\/v1'/],
    [['use', 'v9'], /'v9'.*none yet\b/],
  ])('says what is wrong with %j', async (argv, message) => {
    const { code, stderr } = await gradlink(['baseline', ...argv]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
