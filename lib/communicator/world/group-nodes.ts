// Averages between nodes on all ranks that one process holds, which may be in several nodes. As hierarchical.ts, with
// the nodes' calls one after another in the same order on all processes.
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
  /** The ranks of each node held here, by node, with the indices of the held ranks. */
  readonly nodes: readonly { readonly group: GroupHierarchy; readonly held: readonly number[] }[];
  /** The leaders held here, with their indices; null if there are none. */
  readonly leaders: { readonly group: GroupHierarchy; readonly held: readonly number[] } | null;
  readonly topology: Topology;
  readonly weighted: boolean;
  failure?: NodesFailure;
}

const op = 'hierarchicalNeighborAllReduce';

/** The operations of a {@link WorldGroup} over nodes. */
export abstract class GroupHierarchy extends GroupPairs {
  #nodes: GroupNodes | undefined;
  /** One at a time: each is several steps on its own communicators. */
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
   * Collective, as {@link Communicator.setMachineTopology}, which processes with one rank call. A process may hold
   * ranks of several nodes.
   *
   * @throws GradlinkError ERR_MISMATCH on every rank if `ranksPerNode` differs.
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

  /** Splits by value: if a rank's group is not everybody, ranks differ, and all know it. */
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
   * As {@link Communicator.hierarchicalNeighborAllReduce} for all ranks held here in one call. Call
   * {@link setMachineTopology} first.
   *
   * @param data - a buffer for each rank held here, replaced by the result without `out`.
   * @throws GradlinkError ERR_MISMATCH if counts, types or neighbours do not fit.
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
    // Validates data and out before anything is sent.
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

  /** See HierarchicalOperations. */
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

  /** @internal Closes the nodes' communicators after their operations. */
  protected async closeNodes(): Promise<void> {
    await this.#lane;
    if (this.#nodes !== undefined) await closeAll(this.#nodes);
  }
}

async function closeAll({ nodes, leaders }: GroupNodes): Promise<void> {
  await Promise.all([...nodes.map(({ group }) => group.close()), leaders?.group.close()]);
}

/** Each held rank's exchange between nodes; only leaders use it. */
function neighborhoodsOf({ places, topology, weighted }: GroupNodes, machines: unknown) {
  const given = machines === undefined ? [] : eachOf(places.length, machines, 'machines');
  return places.map((place, held) => {
    const own = optionsObject(given[held] as HierarchicalOptions, weightNames, op);
    return machineNeighborhood({ place, node: null, leaders: null, topology, weighted }, own);
  });
}
