// Times the cases of `gradlink p2p` and makes records.
import { native } from '../../native/load.js';
import type { NativeGpuHealth } from '../../native/gpu.js';
import {
  nativeHostMemory,
  type NativeGpuCopies,
  type NativeGpuCopy,
} from '../../native/gpu-measure.js';
import { failedCase, waivedCase } from '../../results/case.js';
import { flowOf, isLatency, type CopyPlan, type LatencyPlan, type P2pCase } from './cases.js';
import { GpuCounters } from './counters.js';
import { figureSeconds } from './estimate.js';
import {
  besideOpposite,
  hostLimit,
  manyLimit,
  memoryLimit,
  pairLimit,
  type ExpectedRate,
} from '../machine/gpu-rates.js';
import { placeName, type Machine } from '../machine/gpus.js';
import type { p2pTable } from './p2p-options.js';
import { completeP2p, evidenceOf, type Observation } from './record.js';
import type { Filled } from '../../options/table.js';
import type { CaseIdentity, CaseResult, FirstWrong } from '../../results/result.js';

/** How figures are timed. */
export interface P2pTimingOptions extends Pick<
  Filled<typeof p2pTable>,
  'bytes' | 'loops' | 'samples' | 'mean' | 'verify' | 'affinity' | 'timeoutMs'
> {
  /** Copies before the first sample. */
  readonly warmup: number;
}

// nvbandwidth's list: 2 MiB of nodes 128 bytes apart. A quarter of its steps, three times.
const chase = { nodes: 16_384, stride: 128, steps: 2 ** 18 } as const;
const pointerBytes = 8;

/** Of a latency figure: three walks of 2^18 steps of about a microsecond. */
const latencySeconds = 1;

// NVIDIA's sample queues this many.
const mostStaged = { bytes: 160e6, loops: 5 } as const;

/** Runs cases one after another on a machine, with state between them. */
export class P2pTiming {
  private readonly counters: GpuCounters;

  constructor(
    private readonly machine: Machine,
    private readonly options: P2pTimingOptions,
  ) {
    this.counters = new GpuCounters(machine);
  }

  /** Number of steps that {@link run} reports for a case. */
  steps(record: P2pCase): number {
    const { gpus } = this.machine;
    if (gpus.length < record.gpus) return 1;
    return record.plans(gpus.map(({ ordinal }) => ordinal)).length;
  }

  /** The estimated seconds of {@link run}, from the links alone. */
  guessedSeconds(record: P2pCase): number {
    const ordinals = this.machine.gpus.map(({ ordinal }) => ordinal);
    if (ordinals.length < record.gpus) return 0;
    const { samples, warmup } = this.options;
    return record
      .plans(ordinals)
      .map((plan) => {
        if (isLatency(plan)) return latencySeconds;
        const { bytes, loops } = record.latency ?? this.sizeOf(record, plan);
        const limits = plan.copies.map(
          (copy) => this.limitOf(plan, copy, false, record)?.bytesPerSecond,
        );
        return figureSeconds({
          bytes,
          copies: warmup + loops * samples,
          lanes: plan.copies.length,
          bytesPerSecond: limits.includes(undefined)
            ? undefined
            : Math.min(...limits.filter((limit) => limit !== undefined)),
        });
      })
      .reduce((sum, seconds) => sum + seconds, 0);
  }

  /**
   * The results of all figures of a case, at least one.
   *
   * @param onStep called after each pair of places, or each separate measurement
   */
  async run(record: P2pCase, onStep: () => void = () => undefined): Promise<CaseResult[]> {
    const ordinals = this.machine.gpus.map(({ ordinal }) => ordinal);
    if (ordinals.length < record.gpus) {
      const reason = `needs at least ${record.gpus} GPUs, and ${ordinals.length} is there`;
      onStep();
      return [waivedCase({ name: record.name, parameters: {} }, reason)];
    }
    const observed: (Observation | CaseResult)[] = [];
    for (const plan of record.plans(ordinals)) {
      const identity = identityOf(record, plan);
      try {
        const reason = this.whyNot(record, plan);
        if (reason !== undefined) observed.push(waivedCase(identity, reason));
        else if (isLatency(plan)) observed.push(await this.latency(identity, plan));
        else observed.push(...(await this.copies(identity, record, plan)));
      } catch (error) {
        observed.push(failedCase(identity, error));
      }
      onStep();
    }
    const { mean } = this.options;
    const judged = observed.map((one) =>
      'evidence' in one ? { one, evidence: evidenceOf(one, mean) } : one,
    );
    const all = judged.filter((one) => 'evidence' in one).map(({ evidence }) => evidence);
    return judged.map((one) =>
      'evidence' in one ? completeP2p(this.machine, one.one, one.evidence, all, mean) : one,
    );
  }

  /** Why this pair is not possible; undefined if it is. */
  private whyNot(record: P2pCase, plan: CopyPlan | LatencyPlan): string | undefined {
    const direct: (readonly [number, number])[] = [];
    if (isLatency(plan)) {
      if (plan.memory >= 0) direct.push([plan.by, plan.memory]);
    } else {
      for (const { from, to, by, kernel } of plan.copies) {
        const across = from >= 0 && to >= 0 && from !== to;
        if (across && (kernel || record.peerAccess === true)) {
          direct.push([by, by === from ? to : from]);
        }
      }
    }
    const missing = direct.find(([from, to]) => !this.machine.peer(from, to).access);
    if (missing === undefined) return undefined;
    const [from, to] = missing;
    return `${placeName(from)} does not reach the memory of ${placeName(to)} (no peer access)`;
  }

  private async latency(identity: CaseIdentity, plan: LatencyPlan): Promise<Observation> {
    const { samples, affinity, timeoutMs } = this.options;
    const result = await native().gpuLatency({ ...plan, ...chase, samples, affinity, timeoutMs });
    const gpus = plan.memory < 0 ? [plan.by] : [plan.memory, plan.by];
    return {
      identity,
      samplesSeconds: [...result.seconds],
      iterationsPerSample: chase.steps,
      warmupIterations: chase.nodes,
      bytes: pointerBytes,
      factor: 1,
      // Only the last address is checked, always.
      wrong: result.wrong,
      values: {
        multiprocessors: result.multiprocessorSeconds.length,
        nearestSeconds: Math.min(...result.multiprocessorSeconds),
        farthestSeconds: Math.max(...result.multiprocessorSeconds),
      },
      evidence: {
        quantity: 'latency',
        byHost: false,
        limit: undefined,
        bytes: pointerBytes,
        total: false,
        from: plan.memory,
        to: plan.by,
        gpus,
        staged: false,
        stagedOnPurpose: false,
        crowded: false,
        health: new Map(),
        errors: this.counters.readNow(gpus),
      },
    };
  }

  /** Copies staged by the driver are slow, and its queue is short: use few and small ones. */
  private sizeOf(record: P2pCase, plan: CopyPlan): { bytes: number; loops: number } {
    const { bytes, loops } = this.options;
    const staged = plan.copies.some(
      ({ from, to, kernel }) =>
        !kernel &&
        from >= 0 &&
        to >= 0 &&
        from !== to &&
        (record.peerAccess === false || !this.machine.peer(from, to).access),
    );
    return staged
      ? { bytes: Math.min(bytes, mostStaged.bytes), loops: Math.min(loops, mostStaged.loops) }
      : { bytes, loops };
  }

  private async copies(
    identity: CaseIdentity,
    record: P2pCase,
    plan: CopyPlan,
  ): Promise<Observation[]> {
    const { warmup, samples, verify, affinity, timeoutMs } = this.options;
    const size = record.latency ?? this.sizeOf(record, plan);
    const result = await native().gpuCopies({
      copies: plan.copies,
      measured: plan.measured,
      ...size,
      warmup,
      samples,
      verify,
      peerAccess: record.peerAccess ?? true,
      affinity,
      health: true,
      hostTimes: record.latency?.clock === 'complete',
      timeoutMs,
    });
    const health = new Map(result.health.map((one) => [one.gpu, one.health] as const));
    return this.observations(identity, record, plan, result, {
      bytes: size.bytes,
      loops: size.loops,
      health,
      errors: this.counters.read(health),
    });
  }

  private observations(
    identity: CaseIdentity,
    record: P2pCase,
    plan: CopyPlan,
    result: NativeGpuCopies,
    context: {
      readonly bytes: number;
      readonly loops: number;
      readonly health: ReadonlyMap<number, NativeGpuHealth>;
      readonly errors: readonly string[];
    },
  ): Observation[] {
    const { options } = this;
    const gpus = [...new Set(plan.copies.flatMap(({ from, to }) => [from, to]))].filter(
      (place) => place >= 0,
    );
    const make = (
      copy: NativeGpuCopy,
      index: number,
      seconds: Float64Array,
      total: boolean,
    ): Observation => {
      const local = copy.from === copy.to;
      const staged = !local && copy.from >= 0 && copy.to >= 0 && result.direct[index] === false;
      const count = total ? plan.measured : 1;
      const bytes = context.bytes * count;
      return {
        identity: total ? identityOf(record, plan) : identityOf(record, plan, copy),
        samplesSeconds: [...seconds],
        iterationsPerSample: context.loops,
        warmupIterations: options.warmup,
        bytes,
        factor: local ? 2 : 1,
        wrong: options.verify ? result.wrong : undefined,
        firstWrong: firstWrongOf(plan, result),
        evidence: {
          quantity: record.latency === undefined ? 'bandwidth' : 'latency',
          byHost: isByHost(record),
          limit: total ? this.totalLimit(plan, staged) : this.limitOf(plan, copy, staged, record),
          bytes,
          total,
          from: copy.from,
          to: copy.to,
          gpus,
          staged,
          stagedOnPurpose: staged && record.peerAccess === false,
          crowded: gpus.length > 2 || (plan.copies.length > 2 && gpus.length > 1),
          health: context.health,
          errors: context.errors,
        },
      };
    };
    const [first] = plan.copies;
    if (first === undefined) throw new RangeError(`${identity.name} has a plan without copies`);
    if (plan.figures === 'total') return [make(first, 0, result.spanSeconds, true)];
    const one = make(first, 0, secondsOf(record, result, 0), false);
    if (plan.figures === 'one') return [one];
    return [one, make(first, 0, sumSeconds(result.seconds), true)];
  }

  private limitOf(
    { copies }: CopyPlan,
    { from, to, kernel }: NativeGpuCopy,
    staged: boolean,
    record: P2pCase,
  ): ExpectedRate | undefined {
    if (from === to) return memoryLimit(this.machine, from);
    const way =
      from < 0 || to < 0
        ? hostLimit(this.machine, Math.max(from, to))
        : pairLimit(this.machine, from, to, staged && record.peerAccess === false);
    const both = copies.some((other) => other.from === to && other.to === from);
    return both ? besideOpposite(way, kernel) : way;
  }

  private totalLimit(plan: CopyPlan, staged: boolean): ExpectedRate | undefined {
    const { machine } = this;
    const places = [...new Set(plan.copies.flatMap(({ from, to }) => [from, to]))];
    if (plan.one !== undefined) {
      const { one } = plan;
      return manyLimit(
        machine,
        one,
        places.filter((place) => place !== one),
      );
    }
    const [from = 0, to = from] = places;
    // Two copies within a GPU share its memory.
    if (from === to) return memoryLimit(machine, from);
    const byKernel = plan.copies.some(({ kernel }) => kernel);
    const there = besideOpposite(pairLimit(machine, from, to, staged), byKernel);
    const back = besideOpposite(pairLimit(machine, to, from, staged), byKernel);
    if (there === undefined || back === undefined) return undefined;
    const linkRate = (limit: ExpectedRate): number =>
      limit.linkBytesPerSecond ?? limit.bytesPerSecond;
    return {
      bytesPerSecond: there.bytesPerSecond + back.bytesPerSecond,
      basis: `both directions of ${there.basis}`,
      over: there.over,
      linkBytesPerSecond: linkRate(there) + linkRate(back),
    };
  }
}

function isByHost({ latency }: P2pCase): boolean {
  return latency !== undefined && latency.clock !== 'gpu';
}

/** The time of all copies of a sample at the sum of their rates; a value per sample. */
function sumSeconds(seconds: readonly Float64Array[]): Float64Array {
  const [first = new Float64Array()] = seconds;
  return first.map((_, sample) => {
    const copiesPerSecond = seconds.map((own) => 1 / (own[sample] ?? NaN));
    return seconds.length / copiesPerSecond.reduce((sum, rate) => sum + rate, 0);
  });
}

/** Per copy of a measured one, by the case's clock; a value per sample. */
function secondsOf(
  { latency }: P2pCase,
  { seconds, issueSeconds, hostSeconds }: NativeGpuCopies,
  index: number,
): Float64Array {
  if (latency?.clock === 'issue') return issueSeconds;
  if (latency?.clock === 'complete') return hostSeconds;
  return seconds[index] ?? new Float64Array();
}

/** Parameters that identify a figure within its case, and describe the data's direction. */
function identityOf(
  record: P2pCase,
  plan: CopyPlan | LatencyPlan,
  measured?: NativeGpuCopy,
): CaseIdentity {
  const name = record.name;
  if (isLatency(plan)) {
    const from = placeName(plan.memory);
    const to = placeName(plan.by);
    const flow = `${from} to ${to}, loaded by ${to}`;
    return { name, parameters: { from, to, by: to, quantity: 'latency', figure: 'one', flow } };
  }
  const counted = plan.copies.slice(0, plan.measured);
  const quantity = record.latency === undefined ? 'bandwidth' : 'latency';
  const copy = measured ?? counted[0];
  const total = measured === undefined && plan.figures !== 'one';
  if (copy === undefined) return { name, parameters: {} };
  const fan = total && plan.one !== undefined;
  const side = (place: number): string =>
    fan && place !== plan.one ? 'all others' : placeName(place);
  const beside = plan.copies.filter((other) => (total ? !counted.includes(other) : other !== copy));
  return {
    name,
    parameters: {
      from: side(copy.from),
      to: side(copy.to),
      by: fan && copy.by !== plan.one ? 'all others' : total && !fan ? 'both' : placeName(copy.by),
      quantity,
      ...(isByHost(record) ? { clock: 'host' } : {}),
      figure: total ? 'total' : 'one',
      flow: total ? counted.map(flowOf).join(' + ') : flowOf(copy),
      beside: beside.length === 0 ? null : beside.map(flowOf).join(' + '),
    },
  };
}

function firstWrongOf(
  { copies }: CopyPlan,
  { firstWrong }: NativeGpuCopies,
): FirstWrong | undefined {
  if (firstWrong === null) return undefined;
  const { rank, index, got, expected } = firstWrong;
  const device = placeName(copies[rank]?.to ?? nativeHostMemory);
  return { device, index, expected: String(expected), got: String(got) };
}
