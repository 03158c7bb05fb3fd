// Averages between nodes: within each node, then between the first ranks of the nodes, then to all ranks of a node.
// nodes.ts assigns ranks to nodes.
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

/** A validated call. */
interface HierarchicalCall<M extends Memory, A> {
  readonly nodes: Nodes<HierarchicalOperations<M>>;
  readonly data: A;
  readonly out: A;
  readonly number: number;
  readonly onHosts: boolean;
  readonly weights: NativeNeighborhood;
  /** dtype and timeoutMs, as given. */
  readonly rest: CallOptions & Typed;
}

/** One call of some of the ranks. */
interface Step<M extends Memory> {
  readonly kind: 'allReduce' | 'average' | 'broadcast';
  readonly among: HierarchicalOperations<M>;
  readonly data: unknown;
  readonly options: CallOptions & Typed & { readonly out?: unknown };
}

/**
 * One rank's calls. On hosts a node's sums use a wider type if they would round, overflow or wrap before the division.
 * Several types share a wider one, so the ranks compare theirs by calls without elements.
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
  /** Runs hierarchical operations one at a time: each is several steps on its own communicators. */
  #lane: Promise<unknown> = Promise.resolve();
  #inLane = 0;

  /** This rank's number in its node: as formed by {@link setMachineTopology}, or the default before that. */
  get localRank(): number {
    return this.#place().local;
  }
  /** Ranks per node. */
  get localSize(): number {
    return this.#place().perNode;
  }
  /** This rank's node. */
  get machineRank(): Node {
    return this.#place().node;
  }
  /** The number of nodes. */
  get machineSize(): number {
    return this.#place().nodes;
  }
  #place(): PlaceInNodes {
    return this.#nodes?.place ?? placeInNodes(this.executor, undefined);
  }

  /**
   * Collective: whether all hosts run the same number of consecutive ranks, so that nodes with that many `ranksPerNode`
   * are hosts.
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
   * {@link split} for calls that all ranks of a part make together. On GPUs NCCL's communicator is made lazily, by the
   * first call that moves data.
   *
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
   * Collective: forms the nodes of {@link hierarchicalNeighborAllReduce} and sets their graph. Node n holds the ranks
   * from `n * ranksPerNode` on.
   *
   * @param topology - of nodes; {@link exponentialTwoGraph} when absent.
   * @throws GradlinkError ERR_MISMATCH on every rank if `ranksPerNode` differs.
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
      // Ranks waiting in one part learn through this communicator that a rank failed in another.
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
  /** Splits by value: if a rank's group is not everybody, ranks differ, and all know it. */
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
   * A failure anywhere ends the call and the nodes on every rank at once. After ERR_MISMATCH the communicator stays
   * usable, and {@link setMachineTopology} forms new nodes; after other errors no rank can use it.
   *
   * @param data - `count` elements, replaced by the result without `out`.
   * @throws GradlinkError ERR_MISMATCH on every rank if counts, types or neighbours do not fit.
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
   * Ends the nodes' communicators so that all waiting ranks learn of the failure. Anything worse than a mismatch also
   * ends this communicator, on all ranks.
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
    // Validates data and out before anything is sent.
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

  /** @internal Closes the nodes' communicators after their operations. */
  protected async closeNodes(): Promise<void> {
    await this.#lane;
    await Promise.all([this.#nodes?.node.close(), this.#nodes?.leaders?.close()]);
  }
}
