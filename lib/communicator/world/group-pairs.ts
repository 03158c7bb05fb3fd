// Neighbour all-gather and pair averaging on all ranks that one process holds, in one call.
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import { optionNames, optionsObject } from '../../checks.js';
import type { Call } from '../calls/call.js';
import { oneEach } from '../calls/collective-call.js';
import {
  gatherOf,
  gossipOf,
  prepareGossip,
  prepareNeighborGather,
} from '../calls/neighbor-messages.js';
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

/** Gathering and pair averaging of a {@link WorldGroup}. */
export abstract class GroupPairs extends GroupNeighbors {
  /**
   * As {@link Communicator.neighborAllGather} for all ranks held here in one call. Processes with one rank call that.
   *
   * @param data - sent by each rank held here to each of its destinations; all of one type.
   * @returns for each rank the data of its sources, concatenated.
   * @throws GradlinkError ERR_MISMATCH on every rank if lists, counts or types do not fit.
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
    return this.executor.run(this.#gathering(data, given), given.signal);
  }
  /** {@link neighborAllGather}, blocking. */
  neighborAllGatherSync(
    data: readonly DeviceBuffer[],
    options?: GroupGatherOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions,
  ): DeviceBuffer[] {
    const given = optionsObject<RawGather>(options, blockingGather, 'neighborAllGather');
    return this.executor.runSync(this.#gathering(data, given));
  }

  #gathering(data: unknown, { neighbors, out, timeoutMs }: RawGather): Call {
    const op = 'neighborAllGather';
    const { executor } = this;
    const count = executor.heldRanks.length;
    const datas = oneEach(executor, data, 'data');
    const outs = out === undefined ? [] : oneEach(executor, out, 'out');
    const lists = neighbors === undefined ? [] : eachOf(count, neighbors, 'neighbors');
    const ranks = datas.map((one, held) => {
      const own = optionsObject(lists[held] as GroupLists, listNames, op);
      return gatherOf(viewOfRank(executor, held), this.topology, one, { ...own, out: outs[held] });
    });
    const results = ranks.map((one) => one.result);
    return prepareNeighborGather(executor, ranks, timeoutMs, results);
  }

  /**
   * As {@link Communicator.pairGossip} for the held ranks that have a peer, in one call. Two held ranks of a pair name
   * each other. Other processes name the same pairs in one call; those with one rank call pairGossip.
   *
   * @param data - a buffer for each rank held here, replaced by the result without `out`. Buffers of ranks without a
   *   peer are unchanged.
   * @returns the results, and the data of ranks without a peer.
   * @throws GradlinkError ERR_MISMATCH if a pair's lengths or types differ, after the other pairs have averaged.
   */
  async pairGossip(
    data: readonly DeviceBuffer[],
    options: GroupGossipOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions,
  ): Promise<DeviceBuffer[]> {
    const given = optionsObject<RawGossip & AsyncOptions>(options, awaitedGossip, 'pairGossip');
    const call = this.#pairing(data, given);
    return call === undefined ? [...data] : this.executor.run(call, given.signal);
  }
  /** {@link pairGossip}, blocking. */
  pairGossipSync(
    data: readonly DeviceBuffer[],
    options: GroupGossipOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions,
  ): DeviceBuffer[] {
    const given = optionsObject<RawGossip>(options, blockingGossip, 'pairGossip');
    const call = this.#pairing(data, given);
    return call === undefined ? [...data] : this.executor.runSync(call);
  }

  /** Undefined if no held rank has a peer. */
  #pairing(data: unknown, { pairs, out, timeoutMs }: RawGossip): Call | undefined {
    const { executor } = this;
    const { heldRanks } = executor;
    const datas = oneEach(executor, data, 'data') as readonly DeviceBuffer[];
    const outs = out === undefined ? [] : oneEach(executor, out, 'out');
    const given = eachOf(heldRanks.length, pairs, 'pairs') as readonly (GroupPair | null)[];
    const results = [...datas];
    const calls = given.flatMap((pair, held) => {
      if (pair === null) return [];
      const own = { ...optionsObject(pair, pairNames, 'pairGossip'), out: outs[held] };
      const call = gossipOf(viewOfRank(executor, held), held, datas[held], own);
      results[held] = call.result as DeviceBuffer;
      return [call];
    });
    if (calls.length === 0) return undefined;
    return prepareGossip(executor, calls, timeoutMs, results);
  }
}
