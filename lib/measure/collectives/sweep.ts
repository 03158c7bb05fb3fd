// Times one collective over sizes, element types, operations and roots: a case for each, in place and out of place.
import { reduceOps, type ReduceOp } from '../../communicator/calls/reduce-op.js';
import { GradlinkError } from '../../errors.js';
import {
  nativeCombine,
  nativeWaiting,
  type NativeEstimated,
  type NativeGpuTimingOptions,
  type NativeTiming,
} from '../../native/measure.js';
import { dtypeNames, elementSize, type AnyDType } from '../../tensor/dtype.js';
import { elementText } from '../../tensor/element-text.js';
import {
  collectiveVolume,
  traitsOf,
  type Collective,
  type MemoryAccess,
  type Placement,
  type Volume,
} from '../../results/bandwidth.js';
import { collectiveCrossing } from '../../results/crossing.js';
import { completeCase, exactCheck, failedCase, unchecked, waivedCase } from '../../results/case.js';
import { expectedOf, type GpuSweepLimit } from '../machine/gpu-sweep-limit.js';
import type { CoresLimit } from '../machine/cores-limit.js';
import type { SharedLimit } from '../machine/shared-limit.js';
import type { Between, CaseLimit, SizedLimit } from '../machine/sized-limit.js';
import type {
  CaseIdentity,
  CaseResult,
  EnvironmentInfo,
  FirstWrong,
} from '../../results/result.js';
import { caseValues, type AskedValues } from './case-values.js';
import type { collectivesTable } from './collectives-options.js';
import type { SweepWorld } from './world.js';
import type { Filled, OptionsOf } from '../../options/table.js';

/** How the times of a job's processes are combined, by nccl-tests' numbers 0 to 3. */
export const averages = ['own', 'mean', 'min', 'max'] as const;
/** One of {@link averages}. */
export type Average = (typeof averages)[number];

/** The options of a sweep. */
export interface Sweep
  extends
    Pick<
      Filled<typeof collectivesTable>,
      'sizes' | 'dtypes' | 'ops' | 'roots' | 'iterations' | 'warmup' | 'check' | 'average' | 'seed'
    >,
    Pick<OptionsOf<typeof collectivesTable>, 'likeNcclTests'>,
    Pick<Filled<typeof collectivesTable>, 'shared'>,
    Pick<OptionsOf<typeof collectivesTable>, 'batch' | 'timeoutMs' | 'gpu'>,
    AskedValues {
  /** The collective to time. */
  readonly collective: Collective;
  /** With a split: the color of this rank's group. */
  readonly group?: number;
}

/** One line of the table. */
export interface SweepRow {
  readonly bytes: number;
  /** Elements of one rank's chunk or buffer. */
  readonly count: number;
  readonly dtype: AnyDType;
  /** Null without a reduction. */
  readonly op: ReduceOp | null;
  /** Null without a root. */
  readonly root: number | null;
  readonly outOfPlace: CaseResult;
  readonly inPlace: CaseResult;
}

/** By nativeRegistration; unregistered memory is not reported. */
const registrationNames: Readonly<Record<number, string>> = { 1: 'local', 2: 'symmetric' };

/** Far more than any table. */
const mostSizes = 4096;

/**
 * The sizes of a sweep, by nccl-tests' rule: by a factor, or by a step if the factor is 1.
 *
 * @returns undefined for more than 4096
 */
export function sweepSizes(range: {
  readonly minbytes: number;
  readonly maxbytes: number;
  readonly stepbytes: number;
  readonly stepfactor: number;
}): readonly number[] | undefined {
  const { minbytes, maxbytes, stepbytes, stepfactor } = range;
  const sizes: number[] = [];
  for (let size = minbytes; size <= maxbytes;) {
    if (sizes.length === mostSizes) return undefined;
    sizes.push(size);
    // Avoids endless loops at size 0 and with step 0.
    const next = stepfactor > 1 ? Math.max(size * stepfactor, 1) : size + stepbytes;
    if (next === size) break;
    size = next;
  }
  return sizes;
}

// nccl-tests rounds chunks to this, so sizes mean the same here.
const chunkBytes = 16;

/** Elements of one rank's chunk or buffer for a size in bytes; at least one. */
export function countPerRank(
  collective: Collective,
  bytes: number,
  width: number,
  ranks: number,
): number {
  const { chunked } = traitsOf(collective);
  const share = chunked ? bytes / ranks : bytes;
  const rounded = chunked ? Math.floor(share / chunkBytes) * chunkBytes : share;
  return Math.max(Math.floor(rounded / width), 1);
}

/**
 * The default number of calls per sample: a small call takes about a microsecond, so a hundred of them far exceed the
 * clock and barrier.
 */
export function batchFor(bytes: number): number {
  if (bytes <= 64 * 2 ** 10) return 100;
  return bytes <= 2 ** 20 ? 10 : 1;
}

/** For ranks in host memory. */
export interface HostSweepLimit extends SharedLimit {
  readonly sized: SizedLimit;
  /** Set if processes cannot access each other's arrays. */
  readonly cores?: CoresLimit;
}

interface Context {
  readonly world: SweepWorld;
  readonly limit: HostSweepLimit | GpuSweepLimit;
  readonly environment: EnvironmentInfo;
}

interface Point {
  readonly count: number;
  readonly dtype: AnyDType;
  readonly op: ReduceOp | null;
  readonly root: number | null;
}

function identity(
  sweep: Sweep,
  point: Point,
  placement: Placement,
  context: Context,
): CaseIdentity {
  const { collective, shared, group } = sweep;
  const width = elementSize(point.dtype);
  const chunks = traitsOf(collective).chunked ? context.world.size : 1;
  return {
    name: collective,
    parameters: {
      bytes: point.count * width * chunks,
      count: point.count,
      dtype: point.dtype,
      op: point.op,
      root: point.root,
      placement,
      ranks: context.world.size,
      shared,
      ...(group === undefined ? {} : { group }),
    },
  };
}

function callOf({ collective }: Sweep, { count, dtype, op, root }: Point): NativeEstimated {
  return {
    collective: traitsOf(collective).native,
    count,
    dtype: dtypeNames.indexOf(dtype),
    op: reduceOps.indexOf(op ?? 'sum'),
    root: root ?? 0,
  };
}

const placements: readonly Placement[] = ['out-of-place', 'in-place'];

function isWaived({ collective }: Sweep, { op }: Point, ranks: number): boolean {
  const { waived } = traitsOf(collective);
  return placements.every((placement) => waived?.(placement, op, ranks) !== undefined);
}

/** Measures the limits of all sizes first, so that cases are timed back to back. */
async function prepareLimits(sweep: Sweep, { limit, world }: Context): Promise<void> {
  if ('gpus' in limit) return;
  const moved = new Map<MemoryAccess, number[]>();
  for (const { count, dtype } of points(sweep, world.size)) {
    for (const placement of placements) {
      const { mustMoveBytes, access = 'copy' } = collectiveVolume(sweep.collective, {
        countPerRank: count,
        elementBytes: elementSize(dtype),
        ranks: world.size,
        placement,
      });
      moved.set(access, [...(moved.get(access) ?? []), mustMoveBytes]);
    }
  }
  for (const [access, sizes] of moved) await limit.sized.prepare(sizes, access);
}

interface Calls {
  readonly samples: number;
  /** Per sample. */
  readonly batch: number;
  readonly gpu: NativeGpuTimingOptions | undefined;
}

function callsOf({ likeNcclTests, iterations, batch, gpu, sizes }: Sweep, bytes: number): Calls {
  if (likeNcclTests !== true) {
    return { samples: iterations, batch: batch ?? batchFor(bytes), gpu };
  }
  const plain = { graphLaunches: 0, waiting: nativeWaiting.none, registration: 0 };
  const shiftedThrough = Math.max(...sizes);
  return { samples: 1, batch: iterations, gpu: { ...plain, ...gpu, shiftedThrough } };
}

async function runCase(
  sweep: Sweep,
  point: Point,
  placement: Placement,
  context: Context,
  ncclSeconds: number | null,
): Promise<CaseResult> {
  const traits = traitsOf(sweep.collective);
  const name = identity(sweep, point, placement, context);
  const reason = traits.waived?.(placement, point.op, context.world.size);
  if (reason !== undefined) return waivedCase(name, reason);
  const { world, limit, environment } = context;
  const volume = collectiveVolume(sweep.collective, {
    countPerRank: point.count,
    elementBytes: elementSize(point.dtype),
    ranks: world.size,
    placement,
  });
  const calls = callsOf(sweep, volume.bytes);
  const timing = await world.time({
    ...callOf(sweep, point),
    inPlace: placement === 'in-place',
    shared: sweep.shared,
    warmup: sweep.warmup,
    samples: calls.samples,
    batch: calls.batch,
    combine: nativeCombine[sweep.average],
    verify: sweep.check,
    seed: sweep.seed,
    timeoutMs: sweep.timeoutMs ?? -1,
    ...(calls.gpu === undefined ? {} : { gpu: calls.gpu }),
  });
  const { seconds, wrongBefore, wrongAfter } = timing;
  const wrong = wrongBefore + wrongAfter;
  const firstWrong = wrong > 0 ? await firstWrongOf(timing, point, world) : undefined;
  const onHost = 'gpus' in limit ? null : limit;
  const registered = registrationNames[timing.registration] ?? null;
  const complete = (sized: CaseLimit) =>
    completeCase({
      name: name.name,
      parameters:
        registered === null ? name.parameters : { ...name.parameters, registration: registered },
      samplesSeconds: [...seconds],
      iterationsPerSample: calls.batch,
      warmupIterations: sweep.warmup,
      volume,
      ...sized,
      expected: 'gpus' in limit ? expectedOf(volume, limit, ncclSeconds) : undefined,
      check: sweep.check ? exactCheck(wrong, firstWrong) : unchecked,
      context: {
        threads: onHost?.threads ?? null,
        availableCores: onHost?.availableCores ?? environment.availableCores,
        lastLevelCacheBytes: environment.lastLevelCacheBytes,
        processes: world.processes,
        sharedMemory: sweep.shared,
      },
    });
  const result =
    onHost === null
      ? complete({ copyBytesPerSecond: null })
      : await onHost.sized.complete(volume, complete, betweenOf(sweep, volume, onHost, world));
  const values = caseValues(sweep, timing);
  return values === undefined ? result : { ...result, values };
}

const halves = (bits: bigint): number[] => [Number(bits >> 32n), Number(bits & 0xffffffffn)];
const bitsOf = (high: number, low: number): bigint => (BigInt(high) << 32n) | BigInt(low);

/** Of all processes, which exchange it through host memory. */
async function firstWrongOf(
  { firstWrong: mine }: NativeTiming,
  { dtype }: Point,
  world: SweepWorld,
): Promise<FirstWrong | undefined> {
  const { rank: own = -1, index: at = 0, got = 0n, expected = 0n } = mine ?? {};
  const all = await world.gather([own, at, ...halves(got), ...halves(expected)]);
  const first = all.find(([rank = -1]) => rank >= 0);
  if (first === undefined) return undefined;
  const [rank = 0, index = 0, ...[a = 0, b = 0, c = 0, d = 0]] = first;
  const { host, device } = world.ranks.find((one) => one.rank === rank) ?? {};
  return {
    rank,
    // Just its name; the report has the rest.
    ...(device === undefined ? {} : { device: device.replace(/ .*/, '') }),
    ...(host === undefined ? {} : { host }),
    index,
    expected: elementText(dtype, bitsOf(c, d)),
    got: elementText(dtype, bitsOf(a, b)),
  };
}

/** Traffic between processes; allocShared arrays are accessible to all and read in place. */
function betweenOf(
  { collective, shared }: Sweep,
  { bytes }: Volume,
  { cores }: HostSweepLimit,
  { size }: SweepWorld,
): Between | undefined {
  if (cores === undefined || shared) return undefined;
  return { cores, crossing: collectiveCrossing(collective, bytes, size) };
}

/** Every combination of the sweep, sizes innermost; skips a size that rounds to an earlier one. */
function* points(sweep: Sweep, ranks: number): Generator<Point> {
  const { reduces, rooted } = traitsOf(sweep.collective);
  for (const dtype of sweep.dtypes) {
    const width = elementSize(dtype);
    const counts = sweep.sizes.map((bytes) => countPerRank(sweep.collective, bytes, width, ranks));
    for (const op of reduces ? sweep.ops : [null]) {
      for (const root of rooted ? sweep.roots : [null]) {
        for (const count of new Set(counts)) yield { count, dtype, op, root };
      }
    }
  }
}

/** Number of rows of a sweep with this many ranks. */
export function sweepRows(sweep: Sweep, ranks: number): number {
  return [...points(sweep, ranks)].length;
}

/**
 * Runs a sweep; collective. Failed cases are recorded, and the sweep continues unless the communicator is lost.
 *
 * @param onRow receives each row once measured
 * @returns all cases, in the order they ran
 */
export async function runSweep(
  sweep: Sweep,
  context: Context,
  onRow: (row: SweepRow) => void,
): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  await prepareLimits(sweep, context);
  const all = [...points(sweep, context.world.size)];
  // All estimates first: NCCL needs another communicator for them, whose memory must not affect the timing.
  const timed = all.filter((point) => !isWaived(sweep, point, context.world.size));
  const calls = timed.map((point) => callOf(sweep, point));
  const estimates = await context.world.estimate(calls, sweep.timeoutMs ?? -1);
  const expected = new Map(timed.map((point, index) => [point, estimates[index] ?? null]));
  for (const point of all) {
    const communicator = { usable: true };
    const run = async (placement: Placement): Promise<CaseResult> => {
      try {
        return await runCase(sweep, point, placement, context, expected.get(point) ?? null);
      } catch (error) {
        communicator.usable &&= error instanceof GradlinkError ? error.usable : true;
        return failedCase(identity(sweep, point, placement, context), error);
      }
    };
    const outOfPlace = await run('out-of-place');
    const inPlace = await run('in-place');
    results.push(outOfPlace, inPlace);
    const { parameters } = identity(sweep, point, 'in-place', context);
    onRow({ ...point, bytes: Number(parameters.bytes), outOfPlace, inPlace });
    if (!communicator.usable) break;
  }
  return results;
}
