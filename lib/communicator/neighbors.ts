// Averaging and exchanging with neighbours in a graph instead of with everybody, on one rank. What weights and lists mean
// stands in neighbor-call.ts and neighbor-messages.ts, nodes in nodes.ts, windows in window.ts.
import { GradlinkError, argumentError } from '../errors.js';
import type { AnyArray } from '../tensor/any-array.js';
import { assertUsable } from '../tensor/leases.js';
import { exponentialTwoGraph } from '../topology/generators.js';
import { Topology } from '../topology/topology.js';
import { milliseconds, optionsObject } from '../validate.js';
import { Collectives } from './collectives.js';
import { prepareNeighbor, readNeighborhood, undivided } from './neighbor-call.js';
import type { NeighborCall, StaticTopology } from './neighbor-call.js';
import { prepareGossip, prepareNeighborGather } from './neighbor-messages.js';
import type { RawGatherOptions, RawGossipOptions } from './neighbor-messages.js';
import type { NeighborWindow } from './window.js';
import { openWindow } from './window-open.js';
import { machineNeighborhood, placeInNodes } from './nodes.js';
import type { Nodes } from './nodes.js';
import { machineTopologyNames, neighborNames, topologyNames, windowNames } from './option-names.js';
import type {
  ArrayIn,
  AsyncOptions,
  CallOptions,
  GossipOptions,
  HierarchicalOptions,
  MachineTopologyOptions,
  Memory,
  NeighborGatherOptions,
  NeighborOptions,
  NewArray,
  Options,
  OutOptions,
  RequiredOptions,
  TopologyOptions,
  WindowOptions,
} from './types.js';

interface Typed {
  readonly dtype?: string | undefined;
}
type RawNeighborOptions = NeighborOptions & OutOptions<unknown> & AsyncOptions & Typed;
type RawHierarchical<A> = HierarchicalOptions & OutOptions<A> & AsyncOptions & Typed;

/** The operations of a {@link Communicator} with its neighbours. */
export abstract class NeighborOperations<M extends Memory> extends Collectives<M, ArrayIn<M>> {
  #static: StaticTopology | undefined;
  #nodes: Nodes<NeighborOperations<M>> | undefined;
  /** Hierarchical operations follow each other: each is several steps on communicators of its own. */
  #lane: Promise<unknown> = Promise.resolve();
  #inLane = 0;

  /** See {@link Communicator.split}. */
  abstract split(
    color: number | null,
    key?: number,
    options?: CallOptions,
  ): Promise<NeighborOperations<M> | null>;
  /** See {@link Communicator.close}. */
  abstract close(): Promise<void>;

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
   * Float types only; float16 and bfloat16 are summed in float32 and rounded once.
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
    const call = this.#prepareNeighbor(data, given);
    await this.#submit(call, given.signal);
    return call.result as O;
  }
  /** {@link neighborAllReduce}, blocking. */
  neighborAllReduceSync<A extends ArrayIn<M>, O extends A | NewArray<A> = A>(
    data: A,
    ...[options]: Options<A, NeighborOptions & OutOptions<O> & CallOptions>
  ): O {
    const { blocking } = neighborNames.neighborAllReduce;
    const given = optionsObject<RawNeighborOptions>(options, blocking, 'neighborAllReduce');
    const call = this.#prepareNeighbor(data, given);
    this.#runSync(call);
    return call.result as O;
  }

  #prepareNeighbor(data: unknown, given: RawNeighborOptions): NeighborCall {
    const weights = readNeighborhood(this.executor, this.#followed(), given);
    return prepareNeighbor(this.executor, data, given, weights);
  }

  async #submit(call: NeighborCall, signal: AbortSignal | undefined): Promise<void> {
    const { dtype, data, out, count, neighborhoods, timeoutMs } = call;
    const { native } = this.executor;
    await this.executor.submit(
      {
        op: 'neighborAllReduce',
        reads: data,
        writes: out,
        start: (ticket) =>
          native.neighborAllReduce(dtype, data, out, count, neighborhoods, timeoutMs, ticket),
      },
      signal,
    );
  }

  #runSync({ dtype, data, out, count, neighborhoods, timeoutMs }: NeighborCall): void {
    assertUsable('neighborAllReduce', data, out);
    this.executor.native.neighborAllReduceSync(dtype, data, out, count, neighborhoods, timeoutMs);
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
    const call = prepareNeighborGather(this.executor, this.topology, data, given);
    const { dtype, out, sources, counts, destinations, timeoutMs } = call;
    const { native } = this.executor;
    await this.executor.submit(
      {
        op: 'neighborAllGather',
        reads: call.data,
        writes: out,
        start: (ticket) =>
          native.neighborAllGather(
            dtype,
            call.data,
            out,
            sources,
            counts,
            destinations,
            timeoutMs,
            ticket,
          ),
      },
      given.signal,
    );
    return call.result as NewArray<A>;
  }
  /** {@link neighborAllGather}, blocking. */
  neighborAllGatherSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, NeighborGatherOptions & OutOptions<NewArray<A>> & CallOptions>
  ): NewArray<A> {
    const { blocking } = neighborNames.neighborAllGather;
    const given = optionsObject<RawGatherOptions>(options, blocking, 'neighborAllGather');
    const call = prepareNeighborGather(this.executor, this.topology, data, given);
    const { dtype, out, sources, counts, destinations, timeoutMs } = call;
    assertUsable('neighborAllGather', call.data, out);
    this.executor.native.neighborAllGatherSync(
      dtype,
      call.data,
      out,
      sources,
      counts,
      destinations,
      timeoutMs,
    );
    return call.result as NewArray<A>;
  }

  /**
   * Two ranks average: `out = selfWeight * data + pairWeight * (the peer's data)`, halves when no weights are given.
   * Only the two take part, each naming the other. Float types only.
   */
  async pairGossip<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, GossipOptions & OutOptions<A> & AsyncOptions>
  ): Promise<A> {
    const { awaited } = neighborNames.pairGossip;
    const given = optionsObject<RawGossipOptions & AsyncOptions>(options, awaited, 'pairGossip');
    const call = prepareGossip(this.executor, data, given);
    const { dtype, out, peer, selfWeight, pairWeight, timeoutMs } = call;
    const { native } = this.executor;
    await this.executor.submit(
      {
        op: 'pairGossip',
        reads: call.data,
        writes: out,
        start: (ticket) =>
          native.pairGossip(dtype, call.data, out, peer, selfWeight, pairWeight, timeoutMs, ticket),
      },
      given.signal,
    );
    return call.result as A;
  }
  /** {@link pairGossip}, blocking. */
  pairGossipSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: RequiredOptions<A, GossipOptions & OutOptions<A> & CallOptions>
  ): A {
    const { blocking } = neighborNames.pairGossip;
    const given = optionsObject<RawGossipOptions>(options, blocking, 'pairGossip');
    const call = prepareGossip(this.executor, data, given);
    const { dtype, out, peer, selfWeight, pairWeight, timeoutMs } = call;
    assertUsable('pairGossip', call.data, out);
    this.executor.native.pairGossipSync(
      dtype,
      call.data,
      out,
      peer,
      selfWeight,
      pairWeight,
      timeoutMs,
    );
    return call.result as A;
  }

  /**
   * Collective: forms the nodes that {@link hierarchicalNeighborAllReduce} works over, and sets which node averages
   * with which. Node n holds the ranks from `n * ranksPerNode` on.
   *
   * @param topology - of nodes; {@link exponentialTwoGraph} of their number when absent.
   */
  async setMachineTopology(topology?: Topology, options?: MachineTopologyOptions): Promise<void> {
    const given = optionsObject(options, machineTopologyNames, 'setMachineTopology');
    const place = placeInNodes(this.executor, given.ranksPerNode);
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const calls = timeoutMs < 0 ? {} : { timeoutMs };
    const graph = checkedTopology(
      topology ?? exponentialTwoGraph(place.nodes),
      place.nodes,
      'nodes',
    );
    await this.#next(async () => {
      const before = this.#nodes;
      const node = await this.split(place.node, place.local, calls);
      const leaders = await this.split(place.local === 0 ? 0 : null, place.node, calls);
      this.#nodes = {
        place,
        node: node!,
        leaders,
        topology: graph,
        weighted: given.weighted ?? false,
      };
      await Promise.all([before?.node.close(), before?.leaders?.close()]);
    });
  }

  /**
   * {@link neighborAllReduce} between nodes: the ranks of a node add up, the first of each node averages with other
   * nodes, and all of a node get the result, `(selfWeight * S + Σ srcMachineWeights[m] * (dstMachineWeights of m) *
   * S_m) / ranksPerNode` for the sums S; without weights the average over all ranks of a node and its sources.
   * Float types only. Call {@link setMachineTopology} first.
   *
   * @param data - `count` elements, the result's place when there is no `out`.
   */
  async hierarchicalNeighborAllReduce<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, HierarchicalOptions & OutOptions<A> & AsyncOptions>
  ): Promise<A> {
    const op = 'hierarchicalNeighborAllReduce';
    const given = optionsObject<RawHierarchical<A>>(options, neighborNames[op].awaited, op);
    const { nodes, out, sum, weights, rest } = this.#prepareHierarchical(data, given);
    const { signal } = given;
    return this.#next(async () => {
      await nodes.node.allReduce(data as never, { ...sum, signal } as never);
      if (nodes.leaders !== null) {
        const { leaders } = nodes;
        await leaders.#submit(prepareNeighbor(leaders.executor, out, rest, weights), signal);
      }
      await nodes.node.broadcast(out as never, { ...rest, signal } as never);
      return out;
    });
  }
  /** {@link hierarchicalNeighborAllReduce}, blocking; not while an asynchronous one is pending. */
  hierarchicalNeighborAllReduceSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, HierarchicalOptions & OutOptions<A> & CallOptions>
  ): A {
    const op = 'hierarchicalNeighborAllReduce';
    const given = optionsObject<RawHierarchical<A>>(options, neighborNames[op].blocking, op);
    const { nodes, out, sum, weights, rest } = this.#prepareHierarchical(data, given);
    if (this.#inLane > 0) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        'hierarchicalNeighborAllReduceSync: an asynchronous one is pending: await that first',
        { op: 'hierarchicalNeighborAllReduce', usable: true },
      );
    }
    nodes.node.allReduceSync(data as never, sum as never);
    if (nodes.leaders !== null) {
      const { leaders } = nodes;
      leaders.#runSync(prepareNeighbor(leaders.executor, out, rest, weights));
    }
    nodes.node.broadcastSync(out as never, rest as never);
    return out;
  }

  #prepareHierarchical<A extends ArrayIn<M>>(data: A, options: RawHierarchical<A>) {
    const nodes = this.#nodes;
    if (nodes === undefined) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        'hierarchicalNeighborAllReduce: no nodes yet: await setMachineTopology() on all ranks first',
        { op: 'hierarchicalNeighborAllReduce', usable: true },
      );
    }
    const divided = machineNeighborhood(nodes, options);
    const weights = this.executor.gpus.length > 0 ? undivided(divided) : divided;
    const { dtype, timeoutMs } = options;
    const rest = {
      ...(dtype === undefined ? {} : { dtype }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    // Checks data and out as a whole before anything is sent.
    prepareNeighbor(this.executor, data, options, weights);
    const out = options.out ?? data;
    return { nodes, out, weights, rest, sum: { ...rest, out } };
  }

  /**
   * Collective: an array that neighbours of the topology reach into without this rank's help, see
   * {@link NeighborWindow}. All ranks bring as many elements of one dtype. The topology of now stays the window's.
   *
   * Where ranks are GPUs the array is a new {@link DeviceBuffer} and the sums are the GPU's; what neighbours write
   * travels through the memory of the hosts, and a thread of each rank serves them.
   *
   * @param data - copied: what the window's array, and unless `zeroInit` the buffers, hold at first.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where topologies, lengths or dtypes differ.
   */
  async createWindow<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, WindowOptions>
  ): Promise<NeighborWindow<NewArray<A> & AnyArray>> {
    const given = optionsObject<WindowOptions & Typed>(options, windowNames, 'createWindow');
    return openWindow(this.executor, this.#followed(), data, given);
  }

  async #next<T>(run: () => Promise<T>): Promise<T> {
    this.#inLane++;
    const mine = this.#lane.then(run);
    this.#lane = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.#inLane--;
    }
  }

  /** @internal Ends the communicators of nodes, once their operations have. */
  protected async closeNodes(): Promise<void> {
    await this.#lane;
    await Promise.all([this.#nodes?.node.close(), this.#nodes?.leaders?.close()]);
  }
}

function checkedTopology(topology: unknown, size: number, what: string): Topology {
  if (!(topology instanceof Topology) || topology.size !== size) {
    const expected = `a Topology of ${size} ${what}`;
    const got = topology instanceof Topology ? { text: `one of ${topology.size}` } : topology;
    throw argumentError('ERR_INVALID_ARG_VALUE', 'topology', expected, got);
  }
  return topology;
}
