// One rank's side of a window: an array that neighbours access. window-open.ts opens it.
import { setTimeout as pause } from 'node:timers/promises';

import { GradlinkError, argumentError, ruleError } from '../../errors.js';
import type { NativeBuffer } from '../../native/communicator.js';
import { native } from '../../native/load.js';
import { nativeWindowOps } from '../../native/window.js';
import type { NativeWindow } from '../../native/window.js';
import { dtypeNumber, storageOf } from '../../tensor/any-array.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { isDeviceBuffer } from '../../tensor/device-buffer.js';
import { dtypeNames } from '../../tensor/dtype.js';
import { assertUsable } from '../../tensor/leases.js';
import { assertFixedLength, overlap, overlapError } from '../../tensor/memory.js';
import type { Rank, RankWeights } from '../../topology/rank.js';
import {
  aFunction,
  arrayOf,
  assertMade,
  milliseconds,
  optionNames,
  optionsObject,
} from '../../checks.js';
import type { Executor } from '../executor.js';
import { otherRank, readWeights, weight } from '../calls/neighbor-call.js';
import type { StaticTopology } from '../calls/neighbor-call.js';
import { callNames } from '../calls/option-names.js';
import type { CallOptions, Group } from '../calls/types.js';

/** Options of {@link NeighborWindow.put} and {@link NeighborWindow.accumulate}. */
export interface WindowPutOptions extends CallOptions {
  /** Factor of `values` (and p) afterwards, in place; 1 when absent. */
  selfWeight?: number | undefined;
  /** Destinations with factors; all at 1 when absent. A list means 1 for each. */
  dstWeights?: RankWeights | readonly Rank[] | undefined;
}

/** Options of {@link NeighborWindow.get}. */
export interface WindowGetOptions extends CallOptions {
  /** Sources with factors; all at 1 when absent. A list means 1 for each. */
  srcWeights?: RankWeights | readonly Rank[] | undefined;
}

/** Options of {@link NeighborWindow.update}: both weights or neither. */
export interface WindowUpdateOptions<A> extends CallOptions {
  /** The weight of this rank's own array; requires the weights of all sources. */
  selfWeight?: number | undefined;
  /** Sources to include, with weights; other buffers stay unchanged. */
  srcWeights?: RankWeights | readonly Rank[] | undefined;
  /** Whether the named buffers (and their p) become 0 afterwards; false when absent. */
  reset?: boolean | undefined;
  /** Where the result goes; the window's array, and then p as well, when absent. */
  out?: A | undefined;
}

/** Options of {@link NeighborWindow.withMutex}. */
export interface WindowMutexOptions extends CallOptions {
  /** True: locks this rank's memory against these ranks. False: locks theirs against others. */
  forSelf?: boolean | undefined;
  /** The destinations when absent (with `forSelf` the sources). */
  ranks?: readonly Rank[] | undefined;
}

const putNames = optionNames<WindowPutOptions>({
  selfWeight: true,
  dstWeights: true,
  timeoutMs: true,
});
const getNames = optionNames<WindowGetOptions>({ srcWeights: true, timeoutMs: true });
const updateNames = optionNames<WindowUpdateOptions<AnyArray>>({
  selfWeight: true,
  srcWeights: true,
  reset: true,
  out: true,
  timeoutMs: true,
});
const mutexNames = optionNames<WindowMutexOptions>({
  forSelf: true,
  ranks: true,
  timeoutMs: true,
});

/** @internal */
export interface WindowParts {
  readonly executor: Executor;
  /** The rank of the window, one of the executor's. */
  readonly group: Group;
  readonly native: NativeWindow;
  readonly array: AnyArray;
  readonly dtype: number;
  readonly by: StaticTopology;
  readonly withP: boolean;
  readonly timeoutMs: number;
  readonly onFree: () => void;
}

interface Move {
  readonly op: keyof typeof nativeWindowOps;
  readonly array: NativeBuffer | null;
  readonly ranks: Int32Array;
  readonly weights: Float64Array;
  readonly selfWeight: number;
  readonly divisor: number;
  readonly reset: boolean;
  readonly timeoutMs: number;
  readonly reads: NativeBuffer | null;
  readonly writes: NativeBuffer | null;
}

/**
 * An array of this rank that neighbours access, with a buffer for each source's writes: see
 * {@link Communicator.createWindow}. Writing to a neighbour needs no call on its side.
 *
 * Each operation on one buffer is atomic: an update never sees half a put. Operations of one rank run in the order of
 * their calls, after pending ones of its communicator.
 */
export class NeighborWindow<A extends AnyArray = AnyArray> {
  /** The ranks that write here, ascending. */
  readonly sources: readonly Rank[];
  /** The ranks that this one writes to, ascending. */
  readonly destinations: readonly Rank[];
  readonly #parts: WindowParts;
  #freed = false;

  /** @internal */
  constructor(parts: WindowParts) {
    const opened = (parts as Partial<WindowParts> | null | undefined)?.native;
    assertMade(opened, native().NativeWindow, 'NeighborWindow', 'createWindow() of a communicator');
    const { rank } = parts.group;
    this.#parts = parts;
    this.sources = Object.freeze(parts.by.topology.sources(rank));
    this.destinations = Object.freeze(parts.by.topology.destinations(rank));
  }

  /**
   * This rank's live array, which a neighbor's {@link get} reads. In host memory it is freed by {@link free} or with
   * the communicator; a {@link DeviceBuffer} stays until its `dispose()`.
   *
   * @throws GradlinkError ERR_CLOSED after {@link free}, in host memory.
   */
  get array(): A {
    const { array } = this.#parts;
    if (!isDeviceBuffer(array)) this.#assertOpen('array');
    return array as A;
  }

  /**
   * Sets each destination's buffer for this rank to its weight times `values`, and increments its version.
   *
   * @param values - the window's array when absent.
   */
  async put(values?: A, options?: WindowPutOptions): Promise<void> {
    await this.#run(this.#sending('put', values, options));
  }
  /** {@link put}, blocking. */
  putSync(values?: A, options?: WindowPutOptions): void {
    this.#runSync(this.#sending('put', values, options));
  }

  /** Adds its weight times `values` to each destination's buffer for this rank, without a new version. */
  async accumulate(values?: A, options?: WindowPutOptions): Promise<void> {
    await this.#run(this.#sending('accumulate', values, options));
  }
  /** {@link accumulate}, blocking. */
  accumulateSync(values?: A, options?: WindowPutOptions): void {
    this.#runSync(this.#sending('accumulate', values, options));
  }

  /** Sets the buffer of each source to its weight times the source's current array, and increments its version. */
  async get(options?: WindowGetOptions): Promise<void> {
    await this.#run(this.#getting(options));
  }
  /** {@link get}, blocking. */
  getSync(options?: WindowGetOptions): void {
    this.#runSync(this.#getting(options));
  }

  /**
   * Combines the array with the buffers: `selfWeight * array + Σ srcWeights[s] * buffer of s`. Without weights it
   * averages the array and all buffers, or uses the graph's weights after {@link Communicator.setTopology} with
   * `weighted`. Versions of the named sources become 0.
   *
   * @returns `out`, or the window's array.
   */
  async update(options?: WindowUpdateOptions<A>): Promise<A> {
    await this.#run(this.#updating(options));
    return options?.out ?? this.array;
  }
  /** {@link update}, blocking. */
  updateSync(options?: WindowUpdateOptions<A>): A {
    this.#runSync(this.#updating(options));
    return options?.out ?? this.array;
  }

  /** Adds all buffers to the array and clears them. The receiving half of push-sum. */
  async updateThenCollect(options?: CallOptions): Promise<A> {
    return this.update(this.#collecting(options));
  }
  /** {@link updateThenCollect}, blocking. */
  updateThenCollectSync(options?: CallOptions): A {
    return this.updateSync(this.#collecting(options));
  }

  /** Unread writes per source: puts and gets since the last update. */
  versions(): Record<number, number> {
    this.#assertOpen('versions');
    const counts = this.#parts.native.versions();
    return Object.fromEntries(this.sources.map((source, i) => [source, counts[i]!]));
  }

  /**
   * A number that went through the same sums as the array, initially 1: `array / associatedP` is push-sum's estimate of
   * the average. Stays 1 without the option `associatedP`.
   */
  get associatedP(): number {
    this.#assertOpen('associatedP');
    return this.#parts.native.p();
  }

  /**
   * Runs `body` while holding advisory locks, one per owner and other rank; put, get and update take none.
   *
   * @throws GradlinkError ERR_TIMEOUT if a lock is not released in time, ERR_PEER_LOST if its holder was lost; both
   *   name that rank.
   */
  async withMutex<T>(body: () => T | Promise<T>, options?: WindowMutexOptions): Promise<T> {
    const { forSelf = false, ranks, timeoutMs } = optionsObject(options, mutexNames, 'withMutex');
    const { group, native: opened } = this.#parts;
    this.#assertOpen('withMutex');
    aFunction(body, 'body');
    const others =
      ranks === undefined
        ? forSelf
          ? this.sources
          : this.destinations
        : (arrayOf(ranks, 'ranks', 'an array of ranks') as readonly Rank[]);
    const pairs = Array.from(others, (other) => otherRank(group, other, 'ranks'))
      // Lock in the same order everywhere, to avoid deadlocks.
      .sort((a, b) => a - b)
      .map((other) => (forSelf ? ([group.rank, other] as const) : ([other, group.rank] as const)));
    const end = performance.now() + this.#timeout(timeoutMs);
    const held: (readonly [number, number])[] = [];
    try {
      for (const pair of pairs) {
        for (;;) {
          const holder = opened.tryLock(...pair);
          if (holder < 0) break;
          if (performance.now() >= end) {
            throw new GradlinkError(
              'ERR_TIMEOUT',
              `withMutex: rank ${holder} did not release the lock of ranks ${pair.join(' and ')} in time`,
              { op: 'withMutex', rank: holder, usable: true },
            );
          }
          await pause(1);
        }
        held.push(pair);
      }
      return await body();
    } finally {
      for (const pair of held) opened.unlock(...pair);
    }
  }

  /**
   * Collective: frees the window. An {@link array} in host memory is empty afterwards: copy it first (`array.slice()`)
   * if needed. Free each window of {@link WorldGroup.createWindow}; the last one waits for the other processes.
   */
  async free(options?: CallOptions): Promise<void> {
    this.#assertOpen('free');
    const given = optionsObject(options, callNames, 'free');
    this.#freed = true;
    this.#parts.onFree();
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const start = () => this.#parts.native.free(timeoutMs);
    await this.#parts.executor.submit({ op: 'free', reads: null, writes: null, start }, undefined);
  }

  #sending(op: 'put' | 'accumulate', values: A | undefined, options?: WindowPutOptions): Move {
    const { selfWeight = 1, dstWeights, timeoutMs } = optionsObject(options, putNames, op);
    const array = this.#array(values ?? this.array, 'values');
    const scales = weight(selfWeight, 'selfWeight') !== 1;
    return {
      op,
      array,
      ...this.#peers(dstWeights, this.destinations, 'dstWeights'),
      selfWeight,
      divisor: 1,
      reset: false,
      timeoutMs: this.#timeout(timeoutMs),
      reads: scales ? null : array,
      writes: scales ? array : null,
    };
  }

  #getting(options?: WindowGetOptions): Move {
    const { srcWeights, timeoutMs } = optionsObject(options, getNames, 'get');
    return {
      op: 'get',
      array: null,
      ...this.#peers(srcWeights, this.sources, 'srcWeights'),
      selfWeight: 1,
      divisor: 1,
      reset: false,
      timeoutMs: this.#timeout(timeoutMs),
      reads: null,
      writes: null,
    };
  }

  #updating(options?: WindowUpdateOptions<A>): Move {
    const given = optionsObject(options, updateNames, 'update');
    const { out, reset = false, selfWeight, srcWeights } = given;
    if ((selfWeight === undefined) !== (srcWeights === undefined)) {
      throw ruleError('ERR_INVALID_ARG_VALUE', 'selfWeight and srcWeights must be given together');
    }
    const { by, group } = this.#parts;
    const own = this.#array(this.array, 'array');
    const array = out === undefined ? null : this.#array(out, 'out');
    if (array !== null && overlap(array, own)) throw overlapError('out', 'the array of the window');
    const weighted = selfWeight === undefined && by.weighted;
    const graph = by.topology.receiveWeights(group.rank);
    return {
      op: 'update',
      array,
      ...this.#peers(weighted ? graph.weights : srcWeights, this.sources, 'srcWeights'),
      selfWeight: weighted ? graph.selfWeight : weight(selfWeight ?? 1, 'selfWeight'),
      divisor: weighted || selfWeight !== undefined ? 1 : this.sources.length + 1,
      reset,
      timeoutMs: this.#timeout(given.timeoutMs),
      reads: array === null ? null : own,
      writes: array ?? own,
    };
  }

  #collecting(options?: CallOptions): WindowUpdateOptions<A> {
    const given = optionsObject(options, callNames, 'updateThenCollect');
    return { ...given, selfWeight: 1, srcWeights: this.sources, reset: true };
  }

  #timeout(given: unknown): number {
    return milliseconds(given, 'timeoutMs', this.#parts.timeoutMs);
  }

  #array(value: A, name: string): NativeBuffer {
    const { dtype, array } = this.#parts;
    // A Uint16Array does not tell its half type, so the window's applies.
    const named = value instanceof Uint16Array ? dtypeNames[dtype] : undefined;
    const own = dtypeNumber(value, named, name);
    if (own !== dtype || value.length !== array.length) {
      const expected = `an array of the window's type and of ${array.length} elements`;
      throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, value);
    }
    assertFixedLength(value, name);
    return storageOf(value);
  }

  #peers(given: unknown, all: readonly number[], name: string) {
    const weights =
      given === undefined
        ? new Map(all.map((rank) => [rank, 1]))
        : readWeights(this.#parts.group, given, name);
    for (const rank of weights.keys()) {
      if (all.includes(rank)) continue;
      const expected = `neighbours of the window (${all.join(', ')})`;
      throw argumentError('ERR_INVALID_ARG_VALUE', name, expected, rank);
    }
    return {
      ranks: Int32Array.from(weights.keys()),
      weights: Float64Array.from(weights.values()),
    };
  }

  async #run(move: Move): Promise<void> {
    this.#assertOpen(move.op);
    const { native: opened, withP, executor } = this.#parts;
    const { op, array, ranks, weights, selfWeight, divisor, reset, timeoutMs } = move;
    const code = nativeWindowOps[op];
    const start = () =>
      opened.run(code, array, ranks, weights, selfWeight, divisor, reset, withP, timeoutMs);
    await executor.submit({ op, reads: move.reads, writes: move.writes, start }, undefined);
  }

  #runSync(move: Move): void {
    this.#assertOpen(move.op);
    const { native: opened, withP } = this.#parts;
    const { op, array, ranks, weights, selfWeight, divisor, reset, timeoutMs } = move;
    assertUsable(op, move.reads, move.writes);
    const code = nativeWindowOps[op];
    opened.runSync(code, array, ranks, weights, selfWeight, divisor, reset, withP, timeoutMs);
  }

  #assertOpen(op: string): void {
    if (!this.#freed) return;
    throw new GradlinkError('ERR_CLOSED', `${op}: the window was freed`, { op, usable: true });
  }
}
