// Pending operations: leases, dependencies, count, and the stacks of their errors.
import { GradlinkError } from '../errors.js';
import { leaseParts, release } from '../tensor/leases.js';
import type { Holder, LeasedPart, LeaseGroup, LeaseOwner, Use } from '../tensor/leases.js';
import { readOnly } from './arrays.js';
import type { KeyCall } from './calls.js';
import type { StoreKind } from './types.js';

const done = Promise.resolve();

/**
 * Which operations of one key on the same array the native store keeps in order: all, or only writes after reads. A
 * pulled value includes all earlier pushes, but a pull's array may be read on another thread or device than the one
 * that filled it.
 */
export type NativeOrder = 'all' | 'writesAfterReads';

class Pending implements Holder {
  readonly owner: LeaseOwner;
  /** Operations that must end before it begins; mostly none. */
  #needs: Set<Holder> | undefined;
  ended = false;

  constructor(owner: LeaseOwner) {
    this.owner = owner;
  }

  waitFor(other: Holder): void {
    if (other !== this) (this.#needs ??= new Set()).add(other);
  }

  get ready(): boolean {
    if (this.#needs === undefined) return true;
    for (const one of this.#needs) {
      if (one instanceof Pending && !one.ended) return false;
      this.#needs.delete(one);
    }
    return true;
  }
}

interface Deferred {
  readonly pending: Pending;
  readonly start: () => void;
}

type Start = () => Promise<void> | undefined;

/**
 * As in MXNet, operations of one store on the same array run in the order of their calls. If the native store does not
 * ensure that, an operation waits for earlier ones that share memory with it.
 */
export class PendingOperations implements LeaseOwner {
  readonly #order: NativeOrder;
  #count = 0;
  #closed = false;
  readonly #waiting: (() => void)[] = [];
  readonly #live = new Set<Promise<void>>();
  /** Called but not ended. */
  readonly #unended = new Set<Pending>();
  /** Not started, in the order of their calls. */
  readonly #deferred: Deferred[] = [];

  constructor(order: NativeOrder) {
    this.#order = order;
  }

  /** Whether every earlier operation has settled, as its caller sees it. */
  get none(): boolean {
    return this.#count === 0;
  }

  inOrder(wanted: Use, pending: Use): boolean {
    const same =
      wanted.part === pending.part && wanted.start === pending.start && wanted.end === pending.end;
    return same && (this.#order === 'all' || (wanted.writes && !pending.writes));
  }

  /** Resolves when earlier calls have settled, also for their callers. */
  async earlierSettled(): Promise<void> {
    await Promise.allSettled(this.#live);
  }

  /** Resolves once no operation is pending. */
  async settled(): Promise<void> {
    if (this.#count === 0) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

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
   * @param start - returns undefined if already done.
   */
  run(op: string, calls: readonly KeyCall[], start: Start): Promise<void> {
    const pending = new Pending(this);
    const leases = leaseParts(op, partsOf(calls), pending);
    return this.#begin(pending, start, () => {
      release(leases);
    });
  }

  /** {@link run} for arrays leased as one group. */
  runGroup(leases: LeaseGroup, start: Start): Promise<void> {
    const pending = new Pending(this);
    leases.lease(pending);
    return this.#begin(pending, start, () => {
      leases.release(pending);
    });
  }

  /**
   * Changes the store between earlier and later operations.
   *
   * @throws the error of `change` if nothing is pending; otherwise the promise rejects
   */
  inTurn(change: () => void): Promise<void> {
    return this.run('', [], () => {
      change();
      return undefined;
    });
  }

  /** Changes the store while no operation is running, after earlier calls have ended. */
  whenIdle(change: () => void): Promise<void> {
    const pending = new Pending(this);
    for (const one of this.#unended) pending.waitFor(one);
    const start = (): undefined => {
      change();
    };
    return this.#begin(pending, start, () => undefined);
  }

  #begin(pending: Pending, start: Start, release: () => void): Promise<void> {
    const end = (): void => {
      pending.ended = true;
      this.#unended.delete(pending);
      release();
    };
    if (this.#deferred.length > 0 || !pending.ready) {
      const started = new Promise<void>((resolve, reject) => {
        this.#deferred.push({
          pending,
          // Synchronous, because later calls must not start before it.
          start: () => {
            try {
              resolve(start());
            } catch (error) {
              // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
              reject(error);
            }
          },
        });
      });
      this.#unended.add(pending);
      return this.#settle(started, end);
    }
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
    this.#unended.add(pending);
    return this.#settle(started, end);
  }

  #settle(started: Promise<void>, end: () => void): Promise<void> {
    const settled = this.#settled(started, end);
    this.#live.add(settled);
    const ended = (): void => {
      this.#live.delete(settled);
    };
    settled.then(ended, ended);
    return settled;
  }

  async #settled(started: Promise<void>, end: () => void): Promise<void> {
    this.#count++;
    try {
      await started;
    } catch (error) {
      // The error comes from another thread; capturing the stack in this async function shows the awaiting callers.
      if (error instanceof GradlinkError) Error.captureStackTrace(error);
      throw error;
    } finally {
      this.#count--;
      end();
      this.#startDeferred();
      if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  #startDeferred(): void {
    for (let first = this.#deferred[0]; first?.pending.ready === true; first = this.#deferred[0]) {
      this.#deferred.shift();
      first.start();
    }
  }
}

/** The arrays of a call by key. */
export function partsOf(calls: readonly KeyCall[]): LeasedPart[] {
  return calls.map((call) => ({
    part: call.info.id,
    reads: readOnly(call),
    writes: call.outputs,
  }));
}

/** @param onGpus - whether the store's devices are GPUs. */
export function nativeOrder(kind: StoreKind, onGpus: boolean): NativeOrder {
  return onGpus || kind === 'allreduce' ? 'writesAfterReads' : 'all';
}
