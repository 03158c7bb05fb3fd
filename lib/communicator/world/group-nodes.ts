// Averaging between nodes, on all ranks that one process holds, which may be of several nodes: as hierarchical.ts, with the
// calls of the nodes one after the other in their order, the same on all processes.
import type { GradlinkError } from '../../errors.js';
import type { DeviceBuffer } from '../../tensor/device-buffer.js';
import { exponentialTwoGraph } from '../../topology/generators.js';
import type { Topology } from '../../topology/topology.js';
import { milliseconds, optionNames, optionsObject } from '../../checks.js';
import { oneEach } from '../calls/collective-call.js';
import { prepareNeighbor } from '../calls/neighbor-call.js';
import { checkedTopology } from '../neighbors/neighbors.js';
import { machineNeighborhood, placeInNodes } from '../neighbors/nodes.js';
import type { PlaceInNodes } from '../neighbors/nodes.js';
import {
  errorOf,
  nodesEnded,
  nodesFailure,
  noNodes,
  reasonOf,
  sizesDiffer,
} from '../neighbors/nodes-failure.js';
import type { NodesFailure } from '../neighbors/nodes-failure.js';
import { machineTopologyNames } from '../calls/option-names.js';
import type {
  AsyncOptions,
  CallOptions,
  HierarchicalOptions,
  MachineTopologyOptions,
  OutOptions,
} from '../calls/types.js';
import { together, viewOfRank } from './group-neighbors.js';
import { GroupPairs } from './group-pairs.js';
import { eachOf } from './group-types.js';
import type { GroupHierarchicalOptions } from './group-types.js';

type RawOptions = GroupHierarchicalOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions;

const optionsOf = optionNames<RawOptions>({
  machines: true,
  out: true,
  timeoutMs: true,
  signal: true,
});
const weightNames = optionNames<HierarchicalOptions>({
  selfWeight: true,
  srcMachineWeights: true,
  dstMachineWeights: true,
});

/** The nodes that held ranks belong to. */
interface GroupNodes {
  /** Of each held rank. */
  readonly places: readonly PlaceInNodes[];
  /** The ranks of each node held here, in the order of nodes, and which of the held ranks they are. */
  readonly nodes: readonly { readonly group: GroupHierarchy; readonly held: readonly number[] }[];
  /** The first ranks of nodes that are held here, and which those are; null where none is. */
  readonly leaders: { readonly group: GroupHierarchy; readonly held: readonly number[] } | null;
  readonly topology: Topology;
  readonly weighted: boolean;
  failure?: NodesFailure;
}

const op = 'hierarchicalNeighborAllReduce';

/** The operations of a {@link WorldGroup} over nodes. */
export abstract class GroupHierarchy extends GroupPairs {
  #nodes: GroupNodes | undefined;
  /** They follow each other: each is several steps on communicators of its own. */
  #lane: Promise<unknown> = Promise.resolve();

  /** See {@link WorldGroup.split}. */
  abstract split(
    colors: readonly (number | null)[],
    keys?: readonly number[],
    options?: CallOptions,
  ): Promise<(GroupHierarchy | null)[]>;
  /** See {@link WorldGroup.close}. */
  abstract close(): Promise<void>;

  /**
   * Collective, as {@link Communicator.setMachineTopology}, which processes of one rank call: node n holds the ranks from
   * `n * ranksPerNode` on. A process may hold ranks of several nodes.
   *
   * @throws GradlinkError ERR_MISMATCH, on every rank, where processes differ in `ranksPerNode`.
   */
  async setMachineTopology(topology?: Topology, options?: MachineTopologyOptions): Promise<void> {
    const given = optionsObject(options, machineTopologyNames, 'setMachineTopology');
    const { executor } = this;
    const ranks = executor.heldRanks;
    const places = ranks.map((_, held) =>
      placeInNodes(viewOfRank(executor, held), given.ranksPerNode),
    );
    const { nodes: count, perNode } = places[0]!;
    const timeoutMs = milliseconds(given.timeoutMs, 'timeoutMs', -1);
    const calls = timeoutMs < 0 ? {} : { timeoutMs };
    const graph = checkedTopology(topology ?? exponentialTwoGraph(count), count, 'nodes');
    await this.#next(async () => {
      const before = this.#nodes;
      await this.#sameForAll(perNode, calls);
      const parts = await this.split(
        places.map((one) => one.node),
        places.map((one) => one.local),
        calls,
      );
      const heads = await this.split(
        places.map((one) => (one.local === 0 ? 0 : null)),
        places.map((one) => one.node),
        calls,
      );
      const heldIn = (group: GroupHierarchy, of: readonly (GroupHierarchy | null)[]) =>
        of.flatMap((one, held) => (one === group ? [held] : []));
      const own = [...new Set(parts)] as GroupHierarchy[];
      const leading = heads.find((one) => one !== null) ?? null;
      this.#nodes = {
        places,
        nodes: own.map((group) => ({ group, held: heldIn(group, parts) })),
        leaders: leading === null ? null : { group: leading, held: heldIn(leading, heads) },
        topology: graph,
        weighted: given.weighted ?? false,
      };
      if (before !== undefined) await closeAll(before);
    });
  }

  /** Ranks that say the same end in one group: where that is not everybody, each of them knows. */
  async #sameForAll(perNode: number, calls: CallOptions): Promise<void> {
    const [alike] = await this.split(
      this.executor.heldRanks.map(() => perNode),
      undefined,
      calls,
    );
    const count = alike!.size;
    await alike!.close();
    if (count !== this.size) throw sizesDiffer(count, this.size, perNode);
  }

  /**
   * As {@link Communicator.hierarchicalNeighborAllReduce}, of all ranks held here in one call. Call
   * {@link setMachineTopology} first.
   *
   * @param data - a buffer for each of the ranks held here, the result's place when there is no `out`.
   * @throws GradlinkError ERR_MISMATCH where counts, types or neighbours do not fit.
   */
  async hierarchicalNeighborAllReduce(
    data: readonly DeviceBuffer[],
    options?: GroupHierarchicalOptions & OutOptions<readonly DeviceBuffer[]> & AsyncOptions,
  ): Promise<DeviceBuffer[]> {
    const given: RawOptions = optionsObject(options, optionsOf, op);
    const nodes = this.#nodes;
    if (nodes === undefined) throw noNodes();
    const { signal, timeoutMs } = given;
    const { executor } = this;
    const datas = oneEach(executor, data, 'data') as readonly DeviceBuffer[];
    const outs = (
      given.out === undefined ? datas : oneEach(executor, given.out, 'out')
    ) as readonly DeviceBuffer[];
    const weights = neighborhoodsOf(nodes, given.machines);
    // Checks data and out as a whole before anything is sent.
    together(
      executor,
      datas.map((one, held) =>
        prepareNeighbor(
          viewOfRank(executor, held),
          one,
          { out: outs[held], timeoutMs },
          weights[held]!,
        ),
      ),
    );
    const of = (held: readonly number[], list: readonly DeviceBuffer[]) =>
      held.map((i) => list[i]!);
    const calls = { timeoutMs, signal };
    return this.#next(async () => {
      if (nodes.failure !== undefined) throw nodesEnded(nodes.failure);
      try {
        for (const { group, held } of nodes.nodes) {
          await group.allReduce(of(held, datas), { ...calls, out: of(held, outs) });
        }
        if (nodes.leaders !== null) {
          const { group, held } = nodes.leaders;
          const each = held.map((i, at) =>
            prepareNeighbor(viewOfRank(group.executor, at), outs[i], { timeoutMs }, weights[i]!),
          );
          await group.executor.run(together(group.executor, each), signal);
        }
        for (const { group, held } of nodes.nodes) await group.broadcast(of(held, outs), calls);
      } catch (error) {
        const failure = this.#endNodes(nodes, error);
        throw signal?.aborted === true ? error : failure;
      }
      return [...outs];
    });
  }

  /** See HierarchicalOperations: all who wait in a node hear of it. */
  #endNodes(nodes: GroupNodes, error: unknown): GradlinkError {
    const failure = nodesFailure(error, this.executor.rank);
    nodes.failure = failure;
    const reason = reasonOf(failure);
    nodes.leaders?.group.abort(reason);
    for (const { group } of nodes.nodes) group.abort(reason);
    if (!failure.usable) this.abort(reason);
    return errorOf(failure, error);
  }

  async #next<T>(run: () => Promise<T>): Promise<T> {
    const mine = this.#lane.then(run);
    this.#lane = mine.catch(() => undefined);
    return mine;
  }

  /** @internal Ends the communicators of nodes, once their operations have. */
  protected async closeNodes(): Promise<void> {
    await this.#lane;
    if (this.#nodes !== undefined) await closeAll(this.#nodes);
  }
}

async function closeAll({ nodes, leaders }: GroupNodes): Promise<void> {
  await Promise.all([...nodes.map(({ group }) => group.close()), leaders?.group.close()]);
}

/** For each held rank what its node exchanges, of which the first of each node brings it. */
function neighborhoodsOf({ places, topology, weighted }: GroupNodes, machines: unknown) {
  const given = machines === undefined ? [] : eachOf(places.length, machines, 'machines');
  return places.map((place, held) => {
    const own = optionsObject(given[held] as HierarchicalOptions, weightNames, op);
    return machineNeighborhood({ place, node: null, leaders: null, topology, weighted }, own);
  });
}
