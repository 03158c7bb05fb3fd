// Processes that do not know a job's secret, against what they can reach of it while it runs: the launcher's port, the
// lines of its keepers, and the place where its ranks meet. The job ends as if nobody had been there.
import { execFileSync, spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { readJob } from '../../lib/communicator/joining/job.js';
import { frameTypes } from '../../lib/launch/frames.js';
import { Line } from '../../lib/launch/line.js';
import { manners } from '../../lib/launch/members.js';
import { closed, connectTo, Launcher, ManInTheMiddle } from '../support/control-lines.js';
import { Launches, marked, missing, until } from '../support/launching.js';
import { Scripts, well } from '../support/processes.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import type { Counts } from './support/campaign.js';
import { standInMpirun } from './support/mpirun-stand-in.js';
import type { Random } from './support/random.js';
import { altered, crowd, kilobytes, stranger } from './support/strangers.js';

let launches: Launches;
let scripts: Scripts;
beforeAll(() => {
  launches = new Launches();
  scripts = new Scripts();
});
afterAll(async () => {
  await launches.remove();
  await scripts.remove();
});

const headBytes = 5;
const types = 10;
const mebibyte = 2 ** 20;

function head(length: number, type: number): Buffer {
  const bytes = Buffer.alloc(headBytes);
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt8(type, headBytes - 1);
  return bytes;
}

/** What one stranger says, given the frames that a keeper was heard to send. */
const sayings: readonly ((random: Random, heard: readonly Buffer[]) => readonly Buffer[])[] = [
  (random) => [Buffer.from(random.bytes(random.int(3000)))],
  // Frames of each type with any seal.
  (random) => [
    Buffer.concat([head(40, random.int(types)), Buffer.from(random.bytes(40 + 32))]),
    Buffer.from(random.bytes(100)),
  ],
  // Cut in the middle of a head, or of a payload.
  (random) => [head(200, 1).subarray(0, 1 + random.int(4))],
  (random) => [head(200, 1), Buffer.from(random.bytes(random.int(200)))],
  // Too long: said to be, and being it.
  (random) => [head(2 ** 32 - 1 - random.int(9), random.int(types)), Buffer.alloc(mebibyte)],
  () => [head(4 * mebibyte - 1, 1), ...Array<Buffer>(4).fill(Buffer.alloc(mebibyte - 1))],
  // What a keeper said, as it was or a bit of it altered.
  (_, heard) => heard,
  (random, heard) => heard.map((frame) => altered(random, frame)),
];

it(
  'at the port of a launcher change nothing for its job',
  async () => {
    const connections = 200;
    await campaign('strangers at the launcher', 2, async (random): Promise<Counts> => {
      const folder = mkdtempSync(join(launches.scratch, 'job-'));
      const mark = join(folder, 'there');
      const script = `echo here $PMI_RANK; touch ${mark}$PMI_RANK; until [ -e ${folder}/go ]; do sleep 0.05; done; echo done $PMI_RANK`;
      const { child, ended } = launches.start(
        ['-n', '2', '--launcher', 'mpi', '--mpirun', standInMpirun(folder), 'sh', '-c', script],
        { env: { GRADLINK_MPI: '' } },
      );
      await until(() => existsSync(join(folder, 'launcher')));
      const address = readFileSync(join(folder, 'launcher'), 'utf8');
      const port = Number(address.split(':').at(-1));
      // Between one keeper and the launcher, and silent about it.
      const heard: Buffer[] = [];
      const man = await ManInTheMiddle.open(port, (frame, from) => {
        if (from === 'keeper') heard.push(Buffer.from(frame));
        return { on: [frame] };
      });
      try {
        writeFileSync(join(folder, 'new'), String(man.port));
        renameSync(join(folder, 'new'), join(folder, 'through'));
        await marked(mark, 2);
        await until(() => heard.length >= 2);
        const before = kilobytes(child.pid, 'VmRSS');
        const first = heard.slice(0, 2);
        const sockets = Array.from({ length: connections }, () =>
          stranger(random, port, random.pick(sayings)(random, first)),
        );
        // Of those that stay, the launcher hangs up on all but so many; one that is new is served.
        const probe = connectTo(port);
        await new Promise((resolve) => probe.once('data', resolve));
        probe.destroy();
        const ratio = kilobytes(child.pid, 'VmHWM') / before;
        writeFileSync(join(folder, 'go'), '');
        const { code, stdout, stderr } = await ended;
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        expect(stdout.trimEnd().split('\n').sort()).toEqual([
          'done 0',
          'done 1',
          'here 0',
          'here 1',
        ]);
        // What strangers could make it hold before was 4 MiB each.
        expect(ratio).toBeLessThan(2);
        await Promise.all(sockets.map(closed));
        return { connections };
      } finally {
        man.close();
      }
    });
  },
  campaignTimeout,
);

it(
  'on the line of a keeper end it, and nothing that they said is taken for true',
  async () => {
    const frames = 30;
    await campaign('tampered lines', 60, async (random): Promise<Counts> => {
      const launcher = await Launcher.open(1);
      const target = 1 + random.int(frames);
      const past: Buffer[] = [];
      let tampered = 0;
      const man = await ManInTheMiddle.open(launcher.port, (frame, from, number) => {
        if (from === 'launcher') {
          past.push(frame);
          return { on: [frame] };
        }
        if (number !== target) {
          past.push(frame);
          return { on: [frame] };
        }
        tampered += 1;
        const altered = Buffer.from(frame);
        // Not the length: a longer one is waited for, as a frame that is on its way.
        const at = 4 + random.int(altered.length - 4);
        altered[at] = (altered[at] ?? 0) ^ (1 + random.int(255));
        const old = random.pick(past);
        return { on: random.pick([[altered], [old], [frame, frame], [frame, old], [old, frame]]) };
      });
      try {
        const keeper = await launcher.keeper(0, man.port);
        const line = (i: number) => `${String(i)} ${'x'.repeat(i * 7)}\n`;
        for (let i = 0; i < frames; ++i) keeper.line.write('stdout', Buffer.from(line(i)));
        keeper.line.write('exit', { exitCode: 0, what: 'exited with status 0', manner: 'exited' });
        await launcher.until(() => launcher.endings.length > 0);
        const [ending] = launcher.endings;
        expect(ending).toMatchObject({ manner: 'lost' });
        expect(ending?.what).toContain('not authentic');
        const whole = Array.from({ length: frames }, (_, i) => line(i)).join('');
        expect(whole.startsWith(launcher.stdout)).toBe(true);
        return { frames: frames + 1, tampered };
      } finally {
        man.close();
        launcher.control.close();
      }
    });
  },
  campaignTimeout,
);

/** Values that no field of a frame has, and some that it has. */
const fields: readonly ((random: Random) => unknown)[] = [
  () => null,
  () => ({ toString: 1, valueOf: 1 }),
  (random) => random.pick([-1, 0, 1, 3.5, 256, 2 ** 53, 1e300]),
  (random) => random.pick(['', 'exited', 'lost', '\u001b[2J\n', 'x'.repeat(100_000)]),
  (random) => Array<unknown>(random.int(9)).fill([]),
];
const names = ['exitCode', 'what', 'manner', 'pid', 'host', '__proto__'];

function payload(random: Random): Buffer {
  if (random.chance(0.3)) return Buffer.from(random.bytes(random.int(300)));
  const pairs = names.map((name): [string, unknown] => [name, random.pick(fields)(random)]);
  pairs.push(['place', random.pick([2, 3, -1, 1e300, '1', null])]);
  const text = JSON.stringify(Object.fromEntries(pairs.filter(() => random.chance(0.7))));
  return Buffer.from(random.chance(0.1) ? text.slice(0, random.int(text.length)) : text);
}

it(
  'that know the secret and say anything end as processes do, and disturb no other',
  async () => {
    const said = frameTypes.filter((type) => type !== 'challenge' && type !== 'stdout');
    await campaign('keepers that say anything', 100, async (random): Promise<Counts> => {
      const launcher = await Launcher.open(3);
      try {
        // One that says anything from its first word on, and one that has been welcomed.
        const wild = connectTo(launcher.port);
        Line.answer(wild, launcher.secret, payload(random), () => undefined);
        const [odd, well] = await Promise.all([launcher.keeper(0), launcher.keeper(1)]);
        let frames = 0;
        for (; frames < 50 && !odd.socket.destroyed; ++frames) {
          odd.line.write(random.pick(said), payload(random));
        }
        odd.socket.end();
        well.line.write('stdout', Buffer.from('well'));
        well.line.write('exit', { exitCode: 0, what: 'ended', manner: 'exited', pid: 7 });
        await launcher.until(() => launcher.endings.length >= 2);
        expect(launcher.stdout).toBe('well');
        for (const { exitCode, what, manner, member } of launcher.endings) {
          expect(exitCode).toBeOneOf(Array.from({ length: 256 }, (_, code) => code));
          expect(typeof what).toBe('string');
          expect(manner).toBeOneOf([...manners]);
          if (member.index === 1)
            expect({ exitCode, what }).toEqual({ exitCode: 0, what: 'ended' });
        }
        return { frames };
      } finally {
        launcher.control.close();
      }
    });
  },
  campaignTimeout,
);

/** Where the ranks of a job's world may meet, as the list of sockets shows it to everybody. */
function addressOf(env: Record<string, string>, number: number): string {
  const job = readJob(env)?.job ?? '';
  const parts = ['gradlink meeting', 'world', String(number)].map(
    (part) => `${String(part.length)}:${part}`,
  );
  const name = createHmac('sha256', job).update(parts.join('')).digest('hex');
  return `gradlink/${String(process.getuid?.())}/${name}`;
}

const nobody = 65534;

/** A program of `support`, which another user can run too. */
function compiled(name: string): string {
  const program = join(launches.scratch, name);
  const source = new URL(`support/${name}.c`, import.meta.url).pathname;
  execFileSync('cc', ['-O1', '-o', program, source]);
  execFileSync('chmod', ['-R', 'go+rX', launches.scratch]);
  return program;
}

it.for([
  ['of the same user', process.getuid?.() ?? 0, missing(['cc'])],
  ['of another user', nobody, missing(['cc'], true)],
] as const)(
  '%s at a meeting are no ranks of it',
  { timeout: campaignTimeout },
  async ([who, user, reason], { skip }) => {
    if (reason !== undefined) skip(reason);
    const program = compiled('stranger');
    const enough = 1000;
    await campaign(`strangers ${who} at a meeting`, 2, async (random): Promise<Counts> => {
      const job = randomBytes(16).toString('hex');
      const place = { GRADLINK_JOB: job, GRADLINK_SIZE: '3' };
      const rank = (number: number) =>
        scripts.start(
          `const comm = await Communicator.world({ timeoutMs: 60000 });
           const sum = await comm.allReduce(new Float32Array(1000).fill(comm.rank + 1));
           const half = await comm.split(comm.rank % 2);
           await half.barrier();
           report([sum[0], sum[999], half.size]);
           await half.close();
           await comm.close();`,
          { ...place, GRADLINK_RANK: String(number) },
        );
      const waiting = [rank(0), rank(1)];
      const address = addressOf({ ...place, GRADLINK_RANK: '0' }, 0);
      const seed = String(random.int(2 ** 31));
      const child = spawn(program, [String(user), seed, String(enough), address]);
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const over = new Promise<number | null>((resolve) => child.once('close', resolve));
      await until(() => said.includes('enough') || child.exitCode !== null);
      const ended = await Promise.all([...waiting, rank(2)].map((one) => one.ended));
      child.stdin.end();
      expect(await over).toBe(0);
      ended.forEach((one, number) => {
        expect(one).toMatchObject({ ...well, reports: [[6, 6, number === 1 ? 1 : 2]] });
      });
      const [connections = 0, packets = 0] = said.replace('enough\n', '').split(' ').map(Number);
      expect(connections).toBeGreaterThanOrEqual(enough);
      return { connections, packets };
    });
  },
);

it(
  'of another user that hold addresses which were public are met with no more',
  { timeout: campaignTimeout },
  async ({ skip }) => {
    const reason = missing(['cc'], true);
    if (reason !== undefined) skip(reason);
    const program = compiled('squatter');
    const meetings = 20;
    await campaign('squatters at meetings', 2, async (random): Promise<Counts> => {
      const job = randomBytes(16).toString('hex');
      const place = { GRADLINK_JOB: job, GRADLINK_SIZE: '3' };
      const rank = (number: number) =>
        scripts.start(
          `const sums = [];
           for (let meeting = 0; meeting < ${String(meetings)}; ++meeting) {
             const comm = await Communicator.world({ timeoutMs: 60000 });
             sums.push((await comm.allReduce(new Float32Array(9).fill(comm.rank + meeting)))[8]);
             await comm.close();
           }
           report(sums);`,
          { ...place, GRADLINK_RANK: String(number) },
        );
      const waiting = [rank(0), rank(1)];
      const addresses = Array.from({ length: 200 }, (_, number) =>
        addressOf({ ...place, GRADLINK_RANK: '0' }, number),
      );
      const seed = String(random.int(2 ** 31));
      const child = spawn(program, [String(nobody), seed, ...addresses]);
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      const over = new Promise<number | null>((resolve) => child.once('close', resolve));
      const ended = await Promise.all([...waiting, rank(2)].map((one) => one.ended));
      await until(() => said.includes('held') || child.exitCode !== null);
      child.stdin.end();
      expect(await over).toBe(0);
      const sums = Array.from({ length: meetings }, (_, meeting) => 3 + 3 * meeting);
      for (const one of ended) expect(one).toMatchObject({ ...well, reports: [sums] });
      return { meetings, taken: Number(said.replace('held\n', '')) };
    });
  },
);

it(
  'that crowd the port of a launcher keep no keeper away',
  async () => {
    await campaign('crowds at the launcher', 2, async (): Promise<Counts> => {
      const folder = mkdtempSync(join(launches.scratch, 'job-'));
      const { ended } = launches.start(
        ['-n', '4', '--launcher', 'mpi', '--mpirun', standInMpirun(folder), 'true'],
        { env: { GRADLINK_MPI: '' } },
      );
      await until(() => existsSync(join(folder, 'launcher')));
      const port = readFileSync(join(folder, 'launcher'), 'utf8').split(':').at(-1) ?? '';
      const crowds = await Promise.all([1, 2].map(() => crowd(200, 500, port)));
      writeFileSync(join(folder, 'new'), port);
      renameSync(join(folder, 'new'), join(folder, 'through'));
      const { code, stderr } = await ended;
      const made = await Promise.all(crowds.map((one) => one.end()));
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return { connections: made.reduce((sum, one) => sum + one, 0) };
    });
  },
  campaignTimeout,
);
