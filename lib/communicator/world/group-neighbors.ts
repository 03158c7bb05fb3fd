// Averages with neighbours on all ranks that one process holds, in one call.
import { argumentError } from '../../errors.js';
import type { NativeBuffer, NativeNeighborhood } from '../../native/communicator.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import { exponentialTwoGraph } from '../../topology/generators.js';
import type { Topology } from '../../topology/topology.js';
import { optionNames, optionsObject } from '../../checks.js';
import type { Call } from '../calls/call.js';
import { assertRanksApart, oneEach } from '../calls/collective-call.js';
import { prepareNeighbor, readNeighborhood } from '../calls/neighbor-call.js';
import type { StaticTopology } from '../calls/neighbor-call.js';
import { checkedTopology } from '../neighbors/neighbors.js';
import { topologyNames } from '../calls/option-names.js';
import type {
  AsyncOptions,
  CallOptions,
  OutOptions,
  TopologyOptions,
  Group,
} from '../calls/types.js';
import type { NeighborWindow } from '../windows/window.js';
import { openWindows } from '../windows/window-open.js';
import { GroupMessages } from './group-messages.js';
import { eachOf } from './group-types.js';
import type { GroupNeighborOptions, GroupWeights, GroupWindowOptions } from './group-types.js';

type RawOptions = GroupNeighborOptions & OutOptions<readonly DeviceBuffer[]>;

const blockingNames = optionNames<RawOptions & CallOptions>({
  neighbors: true,
  checkTopology: true,
  out: true,
  timeoutMs: true,
});
const awaitedNames = optionNames<RawOptions & AsyncOptions>({
  neighbors: true,
  checkTopology: true,
  out: true,
  timeoutMs: true,
  signal: true,
});
const weightNames = optionNames<GroupWeights>({
  selfWeight: true,
  srcWeights: true,
  dstWeights: true,
});

const groupWindowNames = optionNames<GroupWindowOptions>({
  zeroInit: true,
  associatedP: true,
  timeoutMs: true,
});

/** The group as one held rank, for the checks of a single rank's calls. */
export function viewOfRank({ size, heldRanks, gpus }: Group, held: number): Group {
  const rank = heldRanks[held]!;
  return { size, rank, heldRanks: [rank], gpus: [gpus[held]!], takesLists: false };
}

/** The neighbour operations of a {@link WorldGroup}. */
export abstract class GroupNeighbors extends GroupMessages {
  #static: StaticTopology | undefined;

  /** The graph of calls without weights; {@link exponentialTwoGraph} until one is set. */
  get topology(): Topology {
    return this.#followed().topology;
  }

  /** As {@link Communicator.setTopology}: local, and the same on all processes. */
  setTopology(topology: Topology, options?: TopologyOptions): void {
    const { weighted = false } = optionsObject(options, topologyNames, 'setTopology');
    this.#static = { topology: checkedTopology(topology, this.size, 'ranks'), weighted };
  }

  #followed(): StaticTopology {
    return (this.#static ??= { topology: exponentialTwoGraph(this.size), weighted: false });
  }

  /**
   * As {@link Communicator.neighborAllReduce} for all ranks held here in one call. Processes with one rank call that.
   *
   * @param data - a buffer for each rank held here, replaced by the result without `out`.
   * @throws GradlinkError ERR_MISMATCH on every rank if senders and receivers do not match.
   */
  async neighborAllReduce(
    data: readonly DeviceBuffer[],
    options?: GroupNeighborOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions,
  ): Promise<DeviceBuffer[]> {
    const given = optionsObject(options, awaitedNames, 'neighborAllReduce');
    return this.executor.run(this.#prepare(data, given), given.signal);
  }
  /** {@link neighborAllReduce}, blocking. */
  neighborAllReduceSync(
    data: readonly DeviceBuffer[],
    options?: GroupNeighborOptions & OutOptions<readonly DeviceBuffer[]> & CallOptions,
  ): DeviceBuffer[] {
    const given = optionsObject(options, blockingNames, 'neighborAllReduce');
    return this.executor.runSync(this.#prepare(data, given));
  }

  /**
   * As {@link Communicator.createWindow} for all ranks held here in one call. Processes with one rank call that,
   * without a name. The windows keep the current topology.
   *
   * Operations of the windows of one process run one after another; none waits for a later one. Free each of them.
   *
   * @param data - a buffer for each rank held here, copied.
   * @returns the window of each.
   * @throws GradlinkError ERR_MISMATCH on every rank if topologies, lengths or types differ.
   */
  async createWindow(
    data: readonly DeviceBuffer[],
    options?: GroupWindowOptions,
  ): Promise<NeighborWindow<DeviceBuffer>[]> {
    const given = optionsObject(options, groupWindowNames, 'createWindow');
    const { executor } = this;
    const datas = oneEach(executor, data, 'data') as readonly DeviceBuffer[];
    const views = datas.map((_, held) => viewOfRank(executor, held));
    return openWindows(executor, this.#followed(), views, datas, given);
  }

  #prepare(data: unknown, given: RawOptions & CallOptions) {
    const { executor } = this;
    const { neighbors, checkTopology, out, timeoutMs } = given;
    const datas = oneEach(executor, data, 'data');
    const outs = out === undefined ? [] : oneEach(executor, out, 'out');
    const weights =
      neighbors === undefined ? [] : eachOf(executor.heldRanks.length, neighbors, 'neighbors');
    const calls = executor.heldRanks.map((_, held) => {
      const view = viewOfRank(executor, held);
      const own = optionsObject(weights[held] as GroupWeights, weightNames, 'neighborAllReduce');
      const neighborhood = readNeighborhood(view, this.#followed(), { ...own, checkTopology });
      return prepareNeighbor(view, datas[held], { out: outs[held], timeoutMs }, neighborhood);
    });
    return together(executor, calls);
  }
}

/** Combines the calls of held ranks into one. */
export function together({ heldRanks }: Group, calls: readonly Call[]): Call {
  const first = calls[0]!;
  const other = calls.findIndex(({ code, count }) => code !== first.code || count !== first.count);
  if (other >= 0) {
    const expected = 'arrays of one type and length for all ranks';
    const text = `different ones for ranks ${heldRanks[0]} and ${heldRanks[other]}`;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'data', expected, { text });
  }
  const input = calls.map((one) => one.input as NativeBuffer);
  const output = calls.map((one) => one.output as NativeBuffer);
  assertRanksApart(input, output);
  const more = calls.flatMap((one) => one.more as readonly NativeNeighborhood[]);
  return { ...first, input, output, more, result: calls.map((one) => one.result) };
}
