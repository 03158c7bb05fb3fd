// Gathering from neighbours, and averaging in pairs, on all ranks that one process holds: one call of the process.
import type { NativeHeldGather, NativeHeldGossip } from '../../native/communicator.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import { milliseconds, optionNames, optionsObject } from '../../checks.js';
import { assertRanksApart, oneEach } from '../calls/collective-call.js';
import { otherTypes } from '../calls/neighbor-call.js';
import { prepareGossip, prepareNeighborGather } from '../calls/neighbor-messages.js';
import type { AsyncOptions, CallOptions, OutOptions } from '../calls/types.js';
import { GroupNeighbors, viewOfRank } from './group-neighbors.js';
import { eachOf } from './group-types.js';
import type {
  GroupGatherOptions,
  GroupGossipOptions,
  GroupLists,
  GroupPair,
} from './group-types.js';

type RawGather = GroupGatherOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions;
type RawGossip = GroupGossipOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions;

const gatherNames = { neighbors: true, out: true, timeoutMs: true } as const;
const blockingGather = optionNames<RawGather>(gatherNames);
const awaitedGather = optionNames<RawGather & AsyncOptions>({ ...gatherNames, signal: true });
const gossipNames = { pairs: true, out: true, timeoutMs: true } as const;
const blockingGossip = optionNames<RawGossip>(gossipNames);
const awaitedGossip = optionNames<RawGossip & AsyncOptions>({ ...gossipNames, signal: true });
const listNames = optionNames<GroupLists>({ srcRanks: true, dstRanks: true, srcCounts: true });
const pairNames = optionNames<GroupPair>({ peer: true, selfWeight: true, pairWeight: true });

/** The operations of a {@link WorldGroup} with some of the ranks, or one. */
export abstract class GroupPairs extends GroupNeighbors {
  /**
   * As {@link Communicator.neighborAllGather}, of all ranks held here in one call. Processes that hold one rank call that.
   *
   * @param data - what each of the ranks held here sends to each of its destinations, of one type.
   * @returns for each of these what its sources sent, one after the other.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where lists, counts or types do not fit together.
   */
  async neighborAllGather(
    data: readonly DeviceBuffer[],
    options?: GroupGatherOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions,
  ): Promise<DeviceBuffer[]> {
    const given = optionsObject<RawGather & AsyncOptions>(
      options,
      awaitedGather,
      'neighborAllGather',
    );
    const { dtype, held, timeoutMs, results } = this.#gathering(data, given);
    const { native } = this.executor;
    await this.executor.submit(
      {
        op: 'neighborAllGather',
        reads: held.map((one) => one.data),
        writes: held.map((one) => one.out),
        start: (ticket) => native.gatherFromNeighbors(dtype, held, timeoutMs, ticket),
      },
      given.signal,
    );
    return results;
  }
  /** {@link neighborAllGather}, blocking. */
  neighborAllGatherSync(
    data: readonly DeviceBuffer[],
    options?: GroupGatherOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions,
  ): DeviceBuffer[] {
    const given = optionsObject<RawGather>(options, blockingGather, 'neighborAllGather');
    const { dtype, held, timeoutMs, results } = this.#gathering(data, given);
    const [reads, writes] = [held.map((one) => one.data), held.map((one) => one.out)];
    this.executor.blocking('neighborAllGather', reads, writes, () => {
      this.executor.native.gatherFromNeighborsSync(dtype, held, timeoutMs);
    });
    return results;
  }

  #gathering(data: unknown, { neighbors, out, timeoutMs }: RawGather) {
    const op = 'neighborAllGather';
    const { executor } = this;
    const count = executor.heldRanks.length;
    const datas = oneEach(executor, data, 'data');
    const outs = out === undefined ? [] : oneEach(executor, out, 'out');
    const lists = neighbors === undefined ? [] : eachOf(count, neighbors, 'neighbors');
    const calls = datas.map((one, held) => {
      const own = optionsObject(lists[held] as GroupLists, listNames, op);
      const view = viewOfRank(executor, held);
      return prepareNeighborGather(view, this.topology, one, { ...own, out: outs[held] });
    });
    const { dtype } = calls[0]!;
    const other = calls.findIndex((one) => one.dtype !== dtype);
    if (other >= 0) throw otherTypes(executor.heldRanks, other, calls[other]!.dtype, dtype);
    assertRanksApart(
      calls.map((one) => one.data),
      calls.map((one) => one.out),
    );
    const held = calls.map(
      ({ data: reads, out: writes, sources, counts, destinations }): NativeHeldGather => ({
        data: reads,
        out: writes,
        sources,
        counts,
        destinations,
      }),
    );
    const results = calls.map((one) => one.result) as DeviceBuffer[];
    return { dtype, held, timeoutMs: milliseconds(timeoutMs, 'timeoutMs', -1), results };
  }

  /**
   * As {@link Communicator.pairGossip}, of the ranks held here that have a peer, in one call. Of a pair that this process holds
   * both name each other; other processes name the same pairs of theirs in one call too, and those that hold one rank call that.
   *
   * @param data - a buffer for each of the ranks held here, the result's place when there is no `out`. Those of ranks without a peer
   *   stay as they are.
   * @returns the results, and the data of ranks without a peer.
   * @throws GradlinkError ERR_MISMATCH where two bring other lengths or types, when the other pairs have averaged.
   */
  async pairGossip(
    data: readonly DeviceBuffer[],
    options: GroupGossipOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions,
  ): Promise<DeviceBuffer[]> {
    const given = optionsObject<RawGossip & AsyncOptions>(options, awaitedGossip, 'pairGossip');
    const { dtype, pairs, timeoutMs, results } = this.#pairing(data, given);
    const { native } = this.executor;
    if (pairs.length === 0) return results;
    await this.executor.submit(
      {
        op: 'pairGossip',
        reads: pairs.map((one) => one.data),
        writes: pairs.map((one) => one.out),
        start: (ticket) => native.gossip(dtype, pairs, timeoutMs, ticket),
      },
      given.signal,
    );
    return results;
  }
  /** {@link pairGossip}, blocking. */
  pairGossipSync(
    data: readonly DeviceBuffer[],
    options: GroupGossipOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions,
  ): DeviceBuffer[] {
    const given = optionsObject<RawGossip>(options, blockingGossip, 'pairGossip');
    const { dtype, pairs, timeoutMs, results } = this.#pairing(data, given);
    if (pairs.length === 0) return results;
    const [reads, writes] = [pairs.map((one) => one.data), pairs.map((one) => one.out)];
    this.executor.blocking('pairGossip', reads, writes, () => {
      this.executor.native.gossipSync(dtype, pairs, timeoutMs);
    });
    return results;
  }

  #pairing(data: unknown, { pairs, out, timeoutMs }: RawGossip) {
    const { executor } = this;
    const { heldRanks } = executor;
    const datas = oneEach(executor, data, 'data') as readonly DeviceBuffer[];
    const outs = out === undefined ? [] : oneEach(executor, out, 'out');
    const given = eachOf(heldRanks.length, pairs, 'pairs') as readonly (GroupPair | null)[];
    const results = [...datas];
    const calls = given.flatMap((pair, held) => {
      if (pair === null) return [];
      const own = optionsObject(pair, pairNames, 'pairGossip');
      const call = prepareGossip(viewOfRank(executor, held), datas[held], {
        ...own,
        out: outs[held],
      });
      results[held] = call.result as DeviceBuffer;
      return [{ held, ...call }];
    });
    const dtype = calls[0]?.dtype ?? 0;
    const other = calls.find((one) => one.dtype !== dtype);
    if (other !== undefined) throw otherTypes(heldRanks, other.held, other.dtype, dtype);
    assertRanksApart(
      calls.map((one) => one.data),
      calls.map((one) => one.out),
    );
    return {
      dtype,
      timeoutMs: milliseconds(timeoutMs, 'timeoutMs', -1),
      results,
      pairs: calls.map(
        ({ held, peer, data: reads, out: writes, selfWeight, pairWeight }): NativeHeldGossip => ({
          held,
          peer,
          data: reads,
          out: writes,
          selfWeight,
          pairWeight,
        }),
      ),
    };
  }
}
