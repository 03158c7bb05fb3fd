// Runs `gradlink launch` in tests, and finds what a job has left behind.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { parseReport } from '../../lib/results/read-report.js';

export const gradlink = new URL('../../bench/gradlink.js', import.meta.url).pathname;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export interface Where {
  readonly env?: Readonly<Record<string, string>>;
  /** Runs the launcher, `ip netns exec NAME` for example. */
  readonly before?: readonly string[];
  readonly cwd?: string;
}

/** Waits for a condition, not for a time; the limit only catches a hang. */
export async function until(condition: () => boolean): Promise<void> {
  const giveUp = Date.now() + 60_000;
  while (!condition()) {
    await sleep(10);
    if (Date.now() > giveUp) throw new Error(`waited in vain for ${condition.toString()}`);
  }
}

/** Live processes whose environment holds the text. */
export function bearers(text: string, except: readonly (number | undefined)[] = []): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && !except.includes(Number(name)))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1').includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** What a process has started and not yet reaped. */
export const childrenOf = ({ pid }: { readonly pid?: number | undefined }): number[] =>
  readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8')
    .split(' ')
    .filter((one) => one !== '')
    .map(Number);

/** A folder for the files of a test, and the launchers it started. */
export class Launches {
  #scratch: string | undefined;
  readonly #launchers: ChildProcess[] = [];

  /** Made when it is first used: nobody removes that of a file whose tests are all left out. */
  get scratch(): string {
    return (this.#scratch ??= mkdtempSync(join(tmpdir(), 'gradlink-launch-')));
  }

  start(args: readonly string[], { env = {}, before = [], cwd }: Where = {}): Started {
    const [program = '', ...rest] = [...before, process.execPath, gradlink, 'launch', ...args];
    const child = spawn(program, rest, {
      env: { ...process.env, ...env },
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#launchers.push(child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => (stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (stderr += String(chunk)));
    const ended = new Promise<Ended>((resolve) => {
      child.on('close', (code, signal) => {
        resolve({ code, signal, stdout, stderr });
      });
    });
    return { child, ended };
  }

  run(args: readonly string[], where?: Where): Promise<Ended> {
    return this.start(args, where).ended;
  }

  /** A path that nothing is at yet; `existsSync` of it tells that a rank has come so far. */
  mark(name: string): string {
    return join(mkdtempSync(join(this.scratch, 'mark-')), name);
  }

  /** Ends what a failed test left and removes the folder. */
  async remove(): Promise<void> {
    for (const launcher of this.#launchers) {
      if (launcher.exitCode === null && launcher.signalCode === null) launcher.kill();
    }
    await Promise.all(
      this.#launchers
        .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
        .map((launcher) => new Promise((resolve) => launcher.once('exit', resolve))),
    );
    if (this.#scratch !== undefined) rmSync(this.#scratch, { recursive: true, force: true });
  }
}

/** Ranks 0 to count - 1 have each made MARK0, MARK1 …. */
export async function marked(mark: string, count: number): Promise<void> {
  await until(() =>
    Array.from({ length: count }, (_, rank) => existsSync(`${mark}${String(rank)}`)).every(Boolean),
  );
}

/** A worker that pushes its rank + 1 to a store of servers and prints its rank, the sum, and how many workers there are. */
export function storeProgram(folder: string): string {
  const library = new URL('../../dist/index.js', import.meta.url).href;
  const path = join(folder, 'store.mjs');
  writeFileSync(
    path,
    `import { KVStore } from ${JSON.stringify(library)};
     const kv = await KVStore.create('dist_sync');
     const out = new Float32Array(8);
     await kv.init('w', new Float32Array(8));
     await kv.push('w', new Float32Array(8).fill(kv.rank + 1));
     await kv.pull('w', out);
     console.log(kv.rank, out[0], kv.numWorkers);
     await kv.close();`,
  );
  return path;
}

/**
 * Runs a job that reports, with variables that only its processes are to know, and looks for these and for the job's
 * secret in all that it writes.
 *
 * @param args of the launcher, before the numbers of processes
 * @returns which text has which of them; and the names of the variables that rank 0's report shows
 */
export async function leaksOf(
  launches: Launches,
  args: readonly string[],
  where?: Where,
): Promise<{ readonly code: number | null; readonly leaks: string[]; readonly shown: string[] }> {
  const secret = launches.mark('secret');
  const folder = join(mkdtempSync(join(launches.scratch, 'leaks-')), 'logs');
  const told = (name: string): string[] => [name, `value-of-${name}`];
  const variables = ['GRADLINK_TOKEN', 'NCCL_TOKEN', 'WORKER_TOKEN', 'SERVER_TOKEN'].map(told);
  const given = variables.flatMap(([name = '', value = '']) => {
    const role = /^(WORKER|SERVER)/.exec(name)?.[0].toLowerCase();
    return [role === undefined ? '--env' : `--env-${role}`, `${name}=${value}`];
  });
  const script = `echo $GRADLINK_JOB > ${secret}; exec "$@"`;
  const report = ['collectives', 'all_reduce', '-b', '1K', '-e', '1K', '--json'];
  const { code, stdout, stderr } = await launches.run(
    [
      ...[...args, '-n', '2', ...given, '--output-dir', folder],
      ...['sh', '-c', script, 'sh', process.execPath, gradlink, ...report],
    ],
    where,
  );
  const texts = { stdout, stderr } as Record<string, string>;
  for (const name of readdirSync(folder)) texts[name] = readFileSync(join(folder, name), 'utf8');
  const hidden = [...variables, ['GRADLINK_JOB', readFileSync(secret, 'utf8').trim()]];
  const leaks = Object.entries(texts).flatMap(([text, content]) =>
    hidden
      .filter(([, value = '']) => value !== '' && content.includes(value))
      .map(([name]) => `${name!} in ${text}`),
  );
  const shown = Object.keys(parseReport(stdout, 'stdout').environment.variables);
  return { code, leaks, shown };
}

/**
 * Why the tests of a program cannot run here, or undefined where they can. On Debian as root nothing is missing:
 * scripts/test.sh installs it.
 */
export function missing(programs: readonly string[], needsRoot = false): string | undefined {
  const folders = (process.env.PATH ?? '').split(':').concat('/usr/sbin', '/sbin');
  const absent = programs.filter((name) => !folders.some((each) => existsSync(join(each, name))));
  if (absent.length > 0) return `not installed: ${absent.join(', ')}`;
  return needsRoot && process.getuid?.() !== 0 ? 'needs root' : undefined;
}
