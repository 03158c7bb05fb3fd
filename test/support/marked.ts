// Processes that a test started and those that these started: found by a variable, so that none can be left unseen.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { expect } from 'vitest';

export const gradlink = new URL('../../bench/gradlink.js', import.meta.url).pathname;

/** A process of the job, by the launcher's name for it: `rank 0` of a worker, `server 1`. */
export interface Member {
  readonly pid: number;
  readonly name: string;
}

/** All that bears one mark, with a TMPDIR of its own. */
export class Marked {
  readonly temporary = mkdtempSync(join(tmpdir(), 'gradlink-marked-'));
  readonly env: Readonly<Record<string, string>>;
  readonly #marker = randomUUID();

  constructor() {
    this.env = { TMPDIR: this.temporary, GRADLINK_TEST_MARKER: this.#marker };
  }

  /** All processes that bear it. */
  pids(): number[] {
    return this.#environments().map(([pid]) => pid);
  }

  /** The processes of the job itself. */
  members(): Member[] {
    const roles = new Map(
      this.#environments().map(([pid, environment]) => [pid, placeIn(environment)]),
    );
    return [...roles].flatMap(([pid, name]) => {
      // What a process of the job starts has its variables, too.
      const parent = parentOf(pid);
      if (name === undefined || (parent !== undefined && roles.get(parent) !== undefined))
        return [];
      return [{ pid, name }];
    });
  }

  /** Nothing may be left, whatever ended it; the time limit of the test is the net. */
  async expectNothingLeft(): Promise<void> {
    while (this.pids().length > 0) await sleep(1);
    expect(readdirSync('/dev/shm').filter((name) => name.includes('gradlink'))).toEqual([]);
    expect(readdirSync(this.temporary)).toEqual([]);
  }

  /** What a test that failed has left. */
  remove(): void {
    for (const pid of this.pids()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended by itself.
      }
    }
    rmSync(this.temporary, { recursive: true, force: true });
  }

  #environments(): [pid: number, environment: string[]][] {
    return readdirSync('/proc').flatMap((name): [number, string[]][] => {
      if (!/^\d+$/.test(name)) return [];
      try {
        const environment = readFileSync(`/proc/${name}/environ`, 'latin1').split('\0');
        const ours = environment.includes(`GRADLINK_TEST_MARKER=${this.#marker}`);
        return ours ? [[Number(name), environment]] : [];
      } catch {
        return [];
      }
    });
  }
}

/** `rank 0` or `server 1`, where the environment tells of one. */
function placeIn(environment: readonly string[]): string | undefined {
  const value = (name: string): string | undefined =>
    environment.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  const role = value('GRADLINK_ROLE');
  if (role === undefined) return undefined;
  if (role === 'server') return `server ${value('GRADLINK_SERVER_RANK') ?? ''}`;
  const names = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK', 'GRADLINK_RANK'];
  return `rank ${names.map(value).find((one) => one !== undefined) ?? ''}`;
}

function parentOf(pid: number): number | undefined {
  try {
    const fields = readFileSync(`/proc/${String(pid)}/stat`, 'latin1')
      .split(') ')
      .at(-1);
    return Number(fields?.split(' ')[1]);
  } catch {
    return undefined;
  }
}

/** `gradlink launch`, with all that it brings forth. */
export class LaunchedJob extends Marked {
  readonly launcher: ChildProcess;
  readonly ended: Promise<number | null>;
  stdout = '';
  stderr = '';

  /** @param args behind `gradlink launch` */
  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    super();
    this.launcher = spawn(process.execPath, [gradlink, 'launch', ...args], {
      env: { ...process.env, ...env, ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.launcher.stdout?.on('data', (chunk) => (this.stdout += String(chunk)));
    this.launcher.stderr?.on('data', (chunk) => (this.stderr += String(chunk)));
    this.ended = new Promise((resolve) => this.launcher.on('close', resolve));
  }

  get self(): Member {
    return { pid: this.launcher.pid ?? 0, name: 'launcher' };
  }

  /** What stands between the launcher and the members: of MPI, and ours. */
  helpers(): Member[] {
    const members = new Set(this.members().map(({ pid }) => pid));
    return this.pids()
      .filter((pid) => pid !== this.launcher.pid && !members.has(pid))
      .map((pid) => ({ pid, name: `helper ${String(pid)}` }));
  }

  /** Until the condition holds; an ended job meets none any more. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.launcher.exitCode !== null || this.launcher.signalCode !== null) {
        throw new Error(`the job ended by itself: ${this.stdout}${this.stderr}`);
      }
      await sleep(1);
    }
  }
}
