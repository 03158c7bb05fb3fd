// A training run as a case of a report.
import type { StepParts, TrainConfig, TrainResult } from './types.js';
import { runStatistics } from './statistics.js';
import { unchecked, completeCase } from '../../results/case.js';
import type { CaseIdentity, CaseResult } from '../../results/result.js';

/** The name of samples in figures: `imagesPerSecond`, `sentencesPerSecond`. */
export function samplesName(sampleName: TrainResult['sampleName']): 'images' | 'sentences' {
  return sampleName === 'img' ? 'images' : 'sentences';
}

export function trainIdentity(config: TrainConfig, workers: number): CaseIdentity {
  const { model, dataset, batchSize, optimizer, distOptimizer, mode, hook, shard } = config;
  const compression = hook ?? 'none';
  return {
    name: 'train',
    parameters: {
      model,
      dataset,
      batchSize,
      optimizer,
      distOptimizer,
      ...(distOptimizer === 'gradient_allreduce' ? { mode, compression } : {}),
      ...(shard ? { shard } : {}),
      workers,
    },
  };
}

/** The slowest rank of an iteration determines the step time: the others wait for it. */
export function stepSeconds(result: TrainResult, stepsPerIteration: number): number[] {
  const [first = []] = result.iterationSeconds;
  return first.map(
    (_, iteration) =>
      Math.max(...result.iterationSeconds.map((times) => times[iteration] ?? 0)) /
      stepsPerIteration,
  );
}

export function trainCase(config: TrainConfig, result: TrainResult): CaseResult {
  const { workers, gradientBytes, gradientArrays, parts, utilisation } = result;
  const { batchSize, stepsPerIteration } = config;
  const { bluefog, horovod } = runStatistics(
    result.iterationSeconds,
    batchSize * stepsPerIteration,
  );
  const what = samplesName(result.sampleName);
  const busFactor = (2 * (workers - 1)) / workers;
  const measured = completeCase({
    ...trainIdentity(config, workers),
    samplesSeconds: stepSeconds(result, stepsPerIteration),
    iterationsPerSample: stepsPerIteration,
    warmupIterations: result.warmupSteps,
    volume: {
      bytes: gradientBytes,
      algorithmFormula: 'S / t, S = bytes of all gradients, t = a whole step',
      busFactor,
      busFormula: 'S * 2(n-1)/n / t, n = workers',
      mustMoveBytes: 0,
      mustMoveFormula: 'not applied: a step computes too',
    },
    copyBytesPerSecond: null,
    check: unchecked,
    arrays: gradientArrays,
  });
  const values: Record<string, number | null> = {
    [`${what}PerSecond`]: bluefog.mean,
    [`${what}PerSecondInterval`]: bluefog.halfWidth,
    [`horovod${capital(what)}PerSecond`]: horovod.mean,
    [`horovod${capital(what)}PerSecondInterval`]: horovod.halfWidth,
    ...(parts satisfies StepParts),
    loss: finite(result.losses.at(-1)),
    trainableParameters: result.trainableParameters,
    resumedAtStep: result.resumedAt,
    steps: result.steps,
    machines: result.machines,
    gpuWorkers: result.device === 'GPU' ? workers : 0,
    cpuShare: utilisation.cpuShare,
    memoryShare: utilisation.memoryShare,
    diskShare: utilisation.diskShare,
    diskReadBytesPerSecond: utilisation.diskReadBytesPerSecond,
    diskWrittenBytesPerSecond: utilisation.diskWrittenBytesPerSecond,
    networkReceivedBytesPerSecond: utilisation.networkReceivedBytesPerSecond,
    networkSentBytesPerSecond: utilisation.networkSentBytesPerSecond,
    gpuShare: utilisation.gpuShare,
  };
  return 'statistics' in measured ? { ...measured, values } : measured;
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
