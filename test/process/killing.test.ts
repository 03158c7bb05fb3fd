// A job of which one process is killed, whichever it is and whenever: an error names it and nothing is left.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { Scripts } from '../support/processes.js';

const gradlink = new URL('../../bench/gradlink.js', import.meta.url).pathname;
const workers = 2;
const servers = 2;
const kills = 50;

/** Pushes and pulls for ever: one key on one server, one cut over both. */
const forever = `
  const kv = await KVStore.create('dist_sync', { devices: 1 });
  const values = { small: new Float32Array(1000).fill(1), large: new Float32Array(1_500_000).fill(1) };
  for (const [key, value] of Object.entries(values)) await kv.init(key, value);
  for (let round = 0; ; round += 1) {
    await Promise.all(Object.entries(values).map(([key, value]) => kv.pushPull(key, [value], [value])));
    for (const value of Object.values(values)) value.fill(1);
    if (round === 0) say('under way');
  }
`;

/** A process of the job, by the launcher's name for it: `rank 0` of a worker, `server 1`. */
interface Member {
  readonly pid: number;
  readonly name: string;
}

class Job {
  readonly launcher: ChildProcess;
  readonly ended: Promise<number | null>;
  stdout = '';
  stderr = '';
  readonly #marker = randomUUID();

  constructor(script: string) {
    const size = ['-n', String(workers), '-s', String(servers)];
    this.launcher = spawn(process.execPath, [gradlink, 'launch', ...size, 'node', script], {
      env: { ...process.env, KILLING_TEST_MARKER: this.#marker },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.launcher.stdout?.on('data', (chunk) => (this.stdout += String(chunk)));
    this.launcher.stderr?.on('data', (chunk) => (this.stderr += String(chunk)));
    this.ended = new Promise((resolve) => this.launcher.on('close', resolve));
  }

  /** All processes that the job has brought forth, the launcher and its helpers included. */
  pids(): number[] {
    return this.#environments().map(([pid]) => pid);
  }

  members(): Member[] {
    return this.#environments().flatMap(([pid, environment]) => {
      const value = (name: string): string | undefined =>
        environment.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
      const role = value('GRADLINK_ROLE');
      const rank = role === 'server' ? value('GRADLINK_SERVER_RANK') : value('GRADLINK_RANK');
      // The launcher's children are the job's processes; what these start is none.
      if (role === undefined || parentOf(pid) !== this.launcher.pid) return [];
      return [{ pid, name: `${role === 'server' ? role : 'rank'} ${rank ?? ''}` }];
    });
  }

  #environments(): [pid: number, environment: string[]][] {
    return readdirSync('/proc').flatMap((name): [number, string[]][] => {
      if (!/^\d+$/.test(name)) return [];
      try {
        const environment = readFileSync(`/proc/${name}/environ`, 'latin1').split('\0');
        const ours = environment.includes(`KILLING_TEST_MARKER=${this.#marker}`);
        return ours ? [[Number(name), environment]] : [];
      } catch {
        return [];
      }
    });
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

let scripts: Scripts | undefined;
const jobs: Job[] = [];
afterEach(async () => {
  // Only a test that failed leaves any.
  for (const job of jobs.splice(0)) for (const pid of job.pids()) process.kill(pid, 'SIGKILL');
  await scripts?.remove();
});

describe('a job of workers and servers', () => {
  it(`survives none of ${String(kills)} kills of one of its processes at random, and leaves nothing`, async () => {
    scripts = new Scripts();
    const script = scripts.write(forever);
    const start = (): Job => {
      const job = new Job(script);
      jobs.push(job);
      return job;
    };
    const complete = (job: Job) => () => job.members().length === workers + servers;

    // How long it takes from the last process's start to the first round's end: kills come up to twice as late.
    const first = start();
    await first.until(complete(first));
    const began = performance.now();
    await first.until(() => first.stdout.split('under way').length > workers);
    const span = performance.now() - began;

    const killed = new Set<string>();
    for (let kill = 0; kill < kills; kill += 1) {
      const job = kill === 0 ? first : start();
      await job.until(complete(job));
      const candidates = [...job.members(), { pid: job.launcher.pid ?? 0, name: 'launcher' }];
      const victim = candidates[randomInt(candidates.length)];
      if (victim === undefined) throw new Error('a job has processes');
      const moment = randomInt(Math.ceil(2 * span));
      await sleep(moment);
      const what = `${victim.name} after ${String(moment)} ms`;
      killed.add(victim.name);
      process.kill(victim.pid, 'SIGKILL');
      const status = await job.ended;
      if (victim.name === 'launcher') {
        expect(status, what).toBeNull();
      } else {
        expect(status, `${what}: ${job.stderr}`).toBeGreaterThan(0);
        expect(job.stderr, what).toMatch(new RegExp(`${victim.name}\\b.* was killed by SIGKILL`));
      }
      // A killed launcher's watchdog ends what it left; the time limit of the test is the net.
      while (job.pids().length > 0) await sleep(1);
      expect(readdirSync('/dev/shm').filter((name) => name.includes('gradlink'))).toEqual([]);
    }
    expect(killed.size).toBeGreaterThan(1);
  }, 900_000);
});
