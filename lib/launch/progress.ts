// The progress of a job: which processes have ended, and which of them caused a failure.
import { constants } from 'node:os';

import type { Ending } from './members.js';

const endedWhenAsked = 128 + constants.signals.SIGTERM;

export class Progress {
  readonly endings: Ending[] = [];
  readonly tolerated: Ending[] = [];
  /** Set once the servers have been asked to end: a starting server dies of the signal itself. */
  stopping = false;
  private readonly failures: Ending[] = [];
  private workersLeft: number;

  constructor(
    private readonly workers: number,
    private readonly tolerateWorkerLoss: boolean,
  ) {
    this.workersLeft = workers;
  }

  ended(ending: Ending): void {
    this.endings.push(ending);
    const { member, exitCode } = ending;
    const worker = member.role === 'worker';
    if (worker) this.workersLeft -= 1;
    if (exitCode === 0) return;
    if (member.role === 'server' && this.stopping && exitCode === endedWhenAsked) return;
    // A starter often ends with the signal that ended a server; the job has succeeded all the same.
    if (member.role === undefined && this.workersDone) return;
    if (worker && this.tolerateWorkerLoss) {
      this.tolerated.push(ending);
      // No worker is left.
      if (this.tolerated.length < this.workers) return;
      this.failures.push(...this.tolerated.splice(0));
      return;
    }
    this.failures.push(ending);
  }

  /** The failure of worker `rank`, if it has ended. */
  workerEnding(rank: number): Ending | undefined {
    return this.endings.find(({ member }) => member.role === 'worker' && member.index === rank);
  }

  /** All workers have ended, none with a failure that ends the job. */
  get workersDone(): boolean {
    return this.workersLeft === 0 && this.failures.length === 0;
  }

  /**
   * The most likely cause among the known failures. A process killed by a signal comes first, then one that aborted or
   * failed over a lost peer, a lost one, the starter, and last a process that the starter ended. Among equals the first
   * counts.
   */
  get undecided(): Ending | undefined {
    return this.failures.reduce<Ending | undefined>(
      (best, next) => (best === undefined || weight(next) > weight(best) ? next : best),
      undefined,
    );
  }
}

const aborted = 128 + constants.signals.SIGABRT;

/** Libraries such as UCX abort when they lose a peer; only the process itself sends this signal. */
function hasAborted({ manner, exitCode }: Ending): boolean {
  return manner === 'killed' && exitCode === aborted;
}

function weight(ending: Ending): number {
  const { member, manner } = ending;
  // A killed starter ended everything; otherwise it only noticed a failure first.
  if (member.role === undefined) return manner === 'killed' ? weights.exited : weights.starter;
  return hasAborted(ending) ? weights.aborted : weights[manner];
}

const weights = { ended: 0, starter: 1, lost: 2, exited: 3, aborted: 4, killed: 5 } as const;

/**
 * mpirun ends when a rank fails, and may be faster than the report of the rank. So may a rank that aborts over a lost
 * peer: on a busy machine the peer's keeper may run hundreds of milliseconds later.
 */
const reportDelayMs = 1000;
/** Peers of a lost process may end before its keeper has reported it. */
const causeDelayMs = 200;
/** A failing rank leaves its communicators before it exits, and the ranks that lose it fail at once. */
export const originDelayMs = 3000;

/** How long to wait for a better explanation of a failure. */
export function causeDelay(ending: Ending): number {
  const { member, manner } = ending;
  if (member.role === undefined || manner === 'lost' || manner === 'ended') return reportDelayMs;
  if (hasAborted(ending)) return reportDelayMs;
  return manner === 'exited' ? causeDelayMs : 0;
}
