// Operations on their way: their leases, how many there are, and where their errors point.
import { GradlinkError } from '../errors.js';
import { lease, release } from '../tensor/leases.js';
import type { LeaseGroup } from '../tensor/leases.js';
import { readOnly } from './arrays.js';
import type { KeyArrays } from './arrays.js';

const done = Promise.resolve();

export class PendingOperations {
  #count = 0;
  #closed = false;
  readonly #waiting: (() => void)[] = [];

  /** Whether every earlier operation has settled, as far as its caller can know. */
  get none(): boolean {
    return this.#count === 0;
  }

  /** Resolves once no operation is on its way. */
  async settled(): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Later operations fail. */
  close(): void {
    this.#closed = true;
  }

  /** @throws GradlinkError ERR_CLOSED after close(). */
  assertOpen(op: string): void {
    if (this.#closed) {
      throw new GradlinkError('ERR_CLOSED', `${op} was called after close(): create a new store`, {
        op,
      });
    }
  }

  /**
   * Starts an operation with its arrays leased until it settles.
   *
   * @param start - undefined where it is done already.
   */
  run(
    op: string,
    keys: readonly KeyArrays[],
    start: () => Promise<void> | undefined,
  ): Promise<void> {
    const leases = lease(op, keys.flatMap(readOnly), keys.flatMap(outputsOf));
    return this.#start(start, () => {
      release(leases);
    });
  }

  /** {@link run} for arrays that are leased as one. */
  runGroup(leases: LeaseGroup, start: () => Promise<void> | undefined): Promise<void> {
    leases.lease();
    return this.#start(start, () => {
      leases.release();
    });
  }

  #start(start: () => Promise<void> | undefined, end: () => void): Promise<void> {
    let started: Promise<void> | undefined;
    try {
      started = start();
    } catch (error) {
      end();
      throw error;
    }
    if (started === undefined) {
      end();
      return done;
    }
    return this.#settle(started, end);
  }

  async #settle(started: Promise<void>, end: () => void): Promise<void> {
    this.#count++;
    try {
      await started;
    } catch (error) {
      // Made on the way back from another thread; taken here, in an async function, it shows the callers that await.
      if (error instanceof GradlinkError) Error.captureStackTrace(error);
      throw error;
    } finally {
      this.#count--;
      end();
      if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }
}

function outputsOf(arrays: KeyArrays): KeyArrays['outputs'] {
  return arrays.outputs;
}
