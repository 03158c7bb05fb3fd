import { describe, expect, it } from 'vitest';

import type { Ending, Manner } from '../../lib/launch/members.js';
import type { Role } from '../../lib/launch/job.js';
import { causeDelay, Progress } from '../../lib/launch/progress.js';

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
  const of = (index: number, status: number, manner?: Manner) =>
    end('worker', index, status, manner);
  const mpirun = (status: number, manner?: Manner) => end(undefined, 0, status, manner);
  it.each<[string, Ending[], string]>([
    ['the killed before those that lost it', [of(0, 1), of(1, 137)], 'worker1'],
    ['the killed before those that aborted', [of(0, 134), of(1, 137)], 'worker1'],
    ['one that aborted before those that lost it', [of(0, 1), of(1, 134)], 'worker1'],
    ['the first of equals', [of(1, 1), of(0, 2)], 'worker1'],
    ['a rank before mpirun', [mpirun(1), of(1, 1)], 'worker1'],
    ['a lost rank before mpirun', [mpirun(1), of(1, 1, 'lost')], 'worker1'],
    [
      'mpirun that was killed before those it took with it',
      [of(1, 1, 'lost'), of(0, 143, 'ended'), mpirun(137)],
      'mpirun0',
    ],
    ['mpirun before those it ended', [of(0, 143, 'ended'), mpirun(205, 'exited')], 'mpirun0'],
  ])('%s', (_, endings, label) => {
    expect(after(two(), ...endings).undecided?.member.label).toBe(label);
  });

  it('waits for a better one where what is known may follow from it', () => {
    const later = [of(0, 134), of(0, 1, 'lost'), of(0, 143, 'ended'), mpirun(137)];
    const delays = [of(0, 137), of(0, 1), ...later].map(causeDelay);
    expect(delays).toEqual([0, 200, 1000, 1000, 1000, 1000]);
  });

  it('falls on nobody when mpirun ends with a status after a job that went well', () => {
    expect(after(two(), of(0, 0), of(1, 0), mpirun(143)).undecided).toBeUndefined();
  });
});
