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

  /** All workers have ended, none of them in a way that ends the job. */
  get workersDone(): boolean {
    return this.workersLeft === 0 && this.failures.length === 0;
  }

  /**
   * The failure that is the cause of the others, among those known so far: one that a signal killed before one that
   * ended with an error because it lost the other, and a process of the job before what started it.
   */
  get undecided(): Ending | undefined {
    const weight = ({ member, what }: Ending): number =>
      (member.role === undefined ? 0 : 2) + (what.startsWith('was killed') ? 1 : 0);
    return this.failures.reduce<Ending | undefined>(
      (best, next) => (best === undefined || weight(next) > weight(best) ? next : best),
      undefined,
    );
  }
}
