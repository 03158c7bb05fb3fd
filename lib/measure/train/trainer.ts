// The training loop, the same for every method, model and data set.
import type * as Core from '@tensorflow/tfjs-core';
import type { LayersModel } from '@tensorflow/tfjs-layers';

import type { Communicator } from '../../communicator/communicator.js';
import { UtilisationWatch } from '../machine/utilisation.js';
import { loadCheckpoint } from '../../train/checkpoints/load.js';
import { saveCheckpoint } from '../../train/checkpoints/save.js';
import type { NamedArray } from '../../train/checkpoints/types.js';
import { monotonicSeconds } from '../../time.js';
import type { Batches, Dataset } from '../../train/data/index.js';
import type { Timeline } from '../../files/timeline.js';
import type { TrainingMethod } from './method.js';
import { partNames, type StepParts, type TrainConfig } from './types.js';

export interface Training {
  readonly core: typeof Core;
  readonly communicator: Communicator;
  readonly config: TrainConfig;
  readonly model: LayersModel;
  readonly dataset: Dataset;
  readonly batches: Batches;
  readonly method: TrainingMethod;
  readonly timeline?: Timeline | undefined;
  /** The load of the GPUs; absent if the backend uses none. */
  readonly gpuShare?: (() => number | undefined) | undefined;
  /** Called on every rank after each measured iteration. */
  readonly onIteration?: ((iteration: number, samplesPerSecond: number) => void) | undefined;
  /** Called before the first step and after each, including warm-up; its time is not measured. */
  readonly onStep?: ((step: number, steps: number) => void) | undefined;
}

/** One rank's own figures. */
export interface RankRun {
  readonly iterationSeconds: number[];
  readonly losses: number[];
  /** Sums over the measured steps. */
  readonly parts: StepParts;
  readonly measuredSteps: number;
  readonly warmupSteps: number;
  readonly resumedAt: number;
  readonly steps: number;
  readonly utilisation: ReturnType<UtilisationWatch['stop']>;
}

/**
 * Trains from the last checkpoint, or from the start, to the configured end: warm-up, then measured iterations. A
 * resumed run repeats the warm-up and measures the rest, at least one iteration.
 */
export async function runTraining(training: Training): Promise<RankRun> {
  const { config, communicator } = training;
  const state = await resume(training);
  const resumedAt = state.step;
  const whole = config.warmupSteps + config.iterations * config.stepsPerIteration;
  const left = Math.max(whole - resumedAt, config.stepsPerIteration);
  const warmupSteps = Math.min(config.warmupSteps, left - config.stepsPerIteration);
  const iterations = Math.ceil((left - warmupSteps) / config.stepsPerIteration);

  const steps = warmupSteps + iterations * config.stepsPerIteration;
  const tell = (): void => {
    const start = monotonicSeconds();
    training.onStep?.(state.step - resumedAt, steps);
    state.asideSeconds += monotonicSeconds() - start;
  };
  tell();
  for (let step = 0; step < warmupSteps; ++step) {
    await makeStep(training, state);
    tell();
  }
  // So that no rank's first iteration includes another's start.
  await communicator.barrier();
  const parts = emptyParts();
  const iterationSeconds: number[] = [];
  const losses: number[] = [];
  const watch = new UtilisationWatch(training.gpuShare);
  for (let iteration = 0; iteration < iterations; ++iteration) {
    const start = monotonicSeconds();
    const before = state.asideSeconds;
    let loss = NaN;
    for (let step = 0; step < config.stepsPerIteration; ++step) {
      loss = await makeStep(training, state, parts);
      tell();
    }
    const seconds = monotonicSeconds() - start - (state.asideSeconds - before);
    iterationSeconds.push(seconds);
    losses.push(loss);
    const samples = config.batchSize * config.stepsPerIteration;
    training.onIteration?.(iteration, samples / seconds);
  }
  const utilisation = watch.stop();
  const measuredSteps = iterations * config.stepsPerIteration;
  return {
    iterationSeconds,
    losses,
    parts,
    measuredSteps,
    warmupSteps,
    resumedAt,
    utilisation,
    steps: state.step,
  };
}

interface State {
  step: number;
  samplesSeen: number;
  /** Time of checkpoints and callbacks. */
  asideSeconds: number;
}

export function emptyParts(): StepParts {
  return Object.fromEntries(partNames.map((name) => [name, 0])) as unknown as StepParts;
}

async function makeStep(training: Training, state: State, sums?: StepParts): Promise<number> {
  const { core, model, dataset, batches, method, timeline, config } = training;
  const start = monotonicSeconds();
  const batch = batches.at(state.samplesSeen);
  const shape = [config.batchSize, ...dataset.sampleShape];
  const inputs = core.tensor(batch.inputs, shape, dataset.inputType);
  const labels = core.tidy(() =>
    core.oneHot(core.tensor1d(batch.labels, 'int32'), dataset.classes),
  );
  const made = monotonicSeconds();
  timeline?.add('compute', 'data', start, made);
  const loss = (): Core.Scalar => {
    const logits = model.apply(inputs, { training: true }) as Core.Tensor;
    return core.losses.softmaxCrossEntropy<Core.Tensor, Core.Scalar>(labels, logits);
  };
  const { loss: value, parts } = await method.step(loss);
  core.dispose([inputs, labels]);
  state.step += 1;
  state.samplesSeen += batches.samplesPerStep;
  if (sums !== undefined) {
    sums.dataSeconds += made - start;
    for (const name of partNames) sums[name] += parts[name] ?? 0;
  }
  timeline?.mark('compute', `step ${state.step}`, monotonicSeconds(), { loss: value });
  await checkpoint(training, state);
  return value;
}

function labelsOf({ model, optimizer, distOptimizer }: TrainConfig): Record<string, string> {
  return { model, optimizer, distOptimizer };
}

async function checkpoint(training: Training, state: State): Promise<void> {
  const { config, communicator, model, method } = training;
  if (config.checkpointFolder === undefined || state.step % config.checkpointEvery !== 0) return;
  const start = monotonicSeconds();
  const weights = await Promise.all(
    model.weights.map(async (weight, index): Promise<NamedArray> => {
      const tensor = weight.read();
      return {
        name: `model/${index}/${weight.originalName}`,
        shape: tensor.shape,
        data: Float32Array.from((await tensor.data()) as Float32Array),
      };
    }),
  );
  const kept = await method.state();
  const place = { step: state.step, samplesSeen: state.samplesSeen, labels: labelsOf(config) };
  await saveCheckpoint(config.checkpointFolder, communicator, place, [...weights, ...kept]);
  state.asideSeconds += monotonicSeconds() - start;
}

async function resume(training: Training): Promise<State> {
  const { config, communicator, model, method, core } = training;
  const state: State = { step: 0, samplesSeen: 0, asideSeconds: 0 };
  if (config.checkpointFolder === undefined) return state;
  const found = await loadCheckpoint(config.checkpointFolder, communicator, labelsOf(config));
  if (found === undefined) return state;
  const { checkpoint: last, arrays } = found;
  const weights = arrays.filter(({ name }) => name.startsWith('model/'));
  const tensors = weights.map(({ data, shape }) => core.tensor(data, [...shape]));
  // Validates their number and shapes.
  model.setWeights(tensors);
  core.dispose(tensors);
  await method.setState(arrays.filter(({ name }) => !name.startsWith('model/')));
  return { ...state, step: last.step, samplesSeen: last.samplesSeen };
}
