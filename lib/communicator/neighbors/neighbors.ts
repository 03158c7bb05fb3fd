// Averages and exchanges with neighbours in a graph, on one rank. See neighbor-call.ts and neighbor-messages.ts for
// weights and lists, hierarchical.ts for nodes, window.ts for windows.
import { argumentError } from '../../errors.js';
import type { AnyArray } from '../../tensor/any-array.js';
import { exponentialTwoGraph } from '../../topology/generators.js';
import { Topology } from '../../topology/topology.js';
import { wellFormed, optionsObject } from '../../checks.js';
import { Collectives } from '../collectives/collectives.js';
import { NamedWindows, assertSameName, nameHash } from '../windows/named-windows.js';
import type { Call } from '../calls/call.js';
import { prepareNeighbor, readNeighborhood } from '../calls/neighbor-call.js';
import type { StaticTopology } from '../calls/neighbor-call.js';
import {
  gatherOf,
  gossipOf,
  prepareGossip,
  prepareNeighborGather,
} from '../calls/neighbor-messages.js';
import type { RawGatherOptions, RawGossipOptions } from '../calls/neighbor-messages.js';
import type { NeighborWindow } from '../windows/window.js';
import { openWindow } from '../windows/window-open.js';
import { neighborNames, topologyNames, windowNames } from '../calls/option-names.js';
import type {
  ArrayIn,
  AsyncOptions,
  CallOptions,
  GossipOptions,
  Memory,
  NeighborGatherOptions,
  NeighborOptions,
  NewArray,
  Options,
  OutOptions,
  RequiredOptions,
  TopologyOptions,
  WindowOptions,
} from '../calls/types.js';

interface Typed {
  readonly dtype?: string | undefined;
}
type RawNeighborOptions = NeighborOptions & OutOptions<unknown> & AsyncOptions & Typed;

/** The neighbour operations of a {@link Communicator}. */
export abstract class NeighborOperations<M extends Memory> extends Collectives<M, ArrayIn<M>> {
  #static: StaticTopology | undefined;
  readonly #windows = new NamedWindows();

  /** The graph of calls without weights; {@link exponentialTwoGraph} until one is set. */
  get topology(): Topology {
    return this.#followed().topology;
  }

  /**
   * Sets the graph of later neighbour operations. Local: every rank sets the same one; if they differ, the next
   * operation is ERR_MISMATCH on every rank.
   */
  setTopology(topology: Topology, options?: TopologyOptions): void {
    const { weighted = false } = optionsObject(options, topologyNames, 'setTopology');
    this.#static = { topology: checkedTopology(topology, this.executor.size, 'ranks'), weighted };
  }

  #followed(): StaticTopology {
    return (this.#static ??= {
      topology: exponentialTwoGraph(this.executor.size),
      weighted: false,
    });
  }

  /**
   * Averages with neighbours only: `out = selfWeight * data + Σ srcWeights[s] * (dstWeights of s for this rank) * (data
   * of s)`. Without weights, averages over the rank and its sources in the topology: uniformly (a sum, then divided),
   * or with the graph's weights after {@link setTopology} with `weighted`.
   *
   * float16 and bfloat16 are summed in float32 and rounded once. Integers in host memory: without weights a wrapping
   * sum is divided toward zero. Integer weights are exact and wrap. Other weights are summed in float64, rounded half
   * to even and clamped to the type's range.
   *
   * @param data - `count` elements, replaced by the result without `out`.
   * @throws GradlinkError ERR_MISMATCH on every rank if senders and receivers do not match.
   */
  async neighborAllReduce<A extends ArrayIn<M>, O extends A | NewArray<A> = A>(
    data: A,
    ...[options]: Options<A, NeighborOptions & OutOptions<O> & AsyncOptions>
  ): Promise<O> {
    const { awaited } = neighborNames.neighborAllReduce;
    const given = optionsObject<RawNeighborOptions>(options, awaited, 'neighborAllReduce');
    return this.executor.run(this.#prepareNeighbor(data, given), given.signal);
  }
  /** {@link neighborAllReduce}, blocking. */
  neighborAllReduceSync<A extends ArrayIn<M>, O extends A | NewArray<A> = A>(
    data: A,
    ...[options]: Options<A, NeighborOptions & OutOptions<O> & CallOptions>
  ): O {
    const { blocking } = neighborNames.neighborAllReduce;
    const given = optionsObject<RawNeighborOptions>(options, blocking, 'neighborAllReduce');
    return this.executor.runSync(this.#prepareNeighbor(data, given));
  }

  #prepareNeighbor(data: unknown, given: RawNeighborOptions): Call {
    const weights = readNeighborhood(this.executor, this.#followed(), given);
    return prepareNeighbor(this.executor, data, given, weights);
  }

  /**
   * Gives each rank the data of its sources in the order of `srcRanks` (ascending without lists), without its own.
   * Every rank takes part.
   *
   * @param data - sent to each destination.
   * @param options - `srcRanks`, `dstRanks`, `srcCounts`, `out` of the sum of the counts (made when absent).
   * @throws GradlinkError ERR_MISMATCH on every rank if lists, counts or dtypes do not fit.
   */
  async neighborAllGather<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, NeighborGatherOptions & OutOptions<NewArray<A>> & AsyncOptions>
  ): Promise<NewArray<A>> {
    const { awaited } = neighborNames.neighborAllGather;
    const given = optionsObject<RawGatherOptions & AsyncOptions>(
      options,
      awaited,
      'neighborAllGather',
    );
    return this.executor.run(this.#prepareGather(data, given), given.signal);
  }
  /** {@link neighborAllGather}, blocking. */
  neighborAllGatherSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, NeighborGatherOptions & OutOptions<NewArray<A>> & CallOptions>
  ): NewArray<A> {
    const { blocking } = neighborNames.neighborAllGather;
    const given = optionsObject<RawGatherOptions>(options, blocking, 'neighborAllGather');
    return this.executor.runSync(this.#prepareGather(data, given));
  }

  #prepareGather(data: unknown, given: RawGatherOptions): Call {
    const own = gatherOf(this.executor, this.topology, data, given);
    return prepareNeighborGather(this.executor, [own], given.timeoutMs, own.result);
  }

  /**
   * Averages two ranks: `out = selfWeight * data + pairWeight * (the peer's data)`, with weights 1/2 by default. Only
   * the two take part, each naming the other. Integers as in {@link neighborAllReduce}, not on GPUs.
   */
  async pairGossip<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, GossipOptions & OutOptions<A> & AsyncOptions>
  ): Promise<A> {
    const { awaited } = neighborNames.pairGossip;
    const given = optionsObject<RawGossipOptions & AsyncOptions>(options, awaited, 'pairGossip');
    return this.executor.run(this.#prepareGossip(data, given), given.signal);
  }
  /** {@link pairGossip}, blocking. */
  pairGossipSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, GossipOptions & OutOptions<A> & CallOptions>
  ): A {
    const { blocking } = neighborNames.pairGossip;
    const given = optionsObject<RawGossipOptions>(options, blocking, 'pairGossip');
    return this.executor.runSync(this.#prepareGossip(data, given));
  }

  #prepareGossip(data: unknown, given: RawGossipOptions): Call {
    const own = gossipOf(this.executor, 0, data, given);
    return prepareGossip(this.executor, [own], given.timeoutMs, own.result);
  }

  /**
   * Collective: creates an array that neighbours in the topology access without this rank's help, see
   * {@link NeighborWindow}. All ranks give the same count and dtype. The window keeps the current topology.
   *
   * On GPUs the array is a new {@link DeviceBuffer}, and the GPU computes the sums. Neighbors' writes go through host
   * memory, served by a thread of each rank.
   *
   * Await one with a `name` before the next call: ranks compare the names first.
   *
   * @param data - copied: the initial content of the window's array and, unless `zeroInit`, of the buffers.
   * @throws GradlinkError ERR_MISMATCH on every rank if topologies, lengths or dtypes differ.
   */
  async createWindow<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, WindowOptions>
  ): Promise<NeighborWindow<NewArray<A> & AnyArray>> {
    const given = optionsObject<WindowOptions & Typed>(options, windowNames, 'createWindow');
    const by = this.#followed();
    if (given.name === undefined) return openWindow(this.executor, by, data, given);
    const name = wellFormed(given.name, 'name');
    return this.#windows.open(name, async (onFree) => {
      if (this.executor.gpus.length === 0) {
        const calls = given.timeoutMs === undefined ? {} : { timeoutMs: given.timeoutMs };
        const hashes: unknown = await this.allGather(nameHash(name) as never, calls as never);
        assertSameName(name, hashes as Int32Array);
      }
      return openWindow(this.executor, by, data, given, onFree);
    });
  }

  /**
   * The open window with this name.
   *
   * @throws GradlinkError ERR_UNSUPPORTED if there is none.
   */
  window<A extends ArrayIn<M> & AnyArray = ArrayIn<M> & AnyArray>(name: string): NeighborWindow<A> {
    return this.#windows.find(name) as unknown as NeighborWindow<A>;
  }
  /** The names of open windows, in order of creation. */
  get windowNames(): readonly string[] {
    return this.#windows.names;
  }
}

export function checkedTopology(topology: unknown, size: number, what: string): Topology {
  if (!(topology instanceof Topology) || topology.size !== size) {
    const expected = `a Topology of ${size} ${what}`;
    const got = topology instanceof Topology ? { text: `one of size ${topology.size}` } : topology;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'topology', expected, got);
  }
  return topology;
}
