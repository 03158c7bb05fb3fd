// One rank of `gradlink train`: sets up model, data and method, trains, and gathers all ranks' results.

import { traceInto } from '../../communicator/base.js';
import { Communicator } from '../../communicator/communicator.js';
import { hostsOfRanks } from '../../communicator/joining/hosts.js';
import { gpuShares } from '../machine/gpu-share.js';
import {
  meanUtilisation,
  utilisationNames,
  type UtilisationSummary,
} from '../machine/utilisation.js';
import { useBackend, type Backend } from '../../train/backends.js';
import { Batches, openDataset } from '../../train/data/index.js';
import { buildModel, modelKinds, type ModelKind } from '../../train/models/index.js';
import { ownFile } from '../../files/index.js';
import { Timeline, timelineFile } from '../../files/timeline.js';
import { layers, tf } from '../../train/tfjs.js';
import { createMethod } from './create-method.js';
import { runTraining, type RankRun } from './trainer.js';
import { partNames, type StepParts, type TrainConfig, type TrainResult } from './types.js';

/** Options of {@link trainOnRank}. */
export interface RankOptions {
  /** Called on rank 0 after each measured iteration, with its own samples per second. */
  readonly onIteration?: ((iteration: number, samplesPerSecond: number) => void) | undefined;
  /** Called on rank 0 before the first step and after each, including warm-up. */
  readonly onStep?: ((step: number, steps: number) => void) | undefined;
  /** Called on rank 0 before the first step. */
  readonly onStart?: ((workers: number, backend: Backend) => void) | undefined;
}

/**
 * Trains as this process's rank of the job, or alone without one. Every rank calls it.
 *
 * @returns all ranks' measurements on rank 0.
 */
export async function trainOnRank(
  config: TrainConfig,
  options: RankOptions = {},
): Promise<TrainResult | undefined> {
  const backend = await useBackend(config.backend, { allowCpu: config.allowCpu });
  const communicator = await Communicator.world();
  const { rank, size } = communicator;
  const timeline =
    config.timeline === undefined
      ? undefined
      : new Timeline(ownFile(timelineFile(config.timeline, rank)), { rank });
  // Buckets and servers record their own events.
  if (timeline !== undefined) traceInto(communicator, timeline);
  try {
    const kind: ModelKind = modelKinds[config.model];
    const dataset = openDataset(config.dataset, {
      seed: config.seed,
      folder: config.dataFolder,
      imageSize: config.imageSize,
      length: config.sequenceLength,
      vocabulary: config.vocabulary,
      classes: config.classes,
    });
    const model = buildModel({ core: tf, layers }, config.model, {
      inputShape: dataset.sampleShape,
      classes: dataset.classes,
      seed: config.seed,
      vocabulary: dataset.vocabulary,
    });
    const { batchSize, seed } = config;
    const batches = new Batches(dataset, { batchSize, rank, size, seed });
    if (rank === 0) options.onStart?.(size, backend);
    const method = await createMethod({ model, communicator, config, timeline });
    const run = await runTraining({
      core: tf,
      communicator,
      config,
      model,
      dataset,
      batches,
      method,
      timeline,
      onIteration: rank === 0 ? options.onIteration : undefined,
      onStep: rank === 0 ? options.onStep : undefined,
      // Otherwise the driver would be loaded for GPUs that do not compute.
      gpuShare: backend.device === 'GPU' ? gpuShares() : undefined,
    });
    const gathered = await gather(communicator, run, backend);
    const { gradientBytes, gradientArrays } = method;
    await method.close();
    model.dispose();
    if (gathered === undefined) return undefined;
    return {
      ...gathered,
      workers: size,
      backend: backend.name,
      gpu: backend.gpu,
      tfjsVersion: backend.version,
      datasetName: dataset.name,
      sampleName: kind.sampleName,
      gradientBytes,
      gradientArrays,
      trainableParameters: gradientBytes / Float32Array.BYTES_PER_ELEMENT,
      warmupSteps: run.warmupSteps,
      resumedAt: run.resumedAt,
      steps: run.steps,
    };
  } finally {
    timeline?.close();
    await communicator.close();
  }
}

type Gathered = 'device' | 'iterationSeconds' | 'losses' | 'parts' | 'machines' | 'utilisation';

async function gather(
  communicator: Communicator,
  run: RankRun,
  backend: Backend,
): Promise<Pick<TrainResult, Gathered> | undefined> {
  const iterations = run.iterationSeconds.length;
  const hosts = await hostsOfRanks(communicator);
  const own = Float64Array.from([
    ...run.iterationSeconds,
    ...run.losses,
    ...partNames.map((name) => run.parts[name] / run.measuredSteps),
    ...utilisationNames.map((name) => run.utilisation[name] ?? NaN),
    Number(backend.device === 'GPU'),
  ]);
  const all = await communicator.gather(own);
  if (all === undefined || communicator.rank !== 0) return undefined;
  const { size } = communicator;
  const of = (rank: number, index: number): number => all[rank * own.length + index] ?? NaN;
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const meanOf = (index: number): number =>
    ranks.reduce((sum, rank) => sum + of(rank, index), 0) / size;
  const each = Array.from({ length: iterations }, (_, iteration) => iteration);
  // Ranks of one host observe the same machine, so one per host counts.
  const watching = ranks.filter((rank) => hosts.indexOf(hosts[rank]!) === rank);
  const deviceAt = own.length - 1;
  const usedAt = deviceAt - utilisationNames.length;
  return {
    iterationSeconds: ranks.map((rank) => each.map((iteration) => of(rank, iteration))),
    losses: each.map((iteration) => meanOf(iterations + iteration)),
    parts: Object.fromEntries(
      partNames.map((name, part) => [name, meanOf(2 * iterations + part)]),
    ) as unknown as StepParts,
    machines: watching.length,
    device: ranks.every((rank) => of(rank, deviceAt) === 1) ? 'GPU' : 'CPU',
    utilisation: meanUtilisation(
      watching.map((rank) => summaryOf((figure) => of(rank, usedAt + figure))),
    ),
  };
}

/** From figures in the order of their names, NaN if unknown. */
function summaryOf(figure: (index: number) => number): UtilisationSummary {
  const entries = utilisationNames.map((name, index): [string, number | null] => {
    const value = figure(index);
    return [name, Number.isNaN(value) ? null : value];
  });
  return Object.fromEntries(entries) as unknown as UtilisationSummary;
}
