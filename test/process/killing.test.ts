// A job of which one process is killed, whichever it is and whenever: an error names it and nothing is left.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, describe, expect, it } from 'vitest';

import { flavours, mpirunOf } from '../support/mpi.js';
import { Scripts } from '../support/processes.js';

const gradlink = new URL('../../bench/gradlink.js', import.meta.url).pathname;
const workers = 2;
const servers = 2;
const kills = 50;
/** Under each MPI one of each: a worker, a server, the launcher, and one of MPI's own or ours between them. */
const killsUnderMpi = 4;

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

  constructor(script: string, how: readonly string[], env: Record<string, string>) {
    const size = ['-n', String(workers), '-s', String(servers)];
    this.launcher = spawn(process.execPath, [gradlink, 'launch', ...how, ...size, 'node', script], {
      env: { ...process.env, ...env, KILLING_TEST_MARKER: this.#marker },
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

  /** What stands between the launcher and the members: of MPI, and ours. */
  helpers(): Member[] {
    const members = new Set(this.members().map(({ pid }) => pid));
    return this.pids()
      .filter((pid) => pid !== this.launcher.pid && !members.has(pid))
      .map((pid) => ({ pid, name: `helper ${String(pid)}` }));
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

let scripts: Scripts | undefined;
const jobs: Job[] = [];
afterEach(async () => {
  // Only a test that failed leaves any.
  for (const job of jobs.splice(0)) for (const pid of job.pids()) process.kill(pid, 'SIGKILL');
  await scripts?.remove();
});

const complete = (job: Job) => () => job.members().length === workers + servers;

/** Nothing of a job may be left, whatever ended it; the time limit of the test is the net. */
async function expectNothingLeft(job: Job): Promise<void> {
  while (job.pids().length > 0) await sleep(1);
  expect(readdirSync('/dev/shm').filter((name) => name.includes('gradlink'))).toEqual([]);
}

/** How long it takes from the last process's start to the first round's end: kills come up to twice as late. */
async function spanOf(first: Job): Promise<number> {
  await first.until(complete(first));
  const began = performance.now();
  await first.until(() => first.stdout.split('under way').length > workers);
  return performance.now() - began;
}

describe('a job of workers and servers', () => {
  const starter = (how: readonly string[] = [], env: Record<string, string> = {}) => {
    scripts = new Scripts();
    const script = scripts.write(forever);
    return (): Job => {
      const job = new Job(script, how, env);
      jobs.push(job);
      return job;
    };
  };

  it(`survives none of ${String(kills)} kills of one of its processes at random, and leaves nothing`, async () => {
    const start = starter();
    const first = start();
    const span = await spanOf(first);
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
      // A killed launcher's watchdog ends what it left.
      await expectNothingLeft(job);
    }
    expect(killed.size).toBeGreaterThan(1);
  }, 900_000);

  it.for(flavours)(
    'under mpirun of %s, ends and leaves nothing whichever is killed',
    { timeout: 300_000 },
    async (flavour, context) => {
      mpirunOf(flavour, context);
      const start = starter(['--launcher', 'mpi'], { GRADLINK_MPI: flavour });
      const first = start();
      const span = await spanOf(first);
      for (let kill = 0; kill < killsUnderMpi; kill += 1) {
        const job = kill === 0 ? first : start();
        await job.until(complete(job));
        const launcher = { pid: job.launcher.pid ?? 0, name: 'launcher' };
        const members = job.members();
        const candidates = [
          members.filter(({ name }) => name.startsWith('rank')),
          members.filter(({ name }) => name.startsWith('server')),
          [launcher],
          job.helpers(),
        ][kill % 4]!;
        const victim = candidates[randomInt(candidates.length)]!;
        const moment = randomInt(Math.ceil(2 * span));
        await sleep(moment);
        process.kill(victim.pid, 'SIGKILL');
        const status = await job.ended;
        const what = `${victim.name} after ${String(moment)} ms: ${job.stderr}`;
        // Which of the processes an MPI names first is its affair: it ends the others at once.
        if (victim === launcher) expect(status, what).toBeNull();
        else expect(status, what).toBeGreaterThan(0);
        await expectNothingLeft(job);
      }
    },
  );
});
