// Runs pieces of JavaScript as Node processes, to prove how they end.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const library = join(import.meta.dirname, '../../dist/index.js');

/** Only a net for a hang: what a test asserts is how a process ended, never how long it took. */
const patienceMs = 90_000;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What the script gave to `report()`, in order. */
  readonly reports: readonly unknown[];
}

export interface Running {
  readonly child: ChildProcess;
  /** Resolves once the script has printed this line by itself. */
  said(line: string): Promise<void>;
  /** What it has printed so far. */
  printed(): string;
  /** Resolves when it has ended; rejects when the net had to catch it. */
  readonly ended: Promise<Ended>;
}

/** In every script: the library, `report(value)` for one JSON line, `say(line)`, and an error as plain data. */
function prelude(): string {
  return `
    import {
      Communicator, DeviceBuffer, GradlinkError, KVStore, gpuDevices, pinnedArray,
    } from ${JSON.stringify(pathToFileURL(library).href)};
    import {
      exponentialTwoGraph, onePeerSchedule, ringGraph, uniformWeights,
    } from ${JSON.stringify(new URL('topology.js', pathToFileURL(library)).href)};
    import { writeSync } from 'node:fs';
    const say = (line) => writeSync(1, line + '\\n');
    const report = (value) => say('report ' + JSON.stringify(value ?? null));
    const plain = (error) => ({ code: error.code, rank: error.rank, op: error.op, message: error.message });
    const outcome = (promise) => promise.then(() => 'done', plain);
  `;
}

/** A place for the scripts of each test, given back with `remove` after it. */
export class Scripts {
  #folder: string | undefined;
  readonly #running = new Set<Running>();
  #count = 0;

  constructor() {
    if (!existsSync(library))
      throw new Error(`${library} is missing: run "npm run build:ts" first`);
  }

  /** Writes an ES module; its path. A worker thread's script is one too. */
  write(source: string): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), 'gradlink-test-'));
    const path = join(this.#folder, `script-${this.#count++}.mjs`);
    writeFileSync(path, prelude() + source);
    return path;
  }

  start(source: string, env: Record<string, string> = {}): Running {
    return this.startUnder([], source, env);
  }

  /** Starts the script through another command, which gets Node's command line as its last arguments. */
  startUnder(
    launcher: readonly string[],
    source: string,
    env: Record<string, string> = {},
  ): Running {
    const [program, ...args] = launcher;
    const own = [this.write(source)];
    const child = spawn(
      program ?? process.execPath,
      program ? [...args, process.execPath, ...own] : own,
      {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const running = watch(child);
    this.#running.add(running);
    return running;
  }

  /** Starts the script as each rank of a job of its own. */
  startRanks(size: number, source: string, env: Record<string, string> = {}): Running[] {
    const job = `test-${process.pid}-${this.#count}`;
    return Array.from({ length: size }, (_, rank) =>
      this.start(source, {
        GRADLINK_JOB: job,
        GRADLINK_RANK: String(rank),
        GRADLINK_SIZE: String(size),
        ...env,
      }),
    );
  }

  run(source: string, env?: Record<string, string>): Promise<Ended> {
    return this.start(source, env).ended;
  }

  runRanks(size: number, source: string): Promise<Ended[]> {
    return Promise.all(this.startRanks(size, source).map((one) => one.ended));
  }

  /** Ends what still runs and removes the scripts. */
  async remove(): Promise<void> {
    for (const { child } of this.#running) child.kill('SIGKILL');
    await Promise.allSettled([...this.#running].map((one) => one.ended));
    this.#running.clear();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }
}

/** What a sanitizer found in a process: its report, the summary first, because a list of failures shows the first lines. */
function findingIn(stderr: string): string | undefined {
  const start = stderr.search(/(WARNING|ERROR): \w+Sanitizer|runtime error: /);
  if (start < 0) return undefined;
  const summary = /^SUMMARY: .*$/m.exec(stderr)?.[0] ?? 'a finding without a summary';
  return `${summary}\n${stderr.slice(start)}`;
}

/** What scripts gave to `report()`, of what they printed. */
export const reportsIn = (stdout: string): unknown[] =>
  [...stdout.matchAll(/^report (.*)$/gm)].map(([, json]) => JSON.parse(json!) as unknown);

function watch(child: ChildProcess): Running {
  let stdout = '';
  let stderr = '';
  const lines = new Set<string>();
  const waiting: { line: string; resolve: () => void; reject: (error: Error) => void }[] = [];
  const tell = () =>
    waiting.filter(({ line }) => lines.has(line)).forEach(({ resolve }) => resolve());
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    stdout.split('\n').forEach((line) => lines.add(line));
    tell();
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    const net = setTimeout(() => {
      child.kill('SIGKILL');
      reject(
        new Error(`did not end within ${patienceMs} ms\nstdout: ${stdout}\nstderr: ${stderr}`),
      );
    }, patienceMs);
    child.on('close', (code, signal) => {
      clearTimeout(net);
      const reports = reportsIn(stdout);
      const finding = findingIn(stderr);
      if (finding !== undefined) reject(new Error(finding));
      resolve({ code, signal, stdout, stderr, reports });
      const error = new Error(
        `ended (${code ?? signal}) before it said so\nstdout: ${stdout}\nstderr: ${stderr}`,
      );
      waiting.forEach(({ reject: fail }) => fail(error));
    });
  });
  // Whoever awaits it sees the rejection; a test that has failed before must not fail twice.
  ended.catch(() => undefined);
  return {
    child,
    ended,
    printed: () => stdout,
    said: (line) =>
      new Promise((resolve, reject) => {
        waiting.push({ line, resolve, reject });
        tell();
      }),
  };
}

/** What a script that went well leaves. */
export const well = { code: 0, signal: null, stderr: '' } as const;
