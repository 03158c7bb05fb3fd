// The benchmark of training on all workers: all that one run of `gradlink train` does but reading its options and printing.
import type { CaseResult, Report, ReportHead } from '../../results/result.js';
import type { Backend } from '../../train/backends.js';
import { modelKinds, type ModelKind } from '../../train/models/index.js';
import { checkEvents, givenOptions, headOf, type RunEvents } from '../common-run.js';
import { tfjsPart } from '../tfjs-part.js';
import { trainCase } from './case.js';
import { trainTable, type TrainOptions } from './train-options.js';
import type { TrainConfig, TrainResult } from './types.js';

/** What a training tells besides. */
export interface TrainEvents extends RunEvents {
  /** Before the first step. */
  onTraining?(workers: number, backend: Backend): void;
  /** After each measured iteration, with the samples a second of rank 0. */
  onIteration?(iteration: number, samplesPerSecond: number): void;
  /** What all ranks measured. */
  onResult?(result: TrainResult): void;
}

function placedCase(made: CaseResult, { workers, machines }: TrainResult): CaseResult {
  const place = { machines, devicesPerMachine: workers / machines };
  return { ...made, parameters: { ...made.parameters, ...place } };
}

/**
 * Trains, and measures while it does; every process of a job calls it alike. TensorFlow.js must be installed.
 *
 * @returns in rank 0 the run as one case; in the others a report without any
 * @throws RangeError or TypeError with a code for options that cannot be
 * @throws Error that names the packages where TensorFlow.js is missing
 */
export async function run(options: TrainOptions = {}, events: TrainEvents = {}): Promise<Report> {
  checkEvents(events);
  const given = givenOptions(trainTable, options);
  const kind: ModelKind = modelKinds[given.model];
  const dataset = given.dataset ?? (kind.inputType === 'int32' ? 'tokens' : 'cifar10');
  const config: TrainConfig = { ...given, dataset };
  const { trainOnRank } = await tfjsPart(() => import('./rank.js'));
  let head: ReportHead | undefined;
  const result = await trainOnRank(config, {
    onStart(workers, backend) {
      head = headOf('train', given, { workers });
      events.onStart?.(head, []);
      events.onTraining?.(workers, backend);
    },
    onIteration: (iteration, rate) => events.onIteration?.(iteration, rate),
    onStep: (step, steps) => events.onProgress?.(step, steps),
  });
  if (result === undefined) return { ...headOf('train', given), cases: [] };
  events.onResult?.(result);
  const made = trainCase(config, result);
  const cases = [given.placed ? placedCase(made, result) : made];
  events.onCases?.(cases);
  return { ...(head ?? headOf('train', given)), cases };
}
