// Times neighbour averaging and all_reduce on the same ranks alternately, so that changes on the machine affect both.
import { Communicator } from '../../communicator/communicator.js';
import { allocate, elementBytes, parseDType } from '../../tensor/dtype.js';
import type { Node } from '../../topology/rank.js';
import { uniformWeights } from '../../topology/schedules.js';
import { collectiveVolume, type Placement, type Volume } from '../../results/bandwidth.js';
import { completeCase, errorCheck, failedCase, unchecked } from '../../results/case.js';
import {
  exchangesOf,
  factorsOf,
  neighborCrossing,
  sentBytes,
  type NeighborOperation,
  type NeighborPlan,
} from './plan.js';
import type { CaseIdentity, CaseResult, EnvironmentInfo } from '../../results/result.js';
import type { CaseLimit } from '../machine/sized-limit.js';
import { gatherNumbers, jobSize } from '../job.js';
import { batchFor, type Average, type HostSweepLimit } from '../collectives/sweep.js';
import type { Filled, OptionsOf } from '../../options/table.js';
import type { neighborsTable } from './neighbors-options.js';

/** Types that JavaScript can read. */
export const neighborDtypes = ['float32', 'float64'] as const;
/** One of {@link neighborDtypes}. */
export type NeighborDType = (typeof neighborDtypes)[number];

/** The timed operations of a sweep. */
export interface NeighborTiming
  extends
    Pick<
      Filled<typeof neighborsTable>,
      'sizes' | 'dtypes' | 'samples' | 'warmup' | 'check' | 'average' | 'shared'
    >,
    Pick<OptionsOf<typeof neighborsTable>, 'batch'> {}

export interface NeighborSweep extends NeighborTiming {
  readonly operations: readonly NeighborOperation[];
  readonly plan: NeighborPlan;
}

type Data = Float32Array | Float64Array;

/** Ranks of this process with one communicator each; the others are in other processes. */
export interface NeighborRanks {
  readonly members: readonly Communicator[];
  readonly size: number;
  readonly processes: number;
  close(): Promise<void>;
}

export async function openNeighborRanks(size: number, timeoutMs: number): Promise<NeighborRanks> {
  if (jobSize() !== undefined) {
    const world = await Communicator.world({ timeoutMs });
    const members = [world];
    return { members, size: world.size, processes: world.size, close: () => world.close() };
  }
  const local = Communicator.local(size);
  const members = await local.openRanks();
  return { members, size, processes: 1, close: () => local.close() };
}

const tolerances: Readonly<Record<NeighborDType, number>> = { float32: 1e-6, float64: 1e-14 };
const patternLength = 32;
const valueOf = (rank: number, i: number) => ((i * 7 + rank * 13) % patternLength) + rank + 1;

interface Bench {
  readonly ranks: NeighborRanks;
  readonly sweep: NeighborSweep;
  readonly limit: HostSweepLimit;
  readonly environment: EnvironmentInfo;
}

/** One rank's calls and arrays in a step. */
class RankCalls {
  readonly data: Data;
  readonly #options: { out?: Data };
  readonly #exchanges;
  readonly #nodeExchanges;

  constructor(
    readonly comm: Communicator,
    readonly plan: NeighborPlan,
    { dtype, count, shared }: { dtype: NeighborDType; count: number; shared: boolean },
    placement: Placement,
  ) {
    const array = (): Data =>
      shared ? comm.allocShared(dtype, count) : (allocate(parseDType(dtype), count) as Data);
    this.data = array();
    this.#options = placement === 'in-place' ? {} : { out: array() };
    const node = Math.floor(comm.rank / plan.perNode);
    this.#exchanges = exchangesOf(plan.graph, comm.rank, plan.dynamic);
    this.#nodeExchanges = exchangesOf<Node>(plan.nodeGraph, node, plan.dynamic);
  }

  get result(): Data {
    return this.#options.out ?? this.data;
  }

  #neighborOptions(step: number) {
    const exchange = this.#exchanges[step % this.#exchanges.length]!;
    const weights = this.plan.dynamic ? { ...uniformWeights(exchange), checkTopology: false } : {};
    return { ...this.#options, ...weights };
  }

  #machineOptions(step: number) {
    if (!this.plan.dynamic) return this.#options;
    const exchange = this.#nodeExchanges[step % this.#nodeExchanges.length]!;
    const { selfWeight, srcWeights, dstWeights } = uniformWeights(exchange);
    return {
      ...this.#options,
      selfWeight,
      srcMachineWeights: srcWeights,
      dstMachineWeights: dstWeights,
    };
  }

  run(operation: NeighborOperation, step: number): void {
    if (operation === 'all_reduce') this.comm.allReduceSync(this.data, this.#options);
    else if (operation === 'neighbor_all_reduce') {
      this.comm.neighborAllReduceSync(this.data, this.#neighborOptions(step));
    } else this.comm.hierarchicalNeighborAllReduceSync(this.data, this.#machineOptions(step));
  }

  async start(operation: NeighborOperation, step: number): Promise<void> {
    if (operation === 'all_reduce') await this.comm.allReduce(this.data, this.#options);
    else if (operation === 'neighbor_all_reduce') {
      await this.comm.neighborAllReduce(this.data, this.#neighborOptions(step));
    } else await this.comm.hierarchicalNeighborAllReduce(this.data, this.#machineOptions(step));
  }
}

/** For all ranks of this process: a single rank's calls block, several wait for each other. */
async function runAll(
  calls: readonly RankCalls[],
  operation: NeighborOperation,
  step: number,
): Promise<void> {
  if (calls.length === 1) calls[0]!.run(operation, step);
  else await Promise.all(calls.map((one) => one.start(operation, step)));
}

async function barrier({ members }: NeighborRanks): Promise<void> {
  if (members.length === 1) members[0]!.barrierSync();
  else await Promise.all(members.map((one) => one.barrier()));
}

/** The largest relative error of all ranks. */
async function errorOf(
  { ranks, sweep: { plan } }: Bench,
  calls: readonly RankCalls[],
  operation: NeighborOperation,
): Promise<number> {
  for (const { comm, data } of calls) {
    for (let i = 0; i < data.length; ++i) data[i] = valueOf(comm.rank, i);
  }
  await runAll(calls, operation, 0);
  const errors = calls.map(({ comm, result }) => {
    const factors = [...factorsOf(plan, operation, comm.rank, 0)];
    const expected = Array.from({ length: patternLength }, (_, i) =>
      factors.reduce((sum, [rank, factor]) => sum + factor * valueOf(rank, i), 0),
    );
    let difference = 0;
    let whole = 0;
    for (let i = 0; i < result.length; ++i) {
      const want = expected[i % patternLength]!;
      difference += Math.abs(result[i]! - want);
      whole += Math.abs(want);
    }
    return difference / whole;
  });
  const all =
    ranks.members.length === 1 ? await gatherNumbers(ranks.members[0]!, errors) : [errors];
  return Math.max(...all.flat());
}

async function combined(ranks: NeighborRanks, samples: number[], average: Average) {
  if (ranks.members.length > 1 || average === 'own') return samples;
  const all = await gatherNumbers(ranks.members[0]!, samples);
  return samples.map((_, i) => {
    const column = all.map((one) => one[i]!);
    if (average === 'min') return Math.min(...column);
    if (average === 'max') return Math.max(...column);
    return column.reduce((sum, one) => sum + one, 0) / column.length;
  });
}

async function runPlacement(
  bench: Bench,
  count: number,
  dtype: NeighborDType,
  placement: Placement,
): Promise<CaseResult[]> {
  const { ranks, sweep } = bench;
  const { plan, operations } = sweep;
  const bytes = count * elementBytes[parseDType(dtype)]!;
  const identity = (name: NeighborOperation): CaseIdentity => ({
    name,
    parameters: {
      bytes,
      count,
      dtype,
      placement,
      ranks: ranks.size,
      shared: sweep.shared,
      topology: plan.graphName,
      dynamic: plan.dynamic,
      ranksPerNode: plan.perNode,
    },
  });
  const calls = ranks.members.map(
    (comm) => new RankCalls(comm, plan, { dtype, count, shared: sweep.shared }, placement),
  );
  const errors = new Map<NeighborOperation, number>();
  for (const operation of operations) {
    if (sweep.check) errors.set(operation, await errorOf(bench, calls, operation));
    for (const { data } of calls) data.fill(0);
    for (let i = 0; i < sweep.warmup; ++i) await runAll(calls, operation, i);
  }
  const batch = sweep.batch ?? batchFor(bytes);
  const samples = new Map(operations.map((operation) => [operation, [] as number[]]));
  for (let sample = 0; sample < sweep.samples; ++sample) {
    for (const operation of operations) {
      await barrier(ranks);
      const start = performance.now();
      for (let i = 0; i < batch; ++i) await runAll(calls, operation, sample * batch + i);
      samples.get(operation)!.push((performance.now() - start) / 1e3 / batch);
    }
  }
  const results: CaseResult[] = [];
  for (const operation of operations) {
    const { perRank, perHost } = sentBytes(plan, operation, bytes);
    const error = errors.get(operation);
    const volume: Volume = {
      ...collectiveVolume('all_reduce', {
        countPerRank: count,
        ranks: ranks.size,
        placement,
        elementBytes: bytes / count,
      }),
      ...(operation === 'all_reduce'
        ? {}
        : { busFactor: perRank / bytes, busFormula: 'bytes that a rank sends / t' }),
    };
    const samplesSeconds = await combined(ranks, samples.get(operation)!, sweep.average);
    const complete = (rate: CaseLimit) =>
      completeCase({
        ...identity(operation),
        samplesSeconds,
        iterationsPerSample: batch,
        warmupIterations: sweep.warmup,
        volume,
        ...rate,
        check: error === undefined ? unchecked : errorCheck(error, tolerances[dtype]),
        context: {
          threads: bench.limit.threads,
          availableCores: bench.limit.availableCores,
          lastLevelCacheBytes: bench.environment.lastLevelCacheBytes,
          processes: ranks.processes,
          sharedMemory: sweep.shared,
        },
      });
    const { cores, sized } = bench.limit;
    const crossing = sweep.shared ? undefined : neighborCrossing(plan, operation, bytes);
    const between = cores === undefined || crossing === undefined ? undefined : { cores, crossing };
    const result = await sized.complete(volume, complete, between);
    const median = result.statistics?.medianSeconds ?? null;
    const first = results[0];
    const base = first !== undefined && 'statistics' in first ? first.statistics : undefined;
    results.push({
      ...result,
      values: {
        sentBytesPerRank: perRank,
        sentBytesPerHost: perHost,
        timeOverAllReduce: base === undefined || median === null ? 1 : median / base.medianSeconds,
      },
    });
  }
  return results;
}

const placements = ['out-of-place', 'in-place'] as const;

function countsOf({ sizes }: NeighborSweep, dtype: NeighborDType): ReadonlySet<number> {
  const width = elementBytes[parseDType(dtype)]!;
  return new Set(sizes.map((bytes) => Math.max(Math.floor(bytes / width), 1)));
}

/** Number of rows of a sweep without failures. */
export function neighborRows(sweep: NeighborSweep): number {
  const counts = sweep.dtypes.map((dtype) => countsOf(sweep, dtype).size);
  return placements.length * counts.reduce((sum, count) => sum + count, 0);
}

/**
 * Runs all sizes, in place and out of place; collective in a job.
 *
 * @param onRow receives the cases of one size and placement, all_reduce first
 */
export async function runNeighborSweep(
  bench: Bench,
  onRow: (cases: readonly CaseResult[]) => void,
): Promise<CaseResult[]> {
  const { ranks, sweep } = bench;
  const { plan } = sweep;
  for (const comm of ranks.members) comm.setTopology(plan.graph);
  if (sweep.operations.includes('hierarchical_neighbor_all_reduce')) {
    await Promise.all(
      ranks.members.map((comm) =>
        comm.setMachineTopology(plan.nodeGraph, { ranksPerNode: plan.perNode }),
      ),
    );
  }
  const results: CaseResult[] = [];
  for (const dtype of sweep.dtypes) {
    const width = elementBytes[parseDType(dtype)]!;
    for (const count of countsOf(sweep, dtype)) {
      for (const placement of placements) {
        try {
          const cases = await runPlacement(bench, count, dtype, placement);
          onRow(cases);
          results.push(...cases);
        } catch (error) {
          const parameters = { bytes: count * width, count, dtype, placement };
          results.push(failedCase({ name: sweep.operations.at(-1)!, parameters }, error));
          return results;
        }
      }
    }
  }
  return results;
}
