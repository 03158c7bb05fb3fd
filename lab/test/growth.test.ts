// The growth of costs: the slope and its word, on made-up figures, what Open MPI's counts say, and a page of them.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const folder = join(dirname(fileURLToPath(import.meta.url)), '../growth');
const load = (file: string) => import(pathToFileURL(join(folder, file)).href);

interface Point {
  readonly x: number;
  readonly y: number;
}
interface Grown {
  readonly slope: number;
  readonly factor: number;
  readonly steepest: number;
  readonly word: string;
}

const powers = [2, 4, 8, 16, 32];
const pointsOf = (cost: (x: number) => number): Point[] => powers.map((x) => ({ x, y: cost(x) }));

describe('the growth of a cost', () => {
  let growth: (points: readonly Point[]) => Grown;
  let within: (word: string, wanted: string) => boolean;
  beforeAll(async () => {
    ({ growth, within } = (await load('fit.js')) as {
      growth: typeof growth;
      within: typeof within;
    });
  });

  it.each([
    ['constant', () => 7, 0],
    ['linear', (x: number) => 3 * x, 1],
    ['below linear', (x: number) => 5 * Math.sqrt(x), 0.5],
    ['worse than linear', (x: number) => 2 * x * x, 2],
  ])('is %s, and a power has its exponent as slope', (word, cost, slope) => {
    const grown = growth(pointsOf(cost));
    expect(grown.word).toBe(word);
    expect(grown.slope).toBeCloseTo(slope);
    expect(grown.steepest).toBeCloseTo(slope);
    expect(grown.factor).toBeCloseTo(cost(1));
  });

  it('is logarithmic where each doubling costs the same', () => {
    expect(growth(pointsOf((x) => Math.log2(x))).word).toBe('logarithmic');
    expect(growth(pointsOf((x) => 4 + 2 * Math.log2(x))).word).toBe('logarithmic');
  });

  it('has its steepest step where one size is far off', () => {
    const grown = growth(pointsOf((x) => (x === 32 ? 160 : 10)));
    expect(grown.steepest).toBeCloseTo(4);
    expect(grown.slope).toBeLessThan(1);
  });

  it('follows points in any order', () => {
    const points = pointsOf((x) => x);
    expect(growth([...points].reverse())).toEqual(growth(points));
  });

  it('needs three sizes and costs above 0', () => {
    expect(() => growth(pointsOf((x) => x).slice(0, 2))).toThrow(/three.*got 2/);
    expect(() => growth(pointsOf(() => 0))).toThrow(/above 0/);
  });

  it('may be better than asked, not worse', () => {
    expect(within('constant', 'logarithmic')).toBe(true);
    expect(within('logarithmic', 'logarithmic')).toBe(true);
    expect(within('below linear', 'logarithmic')).toBe(false);
    expect(within('worse than linear', 'linear')).toBe(false);
  });
});

it('what a host sends is summed over its peers', async () => {
  const { countsIn } = (await load('measures.js')) as {
    countsIn: (text: string) => { sum: number; messages: number };
  };
  const text = [
    '# POINT TO POINT',
    'E\t1\t0\t100 bytes\t3 msgs sent\t0,0',
    'E\t1\t2\t24 bytes\t2 msgs sent\t0,0',
    'D\tMPI_COMM_WORLD\tprocs: 0,1',
  ].join('\n');
  expect(countsIn(text)).toEqual({ sum: 124, messages: 5 });
});

describe('the command', () => {
  let work: string;
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'gradlink-growth-test-'));
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  const start = (...args: string[]) =>
    run(process.execPath, [join(folder, 'run.js'), ...args], { timeout: 200_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    );

  it('measures workers of a server, keys and a bucket, and keeps the figures', async () => {
    const output = join(work, 'quick.json');
    const only = ['keys', 'workers', 'bucket', 'ranks-data'];
    const { code, stdout, stderr } = await start(
      '--quick',
      '--only',
      only.join(','),
      '--output',
      output,
    );
    expect(code, stderr).toBe(0);
    for (const what of ['keys', 'workers', 'arrays', 'ranks']) {
      expect(stdout).toMatch(
        new RegExp(`^\\| [^|]+ \\| ${what}\\b[^|]* \\| [\\d.]+ [um]s at `, 'm'),
      );
    }
    const taken = JSON.parse(await readFile(output, 'utf8')) as { id: string; points: Point[] }[];
    expect(taken.map(({ points }) => points.length)).toEqual([3, 3, 3, 3]);
  });

  it('counts what simulated hosts send', async (context) => {
    const { stdout, stderr } = await start('--quick', '--only', 'hosts-small');
    if (stdout.includes('not installed')) context.skip('needs mpirun.openmpi');
    // One message more for each doubling.
    expect(stdout, stderr).toMatch(
      /\| 1 messages at 2 \|.*\| 3 messages at 8 \|.*\| logarithmic \|/,
    );
  });

  it('draws an earlier run, and ends with 1 where a cost grows faster than it may', async () => {
    const results = join(work, 'made-up.json');
    const drawn = join(work, 'growth.svg');
    const made = [
      { id: 'keys', points: pointsOf((x) => x * 1e-6) },
      { id: 'hosts-small', points: pointsOf((x) => x) },
    ];
    await writeFile(results, JSON.stringify(made));
    const { code, stdout } = await start(results, '--draw', drawn);
    expect(code).toBe(1);
    expect(stdout).toMatch(/\| 1\.00 \| 1\.00 \| linear \| [^|]*\blinear \|/);
    expect(stdout).toMatch(/\| linear, MORE [^|]*\| [^|]*\blogarithmic \|/);
    const svg = await readFile(drawn, 'utf8');
    expect(svg).toMatch(/^<svg/);
    expect(svg).toContain('slope 1.00: linear');
    await writeFile(results, JSON.stringify(made.slice(0, 1)));
    expect(await start(results)).toMatchObject({ code: 0 });
  });

  it.each([
    [['--only', 'nothing'], /--only\b.*hosts-small.*'nothing'/],
    [['--seconds', '0'], /--seconds, .*'0'/],
    [['--slope'], /usage: node lab\/growth\/run\.js/],
  ])('says what was expected: %j', async (args, message) => {
    const { code, stderr } = await start(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('the cost of waiting', () => {
  const waiting = (...given: string[]) =>
    run(process.execPath, [join(folder, 'waiting.js'), ...given]);

  it('is measured beside another checkout, as ratios of turns', async () => {
    const { stdout } = await waiting(
      ...['--quick', '--json', '--only', '^2 ranks, 8 B, one comes 20', '--beside', '.'],
    );
    const results = JSON.parse(stdout) as Record<string, unknown>[];
    expect(results).toHaveLength(1);
    const [one = {}] = results;
    // One of both computes for 20 us before each call.
    expect(one['microseconds']).toBeGreaterThan(10);
    expect(one['cpu']).toBeGreaterThan(0);
    expect(one['ofBeside']).toBeGreaterThan(0);
    expect(one['cpuOfBeside']).toBeGreaterThan(0);
  });

  it('names the cases where none is meant', async () => {
    await expect(waiting('--only', 'none')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'2 ranks, 8 B'") as string,
    });
  });
});
