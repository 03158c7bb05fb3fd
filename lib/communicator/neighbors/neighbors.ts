// Averaging and exchanging with neighbours in a graph instead of with everybody, on one rank. What weights and lists mean
// stands in neighbor-call.ts and neighbor-messages.ts, nodes in hierarchical.ts, windows in window.ts.
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

/** The operations of a {@link Communicator} with its neighbours. */
export abstract class NeighborOperations<M extends Memory> extends Collectives<M, ArrayIn<M>> {
  #static: StaticTopology | undefined;
  readonly #windows = new NamedWindows();

  /** The graph that calls without weights follow; {@link exponentialTwoGraph} until one was set. */
  get topology(): Topology {
    return this.#followed().topology;
  }

  /**
   * Sets the graph of later neighbour operations. Local: every rank sets the same one; where they differ, the next
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
   * Averages with neighbours only: `out = selfWeight * data + Σ srcWeights[s] * (dstWeights of s for this rank) *
   * (data of s)`. Without weights over the rank and its sources in the topology: uniformly, as a sum that is then
   * divided, or by the graph's own weights where {@link setTopology} said `weighted`.
   *
   * float16 and bfloat16 are summed in float32 and rounded once. Integers, in the memory of the host: without weights a sum
   * that wraps around and is then divided, toward zero; whole weights are exact and wrap around; others are summed in float64 and rounded to the nearest whole
   * number, halves to the even one, and what is beyond the type becomes its least or greatest value.
   *
   * @param data - `count` elements, the result's place when there is no `out`.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where somebody sends what nobody awaits, or the other way round.
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
   * Gives each rank what its sources have, one after the other in the order of `srcRanks` (without lists: ascending);
   * its own data is not part of it. Every rank takes part.
   *
   * @param data - what this rank sends to each destination.
   * @param options - `srcRanks`, `dstRanks`, `srcCounts`, `out` of the sum of the counts (made when absent).
   * @throws GradlinkError ERR_MISMATCH, on every rank, where lists, counts or dtypes do not fit together.
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
   * Two ranks average: `out = selfWeight * data + pairWeight * (the peer's data)`, halves when no weights are given.
   * Only the two take part, each naming the other. Integers as in {@link neighborAllReduce}, not on GPUs.
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
   * Collective: an array that neighbours of the topology reach into without this rank's help, see
   * {@link NeighborWindow}. All ranks bring as many elements of one dtype. The topology of now stays the window's.
   *
   * Where ranks are GPUs the array is a new {@link DeviceBuffer} and the sums are the GPU's; what neighbours write
   * travels through the memory of the hosts, and a thread of each rank serves them.
   *
   * Await one with a `name` before the next call: ranks compare the names first.
   *
   * @param data - copied: what the window's array, and unless `zeroInit` the buffers, hold at first.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where topologies, lengths or dtypes differ.
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
   * The open window that {@link createWindow} was given this name for.
   *
   * @throws GradlinkError ERR_UNSUPPORTED where there is none.
   */
  window<A extends ArrayIn<M> & AnyArray = ArrayIn<M> & AnyArray>(name: string): NeighborWindow<A> {
    return this.#windows.find(name) as unknown as NeighborWindow<A>;
  }
  /** The names of open windows, in the order they were made. */
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
