// Several ranks of a world of GPUs in one process.
import { native } from '../../native/load.js';
import type { NativeCommunicator } from '../../native/communicator.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import type { DeviceDType } from '../../tensor/dtype.js';
import type { Rank } from '../../topology/rank.js';
import { assertMade, integer, maxInt32, milliseconds, optionsObject } from '../../checks.js';
import { allocRegistered } from '../base.js';
import { Executor } from '../executor.js';
import { callNames } from '../calls/option-names.js';
import type { CallOptions } from '../calls/types.js';
import { eachOf } from './group-types.js';
import { subsetOf } from '../subset.js';
import { GroupHierarchy } from './group-nodes.js';

let groupOf: (wrapped: NativeCommunicator) => WorldGroup;

/**
 * The GPU ranks that this process holds, from {@link Communicator.world} with `gpus`. A collective is one call with a
 * list of {@link DeviceBuffer}s, one for each of {@link ranks}. {@link size} is that of the whole world. A result for
 * the root is undefined if another process holds the root.
 *
 * Point-to-point calls name the held rank: {@link send} and {@link receive}. {@link sendReceive} takes both ends of a
 * message between two held ranks. {@link createWindow} returns a window for each rank.
 */
export class WorldGroup extends GroupHierarchy implements AsyncDisposable {
  /** The ranks held here, one for each of {@link gpus}; ranks are consecutive across processes. */
  readonly ranks: readonly Rank[];

  static {
    groupOf = (wrapped) => new WorldGroup(wrapped);
  }

  private constructor(wrapped: NativeCommunicator) {
    assertMade(
      wrapped,
      native().NativeCommunicator,
      'WorldGroup',
      "Communicator.world({ backend: 'nccl', gpus: […] })",
    );
    super(new Executor(wrapped, true), 'gpu');
    this.ranks = this.executor.heldRanks;
  }

  /**
   * Collective. Ranks with equal colors form a new group, ordered by key, then by old rank; a process gives a color for
   * each of {@link ranks}. Processes with one rank call {@link Communicator.split}.
   *
   * @param colors - each 0 or above; null to join none.
   * @param keys - the old ranks when absent.
   * @returns the group of each of {@link ranks}, null for a null color. Held ranks of one group share it; its `ranks`
   *   are their new ranks, ascending, with their `gpus`. Close each group separately.
   */
  override async split(
    colors: readonly (number | null)[],
    keys: readonly number[] = this.ranks,
    options?: CallOptions,
  ): Promise<(WorldGroup | null)[]> {
    const { length } = this.ranks;
    const groups = Int32Array.from(eachOf(length, colors, 'colors'), (color, i) =>
      color === null ? -1 : integer(color, `colors[${i}]`, 0, maxInt32),
    );
    const orders = Int32Array.from(eachOf(length, keys, 'keys'), (key, i) =>
      integer(key, `keys[${i}]`, -maxInt32, maxInt32),
    );
    const given = optionsObject(options, callNames, 'split');
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const start = () => this.executor.native.splitHeld(groups, orders, timeoutMs);
    const parts = await this.executor.submit(
      { op: 'split', reads: null, writes: null, start },
      undefined,
    );
    const made = new Map<NativeCommunicator, WorldGroup>();
    for (const part of parts) {
      if (part !== null && !made.has(part)) made.set(part, new WorldGroup(part));
    }
    return parts.map((part) => (part === null ? null : made.get(part)!));
  }

  /**
   * As {@link Communicator.subset}: the list covers the whole world's ranks; this process may hold any of them.
   *
   * @returns the group, or null if no rank of this process is listed. Close it separately.
   */
  async subset(ranks: readonly Rank[], options?: CallOptions): Promise<WorldGroup | null> {
    const given = optionsObject(options, callNames, 'subset');
    return subsetOf(ranks, this.size, this.ranks, async (colors, keys) => {
      const parts = await this.split(colors, keys, given);
      return parts.find((part) => part !== null) ?? null;
    });
  }

  /** As {@link Communicator.allocRegistered}: one buffer for each of {@link ranks}, to be used together. */
  allocRegistered<K extends DeviceDType>(
    dtype: K,
    count: number,
    options?: CallOptions,
  ): Promise<DeviceBuffer<K>[]> {
    return allocRegistered(this.executor, dtype, count, options);
  }

  /**
   * Waits for pending operations, then leaves; later calls here fail with ERR_CLOSED, calls of peers that need these
   * ranks with ERR_PEER_LOST. Idempotent.
   */
  override async close(): Promise<void> {
    await Promise.all([this.closeNodes(), this.executor.close()]);
  }

  /** As `close()`, at the end of an `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** @internal */
export const worldGroupOf = (wrapped: NativeCommunicator): WorldGroup => groupOf(wrapped);
