// The runner of lab/peers: its judgement on made-up figures, and one quick run of everything that is installed here.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const folder = join(root, 'lab', 'peers');
const MiB = 2 ** 20;

interface PeerRecord {
  readonly contender: string;
  readonly ranks: number;
  readonly bytes: number;
  readonly place: string;
  readonly seconds: readonly number[];
  readonly wrong: number;
}

interface Row {
  readonly target: string;
  readonly value: number | null;
  readonly reached: boolean | null;
  readonly detail: string;
}

interface Run {
  readonly records: readonly PeerRecord[];
  readonly memory: readonly {
    readonly name: string;
    readonly seconds: readonly number[];
    readonly movedBytes: number;
  }[];
  readonly overhead: Readonly<Record<string, readonly number[]>>;
  readonly store: Readonly<Record<string, number>>;
  readonly waivers: readonly { readonly contender: string; readonly reason: string }[];
  readonly targets: readonly Row[];
}

describe('targets', () => {
  const { href } = pathToFileURL(join(folder, 'targets.js'));
  let evaluate: (run: Partial<Run>) => readonly Row[];
  beforeAll(async () => {
    ({ evaluate } = (await import(href)) as { evaluate: typeof evaluate });
  });

  const record = (contender: string, bytes: number, place: string, ...seconds: number[]) => ({
    contender,
    ranks: 2,
    bytes,
    place,
    seconds,
    wrong: 0,
  });
  const row = (records: PeerRecord[], target: RegExp) =>
    evaluate({ records, overhead: {}, store: {} }).find((candidate) =>
      target.test(candidate.target),
    );

  test('the median of all rounds counts, and of several sizes the worst', () => {
    const records = [
      record('gradlink-plain', 4 * MiB, 'in', 1, 1, 9),
      record('openmpi', 4 * MiB, 'in', 3),
      record('gradlink-plain', 64 * MiB, 'in', 10),
      record('openmpi', 64 * MiB, 'in', 18, 26),
      record('openmpi', 64 * MiB, 'in', 22),
    ];
    expect(row(records, /4 MiB to 64 MiB, in place/)).toMatchObject({
      value: 2.2,
      reached: true,
      detail: '64 MiB in place',
    });
  });

  test('in place is never compared with out of place', () => {
    const records = [record('gradlink-plain', 8, 'in', 1), record('openmpi', 8, 'out', 100)];
    expect(row(records, /2 processes, 8 bytes/)).toMatchObject({ value: null, reached: null });
  });

  test('tuning that made it worse does not count as the best', () => {
    const records = [
      record('gradlink-plain', 4 * MiB, 'in', 1),
      record('openmpi', 4 * MiB, 'in', 1.4),
      record('openmpi-tuned', 4 * MiB, 'in', 5),
    ];
    expect(row(records, /best tuned/)).toMatchObject({ value: 1.4, reached: false });
  });

  test('the fastest of the peers counts, whoever it is', () => {
    const records = [
      record('gradlink-plain', 64 * MiB, 'in', 1),
      record('openmpi', 64 * MiB, 'in', 5),
      record('ucc', 64 * MiB, 'in', 2),
      record('vllm', 64 * MiB, 'in', 1.25),
    ];
    expect(row(records, /8 bytes to 64 MiB: the fastest/)).toMatchObject({ value: 1.25 });
  });

  test('limits are judged from below, times from above', () => {
    const rows = evaluate({
      records: [],
      overhead: { syncSeconds: [0.9e-6], awaitedSeconds: [31e-6] },
      store: { resnet: 0.76, 'inception-v3': 0.64 },
    });
    expect(rows.slice(-5).map(({ reached }) => reached)).toEqual([true, false, true, false, null]);
  });
});

describe('stores', () => {
  let evaluate: (run: Partial<Run>) => readonly Row[];
  beforeAll(async () => {
    const { href } = pathToFileURL(join(folder, 'targets.js'));
    ({ evaluate } = (await import(href)) as { evaluate: typeof evaluate });
  });

  test('are held to four passes over memory, and pairs to their rate', () => {
    const one = (contender: string, bytes: number, place: string, seconds: number) => ({
      contender,
      ranks: 1,
      bytes,
      place,
      seconds: [seconds],
      wrong: 0,
    });
    const rows = evaluate({
      records: [
        one('dist_sync', MiB, 'store', 0.001),
        one('dist_sync', 4 * MiB, 'store', 0.002),
        one('dist_sync-shared', MiB, 'store', 0.0006),
        one('ps-lite', MiB, 'store', 0.009),
        one('dist_sync', 4096, 'pairs', 1 / 40_000),
      ],
      memory: [
        { name: 'copy', seconds: [1], movedBytes: 2 ** 32 },
        { name: 'copy', seconds: [1], movedBytes: 2 ** 33 },
      ],
      overhead: {},
      store: {},
    });
    const row = (target: RegExp) => rows.find((candidate) => target.test(candidate.target));
    // 4 MiB at 8 GiB/s take 0.488 ms, 16 MiB four times that.
    const [plain, shared] = [/1 worker and 1 server/, /the store's arrays/].map((arrays) => ({
      bound: row(new RegExp(`${arrays.source}.*share of the memory bound`)),
      peer: row(new RegExp(`${arrays.source}.*ps-lite over ours`)),
    }));
    expect(plain?.bound).toMatchObject({ reached: false });
    expect(plain?.bound?.value).toBeCloseTo(0.488, 3);
    expect(plain?.peer).toMatchObject({ value: 9, reached: true });
    expect(shared?.bound).toMatchObject({ reached: true });
    expect(shared?.bound?.value).toBeCloseTo(0.814, 3);
    expect(shared?.peer?.value).toBeCloseTo(15);
    expect(row(/pairs of push and pull/)).toMatchObject({ value: 40_000, reached: false });
  });

  test('of OSU are read off its table', async () => {
    const { osuRecord } = (await import(pathToFileURL(join(folder, 'osu.js')).href)) as {
      osuRecord: (sizes: readonly number[], line: string) => PeerRecord | undefined;
    };
    expect(osuRecord([8], '8                       1.25')?.seconds[0]).toBeCloseTo(1.25e-6);
    expect(osuRecord([8], '16                      1.25')).toBeUndefined();
    expect(osuRecord([8], '# Size       Avg Latency(us)')).toBeUndefined();
  });
});

describe('a quick run', () => {
  let work: string;
  let result: Run;
  let output: string;

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'gradlink-peers-test-'));
    const file = join(work, 'run.json');
    const args = [join(folder, 'run.js'), '--quick', '--markdown', '--output', file];
    ({ stdout: output } = await run(process.execPath, args, { timeout: 230_000 }));
    result = JSON.parse(await readFile(file, 'utf8')) as Run;
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  test('measures gradlink in one process and in two, with right results', () => {
    const contenders = new Set(result.records.map(({ contender }) => contender));
    expect([...contenders]).toEqual(
      expect.arrayContaining(['local', 'loop', 'gradlink-plain', 'gradlink-shared']),
    );
    expect(result.records.filter(({ wrong }) => wrong !== 0)).toEqual([]);
  });

  test('measures or waives every peer', () => {
    const peers = {
      openmpi: 'Open MPI',
      mpich: 'MPICH',
      osu: 'OSU osu_allreduce',
      gloo: 'Gloo (torch, loopback)',
      dist_sync: 'gradlink, dist_sync',
      'dist_sync-shared': "gradlink, dist_sync, the store's arrays",
      'ps-lite': 'ps-lite (loopback)',
      'gradlink-messages': 'gradlink, messages',
      'openmpi-messages': 'Open MPI, messages',
      'mpich-messages': 'MPICH, messages',
    };
    for (const [id, label] of Object.entries(peers)) {
      const measured = result.records.some(({ contender }) => contender === id);
      const waived = result.waivers.some(({ contender }) => contender === label);
      expect(measured !== waived, `${label} is either measured or waived`).toBe(true);
    }
  });

  test('keeps raw samples and judges every target', () => {
    for (const { seconds } of [...result.records, ...result.memory]) {
      expect(Math.min(...seconds)).toBeGreaterThan(0);
    }
    expect(result.targets).toHaveLength(37);
    for (const { value, detail } of result.targets) {
      if (value === null) expect(detail).toMatch(/^waived/);
    }
  });

  test('prints tables in Markdown', () => {
    expect(output).toMatch(/^### allReduce, float32 sum, 2 processes/m);
    expect(output).toMatch(/^\| --- \|/m);
  });
});

test('bad usage ends with 2 and tells the options', async () => {
  const failure = await run(process.execPath, [join(folder, 'run.js'), '--quik']).catch(
    (error: unknown) => error as { code: number; stderr: string },
  );
  expect(failure).toMatchObject({ code: 2 });
  expect(failure.stderr).toMatch(/--output FILE/);
});
