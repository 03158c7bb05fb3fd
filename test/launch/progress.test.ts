import { describe, expect, it } from 'vitest';

import type { Ending, Manner } from '../../lib/launch/members.js';
import type { Role } from '../../lib/launch/job.js';
import { Progress } from '../../lib/launch/progress.js';

const end = (role: Role | undefined, index: number, exitCode = 0, manner?: Manner): Ending => ({
  member: {
    ...(role === undefined ? {} : { role }),
    index,
    label: `${role ?? 'mpirun'}${String(index)}`,
    pid: 1,
  },
  exitCode,
  what: 'ended',
  manner: manner ?? (exitCode > 128 ? 'killed' : 'exited'),
});

const after = (progress: Progress, ...endings: Ending[]): Progress => {
  for (const ending of endings) progress.ended(ending);
  return progress;
};
const two = (tolerant = false): Progress => new Progress(2, tolerant);

describe('the workers of a job', () => {
  it('are done when all have ended well', () => {
    expect(after(two(), end('worker', 0)).workersDone).toBe(false);
    expect(after(two(), end('worker', 0), end('worker', 1)).workersDone).toBe(true);
    expect(after(two(), end('worker', 0), end('worker', 1, 3)).workersDone).toBe(false);
    expect(after(two(), end('worker', 0), end('server', 0)).workersDone).toBe(false);
  });

  it('may fail where that is tolerated, all but one', () => {
    const progress = after(two(true), end('worker', 0, 137));
    expect([progress.undecided, progress.tolerated.length]).toEqual([undefined, 1]);
    expect(after(progress, end('worker', 1)).workersDone).toBe(true);
    const none = after(two(true), end('worker', 0, 137), end('worker', 1, 3));
    expect([none.undecided?.member.label, none.workersDone]).toEqual(['worker0', false]);
    expect(none.tolerated).toEqual([]);
  });
});

describe('a server', () => {
  it('that fails is a failure even where workers may', () => {
    expect(after(two(true), end('server', 0, 1)).undecided?.member.label).toBe('server0');
  });

  it('may die of the signal that asks it to end, and of no other', () => {
    const asked = two();
    asked.stopping = true;
    expect(after(asked, end('server', 0, 143)).undecided).toBeUndefined();
    expect(after(asked, end('server', 0, 139)).undecided).toBeDefined();
    expect(after(two(), end('server', 0, 143)).undecided).toBeDefined();
  });
});

describe('blame', () => {
  it.each<[string, Ending[], string]>([
    [
      'the killed before those that lost it',
      [end('worker', 0, 1), end('worker', 1, 137)],
      'worker1',
    ],
    [
      'the killed before those that aborted',
      [end('worker', 0, 134), end('worker', 1, 137)],
      'worker1',
    ],
    [
      'one that aborted before those that lost it',
      [end('worker', 0, 1), end('worker', 1, 134)],
      'worker1',
    ],
    ['the first of equals', [end('worker', 1, 1), end('worker', 0, 2)], 'worker1'],
    ['a rank before mpirun', [end(undefined, 0, 1), end('worker', 1, 1)], 'worker1'],
    ['a lost rank before mpirun', [end(undefined, 0, 1), end('worker', 1, 1, 'lost')], 'worker1'],
    [
      'mpirun that was killed before those it took with it',
      [end('worker', 1, 1, 'lost'), end('worker', 0, 143, 'ended'), end(undefined, 0, 137)],
      'mpirun0',
    ],
    [
      'mpirun before those it ended',
      [end('worker', 0, 143, 'ended'), end(undefined, 0, 205)],
      'mpirun0',
    ],
  ])('%s', (_, endings, label) => {
    expect(after(two(), ...endings).undecided?.member.label).toBe(label);
  });

  it('falls on nobody when mpirun ends with a status after a job that went well', () => {
    expect(after(two(), end('worker', 0), end('worker', 1), end(undefined, 0, 143)).undecided).toBe(
      undefined,
    );
  });
});
