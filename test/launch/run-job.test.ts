// Jobs of shells in this process: whom the launcher stops when the workers are done, and whom it blames.
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { inspect } from 'node:util';

import { describe, expect, it } from 'vitest';

import { GradlinkError } from '../../lib/errors.js';
import { labelOf, type ProcessPlan, type Role } from '../../lib/launch/job.js';
import type { RemoteMembers } from '../../lib/launch/members.js';
import { runJob, type JobOptions } from '../../lib/launch/run-job.js';
import { folderOfEachTest } from '../support/folders.js';
import { bearers, until } from '../support/launching.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

const shell = (role: Role, index: number, script: string): ProcessPlan => ({
  role,
  index,
  label: labelOf(role, index),
  command: ['sh', '-c', script],
  env: { RUN_JOB_TEST: folder },
});
const run = (plans: readonly ProcessPlan[], more: Partial<JobOptions> = {}) =>
  runJob(plans, {
    mark: `RUN_JOB_TEST=${folder}`,
    env: { PATH: process.env.PATH },
    signals: new EventEmitter(),
    graceMs: 60_000,
    workers: plans.filter(({ role }) => role === 'worker').length,
    tolerateWorkerLoss: false,
    output: { stdout: new PassThrough().resume(), stderr: new PassThrough().resume(), tag: false },
    ...more,
  });
const there = (...names: string[]) => names.map((name) => existsSync(join(folder, name)));
const loop = 'while :; do sleep 0.02; done';
const upTo = (mark: string) => `until [ -e ${folder}/${mark} ]; do sleep 0.02; done`;

const left = () => bearers(`RUN_JOB_TEST=${folder}`);
/** Whom a job blames, with its status; nothing of it is left. */
async function blamed(plans: readonly ProcessPlan[], more?: Partial<JobOptions>) {
  const { exitCode, interruption } = await run(plans, more);
  expect(left()).toEqual([]);
  return [
    exitCode,
    interruption?.kind === 'failure' ? interruption.failure.member.label : interruption?.kind,
  ];
}

describe('a job', () => {
  const stays = (role: Role, index: number) =>
    shell(role, index, `sleep 600 & setsid sleep 600 & touch ${folder}/up-${role}; wait`);

  it('ends what its processes leave, those of a session of their own too', async () => {
    const worker = shell('worker', 0, 'sleep 600 & setsid sleep 600 & exit 0');
    expect(await blamed([worker])).toEqual([0, undefined]);
  });

  it.each([
    ['a worker fails', 'worker', 'exit 5', 5, '1'],
    ['a server is killed', 'server', 'kill -KILL $$', 137, 's1'],
  ] as const)('ends with all of its processes where %s', async (_, role, end, status, label) => {
    const fails = shell(role, 1, `${upTo('up-worker')}; ${upTo('up-server')}; ${end}`);
    expect(await blamed([stays('worker', 0), stays('server', 0), fails])).toEqual([status, label]);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('ends with all of its processes at %s', async (signal, status) => {
    const signals = new EventEmitter();
    const ended = blamed([stays('worker', 0), stays('server', 0)], { signals });
    await until(() => !there('up-worker', 'up-server').includes(false));
    signals.emit(signal, signal);
    expect(await ended).toEqual([status, 'signal']);
  });

  it('goes on without workers, but not without any', async () => {
    const fail = [3, 4].map((status, index) => shell('worker', index, `exit ${status}`));
    const [status, label] = await blamed(fail, { tolerateWorkerLoss: true });
    expect([
      [3, '0'],
      [4, '1'],
    ]).toContainEqual([status, label]);
  });
});

describe('servers of workers that have ended', () => {
  it('are asked to end, each of them', async () => {
    const server = (index: number) =>
      shell(
        'server',
        index,
        `trap "touch ${folder}/asked${index}; exit 0" TERM; touch ${folder}/up${index}; ${loop}`,
      );
    const worker = shell('worker', 0, `${upTo('up0')}; ${upTo('up1')}`);
    const { exitCode, endings, survivors } = await run([worker, server(0), server(1)]);
    expect({ exitCode, survivors }).toEqual({ exitCode: 0, survivors: [] });
    expect(endings.map(({ exitCode: each }) => each)).toEqual([0, 0, 0]);
    expect(there('asked0', 'asked1')).toEqual([true, true]);
  });

  it('are killed after the grace time where they do not, which fails the job', async () => {
    const server = shell('server', 0, `trap "" TERM; touch ${folder}/up; ${loop}`);
    const result = await run([shell('worker', 0, upTo('up')), server], { graceMs: 50 });
    const failure = { manner: 'killed', member: { label: 's0' } };
    expect(result).toMatchObject({ exitCode: 137, survivors: [], interruption: { failure } });
  });

  it('are asked on other hosts too', async () => {
    const asked: string[] = [];
    const remote: RemoteMembers = {
      watch: () => undefined,
      end: (which) => asked.push(which),
      busy: 0,
      silent: [],
      crowd: 0,
      release: () => undefined,
      close: () => undefined,
    };
    await run([shell('worker', 0, 'true')], { remote, graceMs: 50 });
    expect(asked).toEqual(['servers', 'all']);
  });
});

describe('blame', () => {
  /** What a program says that has lost this rank. */
  const lost = (rank: number) => {
    const error = new GradlinkError('ERR_PEER_LOST', `barrier: rank ${rank} has gone`, { rank });
    return `echo '${inspect(error).replaceAll("'", '"')}' >&2`;
  };
  /** Speaks before the first ends, and ends once the launcher has reaped that. */
  const second = (end: string, says = ':') => {
    const gone = `while kill -0 $other 2>/dev/null; do sleep 0.02; done`;
    const waits = `${upTo('first')}; read -r other < ${folder}/first; touch ${folder}/go; ${gone}`;
    return shell('worker', 1, `${says}; ${waits}; ${end}`);
  };
  const first = (end: string) => {
    const tells = `echo $$ > ${folder}/new; mv ${folder}/new ${folder}/first`;
    return shell('worker', 0, `${tells}; ${upTo('go')}; ${end}`);
  };

  it.each(['exit 1', 'kill -ABRT $$'])(
    'falls on one that is killed after %s of another',
    async (end) => {
      expect(await blamed([first(end), second('kill -KILL $$')])).toEqual([137, '1']);
    },
  );

  it('falls on a rank that failed by itself after another that had lost it', async () => {
    expect(await blamed([first(`${lost(1)}; exit 1`), second('exit 7')])).toEqual([7, '1']);
  });

  it.each([
    ['ended well', 1, () => second('exit 0')],
    ['lost the first', 1, () => second('exit 1', lost(0))],
    ['is no worker', 5, () => second('sleep 600')],
  ])('stays where the lost rank %s', async (_, rank, other) => {
    expect(await blamed([first(`${lost(rank)}; exit 1`), other()])).toEqual([1, '0']);
  });
});
