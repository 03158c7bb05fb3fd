// Ranks as processes of their own, of which one is killed or stopped: what the others must say of it.
import { setTimeout as sleep } from 'node:timers/promises';

import { expect } from 'vitest';

import type { Counts } from './campaign.js';
import type { Random } from './random.js';
import type { Marked } from '../../support/marked.js';
import type { Ended, Running } from '../../support/processes.js';

/** How one process is attacked. A stopped one is killed or goes on once the others have ended. */
export interface Attack {
  readonly how: 'kill' | 'stop';
  readonly after: 'SIGKILL' | 'SIGCONT';
  readonly delayMs: number;
}

/** The deadline of jobs that are stopped: longer than healthy ranks are apart on a busy machine. */
export const stoppedDeadlineMs = 3000;
/** Of jobs that are killed: it must not come to it. */
export const killedDeadlineMs = 60_000;

export function attackOf(random: Random, how: Attack['how'], mostMs = 80): Attack {
  return { how, after: random.pick(['SIGKILL', 'SIGCONT']), delayMs: random.int(mostMs) };
}

export const deadlineOf = ({ how }: Attack): number =>
  how === 'kill' ? killedDeadlineMs : stoppedDeadlineMs;

/** An error as a script reports it. */
export interface Said {
  readonly code?: string;
  readonly rank?: number;
  readonly message: string;
}

/** What a script reported first: the error that ended it. */
export function saidBy(ended: Ended): Said {
  expect(ended, ended.stdout + ended.stderr).toMatchObject({ code: 0, signal: null });
  return ended.reports[0] as Said;
}

/**
 * Attacks the victim and waits for the end of the others, then of the victim.
 *
 * @param judge gets what the others said, by their place in `others`
 */
export async function strike(
  { how, after, delayMs }: Attack,
  victim: Running,
  others: readonly Running[],
  judge: (said: readonly Said[]) => void,
): Promise<void> {
  await sleep(delayMs);
  expect(victim.child.kill(how === 'kill' ? 'SIGKILL' : 'SIGSTOP')).toBe(true);
  judge((await Promise.all(others.map(({ ended }) => ended))).map(saidBy));
  if (how === 'stop') {
    victim.child.kill(after === 'SIGKILL' ? 'SIGKILL' : 'SIGCONT');
  }
  const last = await victim.ended;
  if (how === 'stop' && after === 'SIGCONT') {
    // It has lost the others, who gave it up.
    expect(saidBy(last).code, last.stdout).toMatch(/^ERR_(PEER_LOST|TIMEOUT|ABORTED)$/);
  } else {
    expect(last.signal).toBe('SIGKILL');
  }
}

/** Every survivor names the one that was attacked, by the code of what was done to it. */
export function expectNamed(
  { how }: Attack,
  said: readonly Said[],
  { rank, name }: { readonly rank: number; readonly name: string },
): void {
  for (const one of said) {
    const code = how === 'kill' ? 'ERR_PEER_LOST' : 'ERR_TIMEOUT';
    expect(one, JSON.stringify(said)).toMatchObject({ code, rank });
    // Of a meeting: `of 3 ranks these have not joined: 1`.
    const met = one.message.includes(`come: ${String(rank)}.`);
    if (!met) expect(one.message).toContain(name);
  }
}

/** What a round with these survivors adds to the figures. */
export function counted({ how }: Attack, named: number): Counts {
  return { [how === 'kill' ? 'kills' : 'stops']: 1, named };
}

/** Runs a round under a mark of its own: nothing of it may be left. */
export async function leavingNothing(
  marked: Marked,
  round: () => Promise<Counts>,
): Promise<Counts> {
  try {
    const counts = await round();
    await marked.expectNothingLeft();
    return { ...counts, orphans: 0, leftovers: 0 };
  } finally {
    marked.remove();
  }
}
