// The benchmark of training on all workers: one run of `gradlink train` without its options and printing.
import type { CaseResult, Report, ReportHead } from '../../results/result.js';
import type { Backend } from '../../train/backends.js';
import { modelKinds, type ModelKind } from '../../train/models/index.js';
import { checkEvents, givenOptions, headOf, type RunEvents } from '../common-run.js';
import { tfjsPart } from '../tfjs-part.js';
import { trainCase } from './case.js';
import { trainTable, type TrainOptions } from './train-options.js';
import type { TrainConfig, TrainResult } from './types.js';

/** Further callbacks of a training. */
export interface TrainEvents extends RunEvents {
  /** Before the first step. */
  onTraining?(workers: number, backend: Backend): void;
  /** After each measured iteration, with rank 0's samples per second. */
  onIteration?(iteration: number, samplesPerSecond: number): void;
  /** All ranks' measurements. */
  onResult?(result: TrainResult): void;
}

function placedCase(made: CaseResult, { workers, machines }: TrainResult): CaseResult {
  const place = { machines, devicesPerMachine: workers / machines };
  return { ...made, parameters: { ...made.parameters, ...place } };
}

/**
 * Trains and measures; collective in a job. TensorFlow.js must be installed.
 *
 * @returns on rank 0 the run as one case; on the others a report without cases
 * @throws RangeError or TypeError with a code for invalid options
 * @throws Error that names the missing packages of TensorFlow.js
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
