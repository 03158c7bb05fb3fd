// How far a job has come: which of its processes have ended, and which of them is to blame when it fails.
import { constants } from 'node:os';

import type { Ending } from './members.js';

const endedWhenAsked = 128 + constants.signals.SIGTERM;

export class Progress {
  readonly endings: Ending[] = [];
  readonly tolerated: Ending[] = [];
  /** Set once the servers have been asked to end: a server that had not come up yet dies of the signal itself. */
  stopping = false;
  private readonly failures: Ending[] = [];
  private workersLeft: number;

  /** @param workers how many the job has */
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
    // What started them often ends with the signal that ended a server; the job is done all the same.
    if (member.role === undefined && this.workersDone) return;
    if (worker && this.tolerateWorkerLoss) {
      this.tolerated.push(ending);
      // Nobody is left to carry on.
      if (this.tolerated.length < this.workers) return;
      this.failures.push(...this.tolerated.splice(0));
      return;
    }
    this.failures.push(ending);
  }

  /** Those that worker `rank` failed with, where it has ended. */
  workerEnding(rank: number): Ending | undefined {
    return this.endings.find(({ member }) => member.role === 'worker' && member.index === rank);
  }

  /** All workers have ended, none of them in a way that ends the job. */
  get workersDone(): boolean {
    return this.workersLeft === 0 && this.failures.length === 0;
  }

  /**
   * The failure that is the cause of the others, among those known so far: one that a signal killed before one that
   * aborted or ended with an error because it lost the other, then those lost, what started them, and last what that one
   * ended. Of equals it is the first.
   */
  get undecided(): Ending | undefined {
    return this.failures.reduce<Ending | undefined>(
      (best, next) => (best === undefined || weight(next) > weight(best) ? next : best),
      undefined,
    );
  }
}

const aborted = 128 + constants.signals.SIGABRT;

/** Libraries abort when they lose a peer (UCX does): nothing but the process itself sends this signal. */
function hasAborted({ manner, exitCode }: Ending): boolean {
  return manner === 'killed' && exitCode === aborted;
}

function weight(ending: Ending): number {
  const { member, manner } = ending;
  // Killed, it took all with it; else it is the first to know that one of them failed.
  if (member.role === undefined) return manner === 'killed' ? weights.exited : weights.starter;
  return hasAborted(ending) ? weights.aborted : weights[manner];
}

const weights = { ended: 0, starter: 1, lost: 2, exited: 3, aborted: 4, killed: 5 } as const;

/**
 * mpirun ends when a rank has failed, and may be faster than the news of the rank. So may one that aborts over a lost peer:
 * on a machine with more to do than cores, the peer's keeper takes its turn hundreds of milliseconds later.
 */
const newsPatienceMs = 1000;
/** Those that lose a process may end before the kernel is through with it, or its keeper has said so. */
const causePatienceMs = 200;
/** A rank that has an error leaves its communicators before it fails; those that lose it fail at once. */
export const originPatienceMs = 3000;

/** How long a better explanation of a failure may be on its way. */
export function causePatience(ending: Ending): number {
  const { member, manner } = ending;
  if (member.role === undefined || manner === 'lost' || manner === 'ended') return newsPatienceMs;
  if (hasAborted(ending)) return newsPatienceMs;
  return manner === 'exited' ? causePatienceMs : 0;
}
