// PyTorch's compare_ddp: the same steps with different reduce modes and bucket sizes.
import { mebibyte } from '../../results/units.js';
import { median } from 'simple-statistics';

import type { Communicator } from '../../communicator/communicator.js';
import type { ReduceMode } from '../../train/buckets/types.js';
import type { Timeline } from '../../files/timeline.js';
import { gatherNumbers } from '../job.js';
import type { DdpTrainer, DdpWorkload } from './step.js';

export interface DdpPlan {
  /** In MiB. */
  readonly bucketSizes: readonly number[];
  readonly firstBucketMebibytes: number;
  readonly modes: readonly ReduceMode[];
  readonly warmupSteps: number;
  readonly steps: number;
  /**
   * `async` and `sync` as in the original: PythonDDP's buckets count Mi elements, four times the bytes of `overlap`, in
   * forward order.
   */
  readonly originalUnits: boolean;
  /** Records the steps of `overlap`. */
  readonly timeline?: Timeline | undefined;
}

/** One mode with one bucket size, on all ranks. */
export interface DdpRow {
  readonly mode: ReduceMode;
  readonly bucketMebibytes: number;
  readonly buckets: number;
  readonly bucketBytes: number;
  /** Of each rank, in order. */
  readonly forwardSeconds: readonly (readonly number[])[];
  readonly backwardSeconds: readonly (readonly number[])[];
  /** Medians over all ranks' runs of the backward pass alone and of all collectives alone. */
  readonly computeSeconds: number;
  readonly communicationSeconds: number;
  /** Half the range of the runs of the backward pass alone. */
  readonly computeSpreadSeconds: number;
  readonly wrong: number | null;
}

/** Runs to time computing and communication separately. */
const runsAlone = 5;

/** Steps of a comparison, including the warm-up. */
export function ddpSteps({ bucketSizes, modes, warmupSteps, steps }: DdpPlan): number {
  return bucketSizes.length * modes.length * (warmupSteps + steps);
}

/**
 * Runs the comparison on all ranks of a communicator.
 *
 * The modes of one bucket size alternate step by step in a rotating order, so that other load affects them equally. All
 * ranks start a step together.
 *
 * @param done called on every rank after each bucket size
 * @param onStep called on every rank after each step of each mode, {@link ddpSteps} times
 * @returns the same on every rank, in the order of the sizes and modes
 */
export async function compareDdp(
  communicator: Communicator,
  workload: DdpWorkload,
  plan: DdpPlan,
  done: (rows: readonly DdpRow[]) => void = () => undefined,
  onStep: () => void = () => undefined,
): Promise<readonly DdpRow[]> {
  const all: DdpRow[] = [];
  for (const bucketMebibytes of plan.bucketSizes) {
    const rows = await compareSize(communicator, workload, plan, bucketMebibytes, onStep);
    all.push(...rows);
    done(rows);
  }
  return all;
}

async function openTrainer(
  communicator: Communicator,
  workload: DdpWorkload,
  { firstBucketMebibytes, originalUnits, timeline }: DdpPlan,
  mode: ReduceMode,
  size: number,
): Promise<DdpTrainer> {
  const python = originalUnits && mode !== 'overlap';
  return workload.open(communicator, {
    mode,
    bucketCapBytes: size * mebibyte,
    firstBucketBytes: Math.min(firstBucketMebibytes, size) * mebibyte,
    ...(python ? { capacityElements: size * mebibyte } : {}),
    ...(mode === 'overlap' ? { timeline } : {}),
  });
}

async function compareSize(
  communicator: Communicator,
  workload: DdpWorkload,
  plan: DdpPlan,
  size: number,
  onStep: () => void,
): Promise<DdpRow[]> {
  const { modes, steps, warmupSteps } = plan;
  const trainers: DdpTrainer[] = [];
  for (const mode of modes) {
    trainers.push(await openTrainer(communicator, workload, plan, mode, size));
  }
  const forward: number[][] = modes.map(() => []);
  const backward: number[][] = modes.map(() => []);
  const wrong: (number | null)[] = modes.map(() => null);
  for (let step = 0; step < warmupSteps + steps; step += 1) {
    for (let turn = 0; turn < modes.length; turn += 1) {
      const at = (step + turn) % modes.length;
      const trainer = trainers[at]!;
      trainer.prepare();
      await communicator.barrier();
      const times = await trainer.step();
      if (step >= warmupSteps) {
        forward[at]!.push(times.forwardSeconds);
        backward[at]!.push(times.backwardSeconds);
      }
      if (step === warmupSteps + steps - 1) wrong[at] = trainer.countWrong();
      onStep();
    }
  }
  const rows: DdpRow[] = [];
  for (const [at, mode] of modes.entries()) {
    const trainer = trainers[at]!;
    const compute: number[] = [];
    const communication: number[] = [];
    for (let run = 0; run < runsAlone; run += 1) {
      const alone = await trainer.alone();
      compute.push(alone.backwardSeconds);
      communication.push(alone.communicationSeconds);
    }
    const own = [
      ...forward[at]!,
      ...backward[at]!,
      median(compute),
      median(communication),
      (Math.max(...compute) - Math.min(...compute)) / 2,
      wrong[at] ?? -1,
    ];
    const ranks = await gatherNumbers(communicator, own);
    const counts = ranks.map((values) => values[2 * steps + 3]!);
    rows.push({
      mode,
      bucketMebibytes: size,
      buckets: trainer.plan.length,
      bucketBytes: Math.max(...trainer.plan.map(({ bytes }) => bytes)),
      forwardSeconds: ranks.map((values) => values.slice(0, steps)),
      backwardSeconds: ranks.map((values) => values.slice(steps, 2 * steps)),
      computeSeconds: median(ranks.map((values) => values[2 * steps]!)),
      communicationSeconds: median(ranks.map((values) => values[2 * steps + 1]!)),
      computeSpreadSeconds: median(ranks.map((values) => values[2 * steps + 2]!)),
      wrong: counts.some((count) => count < 0) ? null : counts.reduce((a, b) => a + b, 0),
    });
  }
  return rows;
}
