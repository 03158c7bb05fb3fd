// The output of one `gradlink train` run: BlueFog's and Horovod's lines, or ElasticDL's figures.
import { runStatistics, type Spread } from '../measure/train/statistics.js';
import type { StepParts, TrainConfig, TrainResult } from '../measure/train/types.js';
import { percentText, sizeText, timeText } from '../results/units.js';

export const trainStyles = ['bluefog', 'horovod', 'elasticdl', 'tianshu'] as const;
export type TrainStyle = (typeof trainStyles)[number];

/** Those benchmarks' name of the device, which the package's name does not prove. */
type Device = TrainResult['device'];

const rate = (value: number): string => value.toFixed(1);
const spread = ({ mean, halfWidth }: Spread): string => `${rate(mean)} +-${rate(halfWidth)}`;

/** Before the first step. */
export function startLines(config: TrainConfig, workers: number, device: Device): string[] {
  return [
    `Model: ${config.model}`,
    `Batch size: ${config.batchSize}`,
    `Number of ${device}s: ${workers}`,
    ...(config.warmupSteps > 0 ? ['Running warmup...'] : []),
    'Running benchmark...',
  ];
}

/** After an iteration of rank 0. */
export function iterLine(
  iteration: number,
  samplesPerSecond: number,
  device: Device,
  sampleName: string,
): string {
  return `Iter #${iteration}: ${rate(samplesPerSecond)} ${sampleName}/sec per ${device}`;
}

/** The last lines of a run: the total in the style's own statistic, then in both by name, then the step. */
export function endLines(
  style: 'bluefog' | 'horovod',
  config: TrainConfig,
  result: TrainResult,
): string[] {
  const { device } = result;
  const { ranks, rank0, bluefog, horovod } = runStatistics(
    result.iterationSeconds,
    config.batchSize * config.stepsPerIteration,
  );
  const unit = `${result.sampleName}/sec`;
  const upper = unit.slice(0, 1).toUpperCase() + unit.slice(1);
  const total = style === 'bluefog' ? bluefog : horovod;
  return [
    `${upper} per ${device}: ${spread(rank0)}`,
    `Total ${unit} on ${result.workers} ${device}(s): ${spread(total)}`,
    '',
    `  BlueFog's statistic  ${spread(bluefog)} ${unit}: the ranks' rates of an iteration summed, mean +-1.96 deviations of the sums`,
    `  Horovod's statistic  ${spread(horovod)} ${unit}: rank 0's mean and interval, both times ${result.workers}`,
    ...(ranks.length > 1 ? ranks.map((one, rank) => `  rank ${rank}  ${spread(one)} ${unit}`) : []),
    ...stepLines(config, result),
  ];
}

const partTitles: readonly (readonly [keyof StepParts, string])[] = [
  ['dataSeconds', 'data'],
  ['forwardSeconds', 'forward'],
  ['backwardSeconds', 'backward'],
  ['copySeconds', 'copy'],
  ['exposedSeconds', 'wait'],
  ['modelSeconds', 'model'],
  ['updateSeconds', 'update'],
];

function computedText({ device, gpu }: TrainResult): string {
  if (device === 'CPU') return 'on the CPU';
  if (gpu === undefined) return 'on the GPU that TensorFlow took, the last that it sees';
  const share = gpu.ranks > 1 ? `${gpu.ranks} workers share one` : 'one for each worker';
  return `on GPUs, ${share} of a host's ${gpu.gpus} (CUDA_VISIBLE_DEVICES by local rank)`;
}

/** The parts of a step's time, and further facts of the run. */
function stepLines(config: TrainConfig, result: TrainResult): string[] {
  const { parts, losses, utilisation, gradientBytes, gradientArrays } = result;
  const sum = partTitles.reduce((total, [name]) => total + parts[name], 0);
  const share = (value: number | null): string => (value === null ? 'unknown' : percentText(value));
  return [
    `  step      ${timeText(sum)}: ${partTitles
      .filter(([name]) => parts[name] > 0)
      .map(([name, title]) => `${title} ${timeText(parts[name])}`)
      .join(', ')}`,
    `  gradients ${sizeText(gradientBytes)} in ${gradientArrays} arrays, ${config.distOptimizer}` +
      (config.distOptimizer === 'gradient_allreduce' ? `, ${config.mode}` : '') +
      (config.shard ? ', shared steps' : ''),
    `  loss      ${(losses[0] ?? NaN).toFixed(4)} in the first iteration, ${(losses.at(-1) ?? NaN).toFixed(4)} in the last`,
    ...(result.resumedAt > 0 ? [`  resumed   at step ${result.resumedAt}`] : []),
    `  used      cpu ${share(utilisation.cpuShare)}, memory ${share(utilisation.memoryShare)}, disk ` +
      `${share(utilisation.diskShare)}, gpu ${share(utilisation.gpuShare)}`,
    `  ran on    ${result.workers} worker${result.workers === 1 ? '' : 's'} on ${result.machines} machine${result.machines === 1 ? '' : 's'}`,
    `  data      ${result.datasetName}; tfjs ${result.tfjsVersion} on ${result.backend}`,
    `  computed  ${computedText(result)}`,
  ];
}
