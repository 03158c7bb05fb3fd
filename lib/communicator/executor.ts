// Runs prepared calls on a native communicator: leases, signals, stacks, and closing.
import { setImmediate as turn } from 'node:timers/promises';

import { withCallStack } from '../call-stack.js';
import { GradlinkError } from '../errors.js';
import type { NativeCommunicator } from '../native/communicator.js';
import { assertUsable, lease, release } from '../tensor/leases.js';
import type { LeasedArrays } from '../tensor/leases.js';
import { assertSignal } from '../checks.js';
import type { CallTrace } from './call-trace.js';
import type { Call } from './calls/call.js';
import type { Group } from './calls/types.js';

/** The only check of signals: every awaited operation passes here. */
function assertNotAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  assertSignal(signal);
  signal.throwIfAborted();
}

/**
 * Up to this many bytes a rank, an awaited collective of a local group runs at once on the caller's thread. It waits
 * for no peer, and combining 64 KiB of each of 4 ranks (6.5 us) is faster than a round trip to another thread (10.5 us
 * and more; best of many on a 2-core EPYC, Node 20).
 */
const inlineBytes = 64 * 1024;

/** An operation that is not a {@link Call}. */
export interface Submission<T> {
  readonly op: string;
  /** The caller's name for it. */
  readonly name?: string | undefined;
  readonly reads: LeasedArrays;
  readonly writes: LeasedArrays;
  start(ticket: number): Promise<T>;
}

/** An operation as errors and timelines show it. */
const labelOf = (op: string, name: string | undefined): string =>
  name === undefined ? op : `${op} '${name}'`;

/** Adds the name to native messages, which begin with the operation. */
function showName(error: unknown, op: string, name: string | undefined): void {
  if (name === undefined || !(error instanceof GradlinkError)) return;
  const { message } = error;
  if (message.startsWith(`${op}:`)) error.message = labelOf(op, name) + message.slice(op.length);
}

export class Executor implements Group {
  readonly size: number;
  readonly rank: number;
  readonly heldRanks: readonly number[];
  readonly gpus: readonly number[];
  /** All ranks are here in host memory, so it never waits for a peer. */
  readonly #local: boolean;
  #pending = 0;
  /** Set while operations are recorded. */
  trace: CallTrace | undefined;
  #lastTicket = 0;
  #joinable = false;
  #closing: Promise<void> | undefined;

  constructor(
    readonly native: NativeCommunicator,
    readonly takesLists: boolean,
  ) {
    this.size = native.size;
    this.heldRanks = Object.freeze([...native.heldRanks]);
    this.gpus = Object.freeze([...native.gpus]);
    this.rank = this.heldRanks[0] ?? 0;
    this.#local = takesLists && this.gpus.length === 0;
  }

  get joinable(): boolean {
    return this.#joinable;
  }
  setJoinable(): void {
    if (this.#pending > 0) {
      const message = 'setJoinable: calls are pending; await them first';
      throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'setJoinable', usable: true });
    }
    this.native.setJoinable();
    this.#joinable = true;
  }

  /** Runs a call on this thread, and gives what its caller gets. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- one cast here, not one a method
  runSync<R>(call: Call): R {
    const { code, input, output, count, root, timeoutMs, more, name } = call;
    try {
      // A seventh argument would be slower in native calls, which the shortest ones show.
      const got = this.blocking(labelOf(call.op, name), input, output, () =>
        more === undefined && name === undefined
          ? this.native.runSync(code, input, output, count, root, timeoutMs)
          : this.native.runSync(code, input, output, count, root, timeoutMs, more, name),
      );
      return (call.finish === undefined ? call.result : call.finish(got)) as R;
    } catch (error) {
      showName(error, call.op, call.name);
      throw error;
    }
  }

  /** Runs a blocking operation on arrays that no pending operation uses. */
  blocking<T>(op: string, reads: LeasedArrays, writes: LeasedArrays, run: () => T): T {
    assertUsable(op, reads, writes);
    if (this.trace === undefined) return run();
    const ended = this.trace.begin(op, reads, writes);
    try {
      return run();
    } finally {
      ended();
    }
  }

  /** {@link runSync}, on the communicator's thread. */
  async run<R>(call: Call, signal: AbortSignal | undefined): Promise<R> {
    if (this.#local && this.#pending === 0 && call.bytes <= inlineBytes) {
      assertNotAborted(signal);
      return this.runSync<R>(call);
    }
    const { code, input, output, count, root, timeoutMs, more, name } = call;
    const got = await this.submit(
      {
        op: call.op,
        name,
        reads: input,
        writes: output,
        start: (ticket) =>
          this.native.run(code, input, output, count, root, timeoutMs, ticket, more, name),
      },
      signal,
    );
    return (call.finish === undefined ? call.result : call.finish(got)) as R;
  }

  async submit<T>(submission: Submission<T>, signal: AbortSignal | undefined): Promise<T> {
    assertNotAborted(signal);
    const { op, name, reads, writes } = submission;
    const label = labelOf(op, name);
    const leases = lease(label, reads, writes);
    const traced = this.trace?.begin(label, reads, writes);
    this.#pending++;
    try {
      return signal === undefined
        ? await submission.start(0)
        : await this.#cancellable(submission, signal);
    } catch (error) {
      showName(error, op, name);
      // The error comes from another thread without the caller's stack. Capturing it in this async function shows the
      // awaiting callers, at no cost unless an operation fails.
      if (error instanceof GradlinkError) Error.captureStackTrace(error);
      throw error;
    } finally {
      this.#pending--;
      traced?.();
      release(leases);
    }
  }

  async #cancellable<T>(submission: Submission<T>, signal: AbortSignal): Promise<T> {
    const ticket = ++this.#lastTicket;
    let onAbort: (() => void) | undefined;
    const dropped = new Promise<never>((_, reject) => {
      onAbort = () => {
        if (this.native.cancel(ticket)) {
          // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the signal's owner chose it
          reject(signal.reason);
        } else {
          this.native.abort(`an AbortSignal ended ${submission.op} on rank ${this.rank}`);
        }
      };
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      return await Promise.race([submission.start(ticket), dropped]);
    } catch (error) {
      const ended = error instanceof GradlinkError && error.code === 'ERR_ABORTED';
      throw ended && signal.aborted ? signal.reason : error;
    } finally {
      if (onAbort) signal.removeEventListener('abort', onAbort);
    }
  }

  /** Idempotent. */
  stopTrace(): void {
    const { trace } = this;
    this.trace = undefined;
    trace?.end();
  }

  close(): Promise<void> {
    return (this.#closing ??= withCallStack(() => this.#close()));
  }

  async #close(): Promise<void> {
    await this.native.close();
    this.stopTrace();
    // Let the callers of operations that ended in the same turn run first.
    await turn();
  }
}
