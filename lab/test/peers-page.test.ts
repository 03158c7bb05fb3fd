// Peers of lab/peers that scripts build, made up and built, and the page of two machines.
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const folder = join(dirname(fileURLToPath(import.meta.url)), '../peers');
const load = (file: string) => import(pathToFileURL(join(folder, file)).href);

interface Row {
  readonly target: string;
  readonly reached: boolean | null;
}
interface Collected {
  readonly records: { contender: string; bytes: number; seconds: number[]; wrong: number }[];
  readonly waivers: { readonly contender: string }[];
}

describe('peers that scripts build', () => {
  let work: string;
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'gradlink-peers-built-'));
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  const script = (name: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
    run('bash', [join(folder, name), ...args], {
      env: { ...process.env, ...env },
      timeout: 230_000,
    });
  const measured = async (name: string, variable: string, program: string) => {
    const output = join(work, 'measured.json');
    const env = { ...process.env, [variable]: program };
    const args = ['--quick', '--case', name, '--output', output];
    await run(process.execPath, [join(folder, 'run.js'), ...args], { env, timeout: 200_000 });
    return JSON.parse(await readFile(output, 'utf8')) as Collected;
  };

  /** A program that writes down how it was started, and whose `printing` process prints a record. */
  const madeUp = async (started: string, printing: string, place: string) => {
    const program = join(work, 'made-up');
    const line = `{"bytes": 1048576, "place": "${place}", "wrong": 0, "seconds": [0.25]}`;
    await writeFile(
      program,
      `#!/bin/sh\necho "${started}" >> ${work}/started-${place}\n[ ${printing} ] && echo '${line}'\nexit 0\n`,
    );
    await chmod(program, 0o755);
    return program;
  };
  const startedAs = async (place: string) => {
    const lines = (await readFile(join(work, `started-${place}`), 'utf8')).trim().split('\n');
    return new Set(lines.map((line) => line.split(' ')[0]));
  };

  it('of ps-lite are a scheduler, a server and a worker, whose lines are records', async () => {
    const program = await madeUp('$DMLC_ROLE', '$DMLC_ROLE = worker', 'store');
    const { records, waivers } = await measured(
      'stores/ps-lite',
      'GRADLINK_PEERS_PS_LITE',
      program,
    );
    expect(waivers).toEqual([]);
    expect(records).toMatchObject([{ contender: 'ps-lite', bytes: 2 ** 20, seconds: [0.25] }]);
    expect(await startedAs('store')).toEqual(new Set(['scheduler', 'server', 'worker']));
  });

  it('of vLLM are ranks of one thread each, under a name of their own', async () => {
    const program = await madeUp('$RANK/$WORLD_SIZE/$OMP_NUM_THREADS', '$RANK = 0', 'in');
    const { records, waivers } = await measured('processes-2/vllm', 'GRADLINK_PEERS_VLLM', program);
    expect(waivers).toEqual([]);
    expect(records).toMatchObject([{ contender: 'vllm', bytes: 2 ** 20, seconds: [0.25] }]);
    expect(await startedAs('in')).toEqual(new Set(['0/2/1', '1/2/1']));
  });

  it('of ps-lite is built from its sources, and gives back what was pushed', async (context) => {
    const sources = process.env.GRADLINK_PS_LITE_SOURCES ?? '';
    if (sources === '') context.skip('GRADLINK_PS_LITE_SOURCES names no checkout of dmlc/ps-lite');
    const program = join(work, 'built', 'ps_lite');
    const { stdout } = await script('build-ps-lite.sh', [program]);
    expect(stdout).toBe(`GRADLINK_PEERS_PS_LITE=${program}\n`);
    const { records, waivers } = await measured(
      'stores/ps-lite',
      'GRADLINK_PEERS_PS_LITE',
      program,
    );
    expect(waivers).toEqual([]);
    expect(records.map(({ bytes }) => bytes)).toEqual([65536, 2 ** 20]);
    expect(records).toMatchObject([{ wrong: 0 }, { wrong: 0 }]);
  });

  it.each([
    ['build-ps-lite.sh', [], /\bPROGRAM$/m],
    ['build-ps-lite.sh', ['out'], /src\/van\.cc of github\.com\/dmlc\/ps-lite/],
    ['build-openmpi.sh', [], /\bfolder to\b/],
    ['build-openmpi.sh', ['out'], /ompi\/mca\/coll\/xhc /],
    ['build-shm.sh', [], /\bPROGRAM$/m],
    ['build-shm.sh', ['out'], /\(DeepSpeed\).*\(sglang\).*\(vLLM\)/],
    ['build-ucc.sh', [], /\bfolder to\b/],
    ['build-ucc.sh', ['out'], /ucc\.h of github\.com\/openucx\/ucc/],
  ])('%s %j says what was expected', async (name, args, message) => {
    const variables = ['PS_LITE', 'OPENMPI', 'SHM', 'UCC'].map(
      (peer) => `GRADLINK_${peer}_SOURCES`,
    );
    const env = Object.fromEntries(variables.map((variable) => [variable, work]));
    await expect(script(name, args, env)).rejects.toMatchObject({
      stderr: expect.stringMatching(message) as string,
    });
  });
});

describe('two machines', () => {
  it('are shown by page.js, from files that are runs', async () => {
    const work = await mkdtemp(join(tmpdir(), 'gradlink-peers-page-'));
    try {
      const fileOf = async (name: string, content: object) => {
        await writeFile(join(work, name), JSON.stringify(content));
        return join(work, name);
      };
      const empty = { records: [], memory: [], overhead: {}, store: {}, tuned: [], waivers: [] };
      const mine = { ...empty, schema: 'gradlink-peers/2', environment: { cpuModel: 'mine' } };
      const other = { ...mine, environment: { cpuModel: 'other' }, finished: false, minutes: 7 };
      const files = [await fileOf('a.json', mine), await fileOf('b.json', other)];
      const { stdout } = await run(process.execPath, [join(folder, 'page.js'), ...files]);
      expect(stdout).toMatch(/^ {2}A {2}mine, /m);
      expect(stdout).toMatch(/^ {2}B {2}other, .*NOT FINISHED .*7 minutes/m);
      const old = await fileOf('old.json', { schema: 'gradlink-peers/1' });
      await expect(run(process.execPath, [join(folder, 'page.js'), old])).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/schema gradlink-peers\/2 .*old\.json/) as string,
      });
    } finally {
      await rm(work, { recursive: true });
    }
  });

  it('reach a target together, or not', async () => {
    const { evaluateAll } = (await load('machines.js')) as {
      evaluateAll: (runs: object[]) => Row[];
    };
    const { tablesOf } = (await load('tables.js')) as {
      tablesOf: (runs: object[], format: string) => string;
    };
    const of = (theirs: number) => ({
      records: ['gradlink-plain', 'openmpi'].map((contender, i) => ({
        contender,
        ranks: 2,
        bytes: 8,
        place: 'in',
        wrong: 0,
        seconds: [i === 0 ? 1e-6 : theirs * 1e-6],
      })),
      memory: [],
      overhead: {},
      store: {},
      tuned: [],
      waivers: [],
      pattern: 'processes',
      environment: { cpuModel: `processor ${theirs}`, availableCores: 2 },
    });
    const reached = (...runs: object[]) =>
      evaluateAll(runs).find(({ target }) => target.includes('2 processes, 8 bytes'))?.reached;
    expect(reached(of(3), of(2))).toBe(true);
    expect(reached(of(3), of(1.9))).toBe(false);
    expect(reached(of(3), { ...of(2), records: [] })).toBeNull();
    expect(reached(of(1), { ...of(2), records: [] })).toBe(false);

    const page = tablesOf([of(3), of(1.9)], 'markdown');
    expect(page).toMatch(/^\| A \| processor 3, 2 cores/m);
    expect(page).toMatch(
      /^\| size \| place \| gradlink, A \| gradlink, B \| Open MPI \/ ours, A \| Open MPI \/ ours, B \|$/m,
    );
    expect(page).toMatch(/^\| 8 B \| in place \| 1\.00 us \| 1\.00 us \| 3\.00 \| 1\.90 \|$/m);
    expect(page).toMatch(/\| at least 2 \| 3\.00 \| 1\.90 \| NOT reached \|/);
  });
});
