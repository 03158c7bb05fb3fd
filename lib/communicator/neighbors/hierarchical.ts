// Averaging between nodes: inside each node, then between the first ranks of the nodes, then to all of a node. Who is in
// which node stands in nodes.ts.
import { GradlinkError } from '../../errors.js';
import { exponentialTwoGraph } from '../../topology/generators.js';
import type { Node } from '../../topology/rank.js';
import type { Topology } from '../../topology/topology.js';
import type { NativeNeighborhood } from '../../native/communicator.js';
import { allocateLike } from '../../tensor/any-array.js';
import type { NumericArray } from '../../tensor/dtype.js';
import { storeNarrowed, widened } from '../../tensor/partial.js';
import { milliseconds, optionsObject } from '../../checks.js';
import { hostsOfRanks } from '../joining/hosts.js';
import { checkedTopology, NeighborOperations } from './neighbors.js';
import { dtypeOf } from '../calls/call.js';
import { prepareNeighbor } from '../calls/neighbor-call.js';
import { alikeInRuns, machineNeighborhood, placeInNodes } from './nodes.js';
import type { Nodes, PlaceInNodes } from './nodes.js';
import {
  errorOf,
  nodesEnded,
  nodesFailure,
  noNodes,
  reasonOf,
  sizesDiffer,
} from './nodes-failure.js';
import { callNames, machineTopologyNames, neighborNames } from '../calls/option-names.js';
import type {
  ArrayIn,
  AsyncOptions,
  CallOptions,
  HierarchicalOptions,
  MachineTopologyOptions,
  Memory,
  Options,
  OutOptions,
} from '../calls/types.js';

/** One call, its arguments checked. */
interface HierarchicalCall<M extends Memory, A> {
  readonly nodes: Nodes<HierarchicalOperations<M>>;
  readonly data: A;
  readonly out: A;
  /** The element type's. */
  readonly number: number;
  readonly onHosts: boolean;
  readonly weights: NativeNeighborhood;
  /** dtype and timeoutMs, as given. */
  readonly rest: CallOptions & Typed;
}

/** What some of the ranks do together. */
interface Step<M extends Memory> {
  readonly kind: 'allReduce' | 'average' | 'broadcast';
  readonly among: HierarchicalOperations<M>;
  readonly data: unknown;
  readonly options: CallOptions & Typed & { readonly out?: unknown };
}

/**
 * A rank's part. Sums of a node that would be rounded, overflow or wrap around before they are divided are kept in a wider type,
 * on hosts. That is one for several types: those that the ranks brought are compared by calls without elements.
 */
function* stepsOf<M extends Memory, A extends ArrayIn<M>>(
  call: HierarchicalCall<M, A>,
): Generator<Step<M>> {
  const { data, out, number, weights, rest } = call;
  const { node, leaders, place } = call.nodes;
  const wide =
    place.perNode > 1 && call.onHosts ? widened(data as NumericArray, number) : undefined;
  if (wide === undefined) {
    yield { kind: 'allReduce', among: node, data, options: { ...rest, out } };
    if (leaders !== null) yield { kind: 'average', among: leaders, data: out, options: rest };
  } else {
    const none = allocateLike(out, number, 0);
    const { timeoutMs } = rest;
    const options = timeoutMs === undefined ? {} : { timeoutMs };
    yield { kind: 'allReduce', among: node, data: none, options: rest };
    yield { kind: 'allReduce', among: node, data: wide, options };
    if (leaders !== null) {
      yield { kind: 'average', among: leaders, data: none, options: rest };
      yield { kind: 'average', among: leaders, data: wide, options };
      const whole = [weights.selfWeight, ...weights.sourceWeights].every(Number.isInteger);
      storeNarrowed(wide, out as NumericArray, number, whole ? 'whole' : 'others');
    }
  }
  yield { kind: 'broadcast', among: node, data: out, options: rest };
}

interface Typed {
  readonly dtype?: string | undefined;
}
type RawHierarchical<A> = HierarchicalOptions & OutOptions<A> & AsyncOptions & Typed;

/** The operations of a {@link Communicator} over nodes. */
export abstract class HierarchicalOperations<M extends Memory> extends NeighborOperations<M> {
  #nodes: Nodes<HierarchicalOperations<M>> | undefined;
  /** Hierarchical operations follow each other: each is several steps on communicators of its own. */
  #lane: Promise<unknown> = Promise.resolve();
  #inLane = 0;

  /** This rank's place in its node: after {@link setMachineTopology} as that formed them, before as it would by default. */
  get localRank(): number {
    return this.#place().local;
  }
  /** Ranks of each node. */
  get localSize(): number {
    return this.#place().perNode;
  }
  /** This rank's node. */
  get machineRank(): Node {
    return this.#place().node;
  }
  /** How many nodes there are. */
  get machineSize(): number {
    return this.#place().nodes;
  }
  #place(): PlaceInNodes {
    return this.#nodes?.place ?? placeInNodes(this.executor, undefined);
  }

  /**
   * Collective: whether each host runs as many ranks as any other, which follow each other, so that nodes are hosts where
   * `ranksPerNode` is that many.
   */
  async isHomogeneous(
    this: HierarchicalOperations<'host'>,
    options?: CallOptions,
  ): Promise<boolean> {
    const calls = optionsObject(options, callNames, 'isHomogeneous');
    if (this.gpus.length > 0) {
      const message = 'isHomogeneous: for ranks in the memory of the host';
      throw new GradlinkError('ERR_UNSUPPORTED', message, { op: 'isHomogeneous', usable: true });
    }
    return alikeInRuns(await hostsOfRanks(this, calls));
  }

  /** See {@link Communicator.split}. */
  abstract split(
    color: number | null,
    key?: number,
    options?: CallOptions,
  ): Promise<HierarchicalOperations<M> | null>;
  /**
   * {@link split} for what all ranks of a part call together: on GPUs NCCL's communicator of the part is made in the first such
   * call that moves data, and never where none comes.
   * @internal
   */
  protected abstract splitForCollectives(
    color: number | null,
    key: number,
    options: CallOptions,
  ): Promise<HierarchicalOperations<M> | null>;
  /** See {@link Communicator.close}. */
  abstract close(): Promise<void>;

  /**
   * Collective: forms the nodes that {@link hierarchicalNeighborAllReduce} works over, and sets which node averages
   * with which. Node n holds the ranks from `n * ranksPerNode` on.
   *
   * @param topology - of nodes; {@link exponentialTwoGraph} of their number when absent.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where ranks differ in `ranksPerNode`.
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
      await this.#sameForAll(place.perNode, calls);
      const node = await this.splitForCollectives(place.node, place.local, calls);
      const leader = place.local === 0 ? 0 : null;
      const leaders = await this.splitForCollectives(leader, place.node, calls);
      // Who waits in a part of its own hears through this one of a rank that gave up in another.
      for (const part of [node, leaders]) part?.executor.native.follow(this.executor.native);
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
  /** Ranks that say the same end in one group: where that is not everybody, each of them knows. */
  async #sameForAll(perNode: number, calls: CallOptions): Promise<void> {
    const alike = await this.splitForCollectives(perNode, this.executor.rank, calls);
    const count = alike!.executor.size;
    await alike!.close();
    const { size } = this.executor;
    if (count !== size) throw sizesDiffer(count, size, perNode);
  }

  /**
   * {@link neighborAllReduce} between nodes: the ranks of a node add up, the first of each node averages with other
   * nodes, and all of a node get the result, `(selfWeight * S + Σ srcMachineWeights[m] * (dstMachineWeights of m) *
   * S_m) / ranksPerNode` for the sums S; without weights the average over all ranks of a node and its sources.
   * Integers as in {@link neighborAllReduce}, not on GPUs. Call {@link setMachineTopology} first.
   *
   * A failure anywhere ends the call on every rank at once, and the nodes with it. After ERR_MISMATCH the communicator stays
   * usable, and {@link setMachineTopology} forms new nodes; after others it is usable on no rank.
   *
   * @param data - `count` elements, the result's place when there is no `out`.
   * @throws GradlinkError ERR_MISMATCH, on every rank, where counts, types or neighbours do not fit.
   */
  async hierarchicalNeighborAllReduce<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, HierarchicalOptions & OutOptions<A> & AsyncOptions>
  ): Promise<A> {
    const op = 'hierarchicalNeighborAllReduce';
    const given = optionsObject<RawHierarchical<A>>(options, neighborNames[op].awaited, op);
    const call = this.#prepareHierarchical(data, given);
    const { nodes } = call;
    const { signal } = given;
    return this.#next(async () => {
      if (nodes.failure !== undefined) throw nodesEnded(nodes.failure);
      try {
        for (const { kind, among, data: own, options: how } of stepsOf(call)) {
          if (kind === 'average') {
            const average = prepareNeighbor(among.executor, own, how, call.weights);
            await among.executor.run(average, signal);
          } else {
            const all = { ...how, signal } as never;
            if (kind === 'allReduce') await among.allReduce(own as never, all);
            else await among.broadcast(own as never, all);
          }
        }
      } catch (error) {
        const failure = this.#endNodes(nodes, error);
        throw signal?.aborted === true ? error : failure;
      }
      return call.out;
    });
  }
  /** {@link hierarchicalNeighborAllReduce}, blocking; not while an asynchronous one is pending. */
  hierarchicalNeighborAllReduceSync<A extends ArrayIn<M>>(
    data: A,
    ...[options]: Options<A, HierarchicalOptions & OutOptions<A> & CallOptions>
  ): A {
    const op = 'hierarchicalNeighborAllReduce';
    const given = optionsObject<RawHierarchical<A>>(options, neighborNames[op].blocking, op);
    const call = this.#prepareHierarchical(data, given);
    const { nodes } = call;
    if (this.#inLane > 0) {
      throw new GradlinkError(
        'ERR_UNSUPPORTED',
        'hierarchicalNeighborAllReduceSync: an asynchronous one is pending: await that first',
        { op: 'hierarchicalNeighborAllReduce', usable: true },
      );
    }
    if (nodes.failure !== undefined) throw nodesEnded(nodes.failure);
    try {
      for (const { kind, among, data: own, options: how } of stepsOf(call)) {
        if (kind === 'average') {
          among.executor.runSync(prepareNeighbor(among.executor, own, how, call.weights));
        } else {
          if (kind === 'allReduce') among.allReduceSync(own as never, how as never);
          else among.broadcastSync(own as never, how as never);
        }
      }
    } catch (error) {
      throw this.#endNodes(nodes, error);
    }
    return call.out;
  }

  /**
   * Ends the communicators of the nodes, so that all who wait in one hear of it, and this one where the failure is more than a
   * mismatch: then no rank can go on, not only those that saw it.
   */
  #endNodes(nodes: Nodes<HierarchicalOperations<M>>, error: unknown): GradlinkError {
    const failure = nodesFailure(error, this.executor.rank);
    nodes.failure = failure;
    const reason = reasonOf(failure);
    nodes.leaders?.abort(reason);
    nodes.node.abort(reason);
    if (!failure.usable) this.abort(reason);
    return errorOf(failure, error);
  }

  #prepareHierarchical<A extends ArrayIn<M>>(data: A, options: RawHierarchical<A>) {
    const nodes = this.#nodes;
    if (nodes === undefined) throw noNodes();
    const weights = machineNeighborhood(nodes, options);
    const { dtype, timeoutMs } = options;
    const rest = {
      ...(dtype === undefined ? {} : { dtype }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    // Checks data and out as a whole before anything is sent.
    const number = dtypeOf(prepareNeighbor(this.executor, data, options, weights));
    const onHosts = this.executor.gpus.length === 0;
    return { nodes, data, out: options.out ?? data, number, onHosts, weights, rest };
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
