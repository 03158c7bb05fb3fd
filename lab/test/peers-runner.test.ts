// The runner of lab/peers on machines that are slow, and with contenders that fail or hang: what was measured stays, everybody
// else is measured, and the run ends in its time. The contenders are made up.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const folder = join(dirname(fileURLToPath(import.meta.url)), '../peers');
const load = (file: string) => import(pathToFileURL(join(folder, file)).href);

interface Wanted {
  readonly ranks: number;
  readonly sizes: number[];
  readonly places: string[];
  readonly seconds: number;
}
interface Contender {
  readonly id: string;
  readonly label: string;
  readonly places: string[];
  waived(): string | undefined;
  programs(wanted: Wanted): { command: string; args: string[] }[];
}
interface Waiver {
  readonly contender: string;
  readonly case: string;
  readonly kind: string;
  readonly reason: string;
}
interface Collected {
  readonly records: { contender: string; bytes: number; seconds: number[]; wrong: number }[];
  readonly waivers: Waiver[];
  readonly rounds: number;
  readonly finished?: boolean;
}
interface BudgetLike {
  left(): number;
  limitOf(estimate?: number): number;
}
interface BudgetModule {
  Budget: new (seconds: number, options?: object) => BudgetLike;
  callSeconds(times: Map<number, number>, bytes: number): number;
  warmSizes(sizes: number[]): number[];
  estimateSeconds(warm: object, wanted: Wanted, machine: object): number;
  fitRound(jobs: object[], estimate: (job: { sizes: number[] }) => number, left: number): object[];
}
interface CollectModule {
  collectPeers(plan: object, budget: BudgetLike, options: object): Promise<Collected>;
}

let budgets: BudgetModule;
let collects: CollectModule;
beforeAll(async () => {
  budgets = (await load('budget.js')) as BudgetModule;
  collects = (await load('collect.js')) as CollectModule;
});

/** A contender that is a piece of JavaScript: `sizes`, `places`, `seconds` and `print(bytes, seconds)` are there for it. */
function madeUp(id: string, body: string): Contender {
  const prelude = `const [sizes, places, seconds] = JSON.parse(process.argv[1]);
    const print = (bytes, took) => places.forEach((place) =>
      console.log(JSON.stringify({ bytes, place, seconds: [took], wrong: 0 })));\n`;
  return {
    id,
    label: `made-up ${id}`,
    places: ['in'],
    waived: () => undefined,
    programs: ({ sizes, places, seconds }) => [
      {
        command: process.execPath,
        args: ['-e', `${prelude}${body}`, JSON.stringify([sizes, places, seconds])],
      },
    ],
  };
}

const quickOne = madeUp('quick', 'sizes.forEach((bytes) => print(bytes, 1e-6))');
// Well while it is warmed (both sizes are small then), and no more when it counts.
const counts = 'seconds > 0.001';
const failing = madeUp(
  'failing',
  `print(8, 1e-6); if (${counts}) { console.error('no pages'); process.exitCode = 3; }`,
);
const hanging = madeUp(
  'hanging',
  `print(8, 1e-6); if (${counts}) setInterval(() => {}, 1000); else print(1024, 1e-6);`,
);
const hangingAtOnce = madeUp('stuck', 'setInterval(() => {}, 1000)');

const planOf = (contenders: Contender[], sizes = [8, 1024], rounds = 2) => ({
  rounds,
  seconds: 0.01,
  tuningSeconds: undefined,
  cases: [{ name: 'made-up', ranks: 2, sizes, contenders }],
});
const quietly = { say: () => undefined };

describe('a contender that fails or hangs', () => {
  it('is listed with the reason, keeps what it had, and stops nobody else', async () => {
    const budget = new budgets.Budget(600, { floorSeconds: 2 });
    const states: number[] = [];
    const result = await collects.collectPeers(planOf([hanging, failing, quickOne]), budget, {
      ...quietly,
      kept: ({ records }: Collected) => states.push(records.length),
    });
    const why = new Map(result.waivers.map((waiver) => [waiver.contender, waiver]));
    expect(why.get('made-up failing')).toMatchObject({ kind: 'failed', case: 'made-up' });
    expect(why.get('made-up failing')?.reason).toMatch(/status 3: no pages/);
    expect(why.get('made-up hanging')).toMatchObject({ kind: 'late', case: 'made-up' });
    expect(why.get('made-up hanging')?.reason).toMatch(/ \S+ s$/);
    expect(result.waivers).toHaveLength(2);
    const of = (id: string) => result.records.filter(({ contender }) => contender === id).length;
    // One size before they were out, and no second round; the other one both sizes in both rounds.
    expect([of('hanging'), of('failing'), of('quick')]).toEqual([1, 1, 4]);
    // What is on disk grows with it.
    expect(states).toEqual([...states].sort((a, b) => a - b));
    expect(states.at(-1)).toBe(6);
  });

  it('is out when its warm-up does not end', async () => {
    const budget = new budgets.Budget(40, { floorSeconds: 2 });
    const result = await collects.collectPeers(planOf([hangingAtOnce, quickOne]), budget, quietly);
    expect(result.waivers).toMatchObject([{ contender: 'made-up stuck', kind: 'late' }]);
    expect(result.records).toHaveLength(4);
  });
});

describe('a slow contender', () => {
  // Each call takes as many milliseconds as KiB, five calls a size.
  const slow = madeUp(
    'slow',
    `const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
     for (const bytes of sizes) { wait(5 * bytes / 1024); print(bytes, bytes / 1024 / 1e3); }`,
  );

  it('gets the time that its work needs', async () => {
    const sizes = [1024, 2 ** 17];
    const budget = new budgets.Budget(600, { floorSeconds: 0.001 });
    const result = await collects.collectPeers(planOf([slow], sizes, 1), budget, quietly);
    expect(result.waivers).toEqual([]);
    expect(result.records.map(({ bytes }) => bytes)).toEqual(sizes);
  });

  it('loses its largest sizes where they do not fit, and says so', async () => {
    const sizes = [1024, 2 ** 17, 2 ** 28];
    const budget = new budgets.Budget(60);
    const result = await collects.collectPeers(planOf([slow, quickOne], sizes, 1), budget, quietly);
    const reason = expect.stringMatching(/^268435456 bytes: .* 1 minutes/) as string;
    expect(result.waivers).toMatchObject([{ contender: 'made-up slow', kind: 'left out', reason }]);
    const of = (id: string) => result.records.filter(({ contender }) => contender === id);
    expect(of('slow').map(({ bytes }) => bytes)).toEqual([1024, 2 ** 17]);
    expect(of('quick')).toHaveLength(3);
  });

  it('gets fewer rounds rather than more time', async () => {
    let now = 0;
    const budget = new budgets.Budget(100, { now: () => now });
    const plan = planOf([quickOne], [8], 3);
    const result = await collects.collectPeers(plan, budget, {
      ...quietly,
      // A round uses up the time.
      kept: ({ records }: Collected) => {
        if (records.length > 0) now = 99.99;
      },
    });
    expect(result.records).toHaveLength(1);
    expect(result.waivers).toEqual([]);
    expect(result.rounds).toBe(1);
  });
});

describe('the time of a job', () => {
  it('is warmed with its smallest size and one that is not large', () => {
    expect(budgets.warmSizes([8, 65536, 2 ** 20, 2 ** 24, 2 ** 26])).toEqual([8, 2 ** 20]);
    expect(budgets.warmSizes([2 ** 22, 2 ** 28])).toEqual([2 ** 22]);
  });

  it('of a call is between what smaller and larger ones took', () => {
    const times = new Map([
      [8, 1],
      [1024, 5],
    ]);
    expect(budgets.callSeconds(times, 16)).toBe(2);
    expect(budgets.callSeconds(times, 512)).toBe(5);
    expect(budgets.callSeconds(times, 4096)).toBe(20);
  });

  it('is what starting, calling and touching memory take', () => {
    const warm = { wallSeconds: 3, times: new Map([[100, 0.1]]) };
    const wanted = { ranks: 2, sizes: [100], places: ['in', 'out'], seconds: 1 };
    const seconds = budgets.estimateSeconds(warm, wanted, { touchRate: 400 });
    // A second is sampled, 12 calls come before, and 4 arrays of 2 ranks are touched; in two places.
    expect(seconds).toBeCloseTo(3 + 2 * (1 + 1.2 + 2));
    expect(
      budgets.estimateSeconds(warm, wanted, { touchRate: Infinity, calls: () => 100 }),
    ).toBeCloseTo(3 + 2 * 10);
  });

  it('is bounded by what is left, and by a multiple of the estimate', () => {
    let now = 0;
    const budget = new budgets.Budget(100, { slack: 4, floorSeconds: 2, now: () => now });
    expect(budget.limitOf(10)).toBe(40);
    expect(budget.limitOf(0.1)).toBe(2);
    now = 90;
    expect(budget.limitOf(10)).toBe(10);
    now = 200;
    expect(budget.left()).toBe(0);
  });

  it('is taken from whoever takes longest, largest size first', () => {
    const jobs = [
      { name: 'a', sizes: [1, 10, 100] },
      { name: 'b', sizes: [1, 10] },
    ];
    const seconds = ({ sizes }: { sizes: number[] }) => sizes.reduce((sum, n) => sum + n, 0);
    const taken = budgets.fitRound(jobs, seconds, 13);
    expect(taken).toMatchObject([
      { job: { name: 'a' }, bytes: 100 },
      { job: { name: 'a' }, bytes: 10 },
    ]);
    expect(jobs.map(({ sizes }) => sizes)).toEqual([[1], [1, 10]]);
  });
});

describe('the command', () => {
  let work: string;
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'gradlink-peers-runner-'));
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  const start = (args: string[], env: NodeJS.ProcessEnv = {}) =>
    run(process.execPath, [join(folder, 'run.js'), ...args], {
      env: { ...process.env, ...env },
      timeout: 200_000,
    }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    );

  it('ends with figures and status 1 where an MPI hangs', async () => {
    // Its compiler makes a program of nothing, its launcher answers --version and never comes back otherwise.
    const compiler = '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done\n';
    const launcher = '#!/bin/sh\n[ "$1" = --version ] && exit 0\nexec sleep 600\n';
    for (const [name, text] of Object.entries({ mpicc: compiler, mpirun: launcher })) {
      await writeFile(join(work, `${name}.openmpi`), text);
      await chmod(join(work, `${name}.openmpi`), 0o755);
    }
    const output = join(work, 'hanging.json');
    const { code, stderr } = await start(
      [
        '--quick',
        '--case',
        'processes-2/(openmpi|gradlink-plain)$',
        '--minutes',
        '0.5',
        '--output',
        output,
      ],
      { PATH: `${work}:${process.env.PATH ?? ''}` },
    );
    expect(code, stderr).toBe(1);
    expect(stderr).toMatch(/^LATE: .*MPI, processes-2: /m);
    const kept = JSON.parse(await readFile(output, 'utf8')) as Collected;
    expect(kept.finished).toBe(true);
    expect(kept.waivers).toMatchObject([{ contender: 'Open MPI', kind: 'late' }]);
    const measured = new Set(kept.records.map(({ contender }) => contender));
    expect([...measured]).toEqual(['gradlink-plain']);
  });

  it('leaves what it had, and nothing else, when it is ended', async () => {
    const output = join(work, 'ended.json');
    const temporary = await mkdtemp(join(work, 'tmp-'));
    const args = ['--quick', '--case', 'memory|local|dist_sync|overhead', '--output', output];
    const child = spawn(process.execPath, [join(folder, 'run.js'), ...args], {
      stdio: 'ignore',
      env: { ...process.env, TMPDIR: temporary },
    });
    const ended = once(child, 'exit');
    const state = async () => JSON.parse(await readFile(output, 'utf8')) as Collected;
    // The file is there before anything is measured; the memory's loops come before the records.
    const some = async () => ((await state()) as { memory?: object[] }).memory?.length ?? 0;
    while (child.exitCode === null && (await some().catch(() => 0)) === 0) await setTimeout(20);
    child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
    const { finished, ...kept } = (await state()) as Collected & { memory: object[] };
    expect(finished).toBe(false);
    expect(kept.memory.length).toBeGreaterThan(0);
    expect(await readdir(temporary)).toEqual([]);
  });

  it('names what --case is held against, and what did not match', async () => {
    const { stdout } = await start(['--list']);
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining(['stores/ps-lite', 'processes-2/openmpi-xhc', 'measure/resnet']),
    );
    const unknown = await start(['--case', 'nobody']);
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.stderr).toMatch(/--case\b.*stores\/dist_sync.*'nobody'/);
    const broken = await start(['--case', '(']);
    expect(broken.stderr).toMatch(/--case, .*'\('/);
  });

  it.each([
    [['--minutes', 'ten'], /--minutes, .*'ten'/],
    [['--minutes', '0'], /--minutes, .*'0'/],
    [['--beside', '/nowhere.json'], /lab\/peers\/run\.js .*\/nowhere\.json/],
  ])('says what was expected: %j', async (args, message) => {
    const { code, stderr } = await start(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
