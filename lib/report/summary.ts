import {
  hasMeasurement,
  type Bandwidth,
  type CaseIdentity,
  type CaseResult,
  type EnvironmentInfo,
  type GpuEnvironment,
  type Limit,
  type Measurement,
  type Report,
  type ReportHead,
  type RunInfo,
} from '../results/result.js';
import { unknownTime } from '../results/foreign/index.js';
import { trafficFields } from './traffic.js';
import { bandwidthText, percentText, sizeText, timeText } from '../results/units.js';

/** The command line; of another program as far as known. */
export function commandText({ tool, program, commandLine }: RunInfo): string {
  const words = program === undefined ? ['gradlink', tool, ...commandLine] : commandLine;
  return words.length > 0 ? words.join(' ') : `not reported by ${program ?? tool}`;
}

/** The start, and the program that wrote it. */
export function startedText({
  startedAt,
  program,
  packageVersion,
}: Pick<RunInfo, 'startedAt' | 'program' | 'packageVersion'>): string {
  const time = startedAt === unknownTime ? 'at an unknown time' : startedAt;
  return `${time}, ${program ?? `gradlink ${packageVersion}`}`;
}

export function environmentLine(environment: EnvironmentInfo): string {
  if (environment.availableCores === 0) return 'not told';
  const { cpuModel, availableCores, simdLevel, threads, memoryBytes, nodeVersion, kernel } =
    environment;
  const kernels = [
    ...(simdLevel === null ? [] : [simdLevel]),
    ...(threads === null ? [] : [`${threads} thread${threads === 1 ? '' : 's'}`]),
  ];
  return [
    cpuModel,
    `${availableCores} core${availableCores === 1 ? '' : 's'}`,
    ...kernels,
    `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`,
    `${environment.operatingSystem} ${kernel}`,
    `node ${nodeVersion}`,
  ].join(', ');
}

/** The GPUs' libraries, and a line for each GPU. */
export function gpuLines({
  cudaVersion,
  driverRelease,
  ncclVersion,
  nvmlMissing,
  devices,
}: GpuEnvironment): string[] {
  const libraries = [
    `CUDA ${cudaVersion}`,
    ...(driverRelease === null ? [] : [`driver ${driverRelease}`]),
    ...(ncclVersion === null ? [] : [`NCCL ${ncclVersion}`]),
    ...(nvmlMissing === null ? [] : [`no NVML, so nothing is known of links: ${nvmlMissing}`]),
  ];
  return [libraries.join(', '), ...devices.map(gpuLine)];
}

function gpuLine(gpu: GpuEnvironment['devices'][number]): string {
  const { links, activeLinks, linkBytesPerSecond } = gpu;
  const facts = [
    `gpu:${gpu.ordinal} ${gpu.name}`,
    gpu.pciBusId,
    `${(gpu.memoryBytes / 2 ** 30).toFixed(0)} GiB`,
  ];
  if (gpu.pcieGeneration !== null && gpu.pcieWidth !== null)
    facts.push(`PCIe generation ${gpu.pcieGeneration} x${gpu.pcieWidth}`);
  if (activeLinks !== null && activeLinks > 0) {
    const rate = linkBytesPerSecond === null ? '' : ` x ${bandwidthText(linkBytesPerSecond)}`;
    const down = (links ?? activeLinks) - activeLinks;
    facts.push(`${activeLinks} NVLinks${rate}${down > 0 ? ` (${down} more are not up)` : ''}`);
  }
  if (gpu.numaNode !== null) facts.push(`NUMA node ${gpu.numaNode}`);
  return facts.join(', ');
}

/** The head of a table: the command, and the machine with its GPUs. */
export function headLines({ run, environment, gpus }: ReportHead): string[] {
  return [
    `gradlink ${run.packageVersion}: ${[run.tool, ...run.commandLine].join(' ')}`,
    environmentLine(environment),
    ...(gpus === undefined ? [] : gpuLines(gpus)),
  ].map((line) => `# ${line}`);
}

/**
 * `all_reduce bytes=8 dtype=float32`: identifies a case; a description of the data's direction replaces its parameters.
 */
export function caseTitle({ name, parameters }: CaseIdentity): string {
  if (typeof parameters.flow === 'string') {
    const { flow, beside } = parameters;
    return `${name}: ${flow}${typeof beside === 'string' ? `, beside ${beside}` : ''}`;
  }
  const shown = Object.entries(parameters)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${String(value)}`);
  return [name, ...shown].join(' ');
}

export function summaryLines(result: CaseResult): string[] {
  const lines = [caseTitle(result)];
  if (result.status !== 'ok') lines.push(field(result.status, result.reason));
  if (hasMeasurement(result)) lines.push(...measurementLines(result));
  return lines;
}

/** The summary of every case, and the machine with its GPUs. */
export function reportSummary({ cases, environment, gpus }: Report): string[] {
  return [
    ...cases.flatMap((result) => ['', ...summaryLines(result)]),
    field('machine', environmentLine(environment)),
    ...(gpus === undefined ? [] : gpuLines(gpus).map((line) => field('gpus', line))),
  ];
}

/** The reasons why nothing ran; empty if a case has figures. */
export function nothingRan(cases: readonly CaseResult[]): string[] {
  if (cases.some(hasMeasurement)) return [];
  const reasons = new Set(cases.flatMap((one) => (one.status === 'ok' ? [] : [one.reason])));
  return [`Nothing ran${reasons.size === 0 ? '' : `: ${[...reasons].join('; ')}`}`];
}

function measurementLines(measurement: Measurement): string[] {
  const { statistics, arrays, limit, check, verdict } = measurement;
  const times = [
    `median ${timeText(statistics.medianSeconds)}`,
    `min ${timeText(statistics.minSeconds)}`,
    `p95 ${timeText(statistics.p95Seconds)}`,
    `p99 ${timeText(statistics.p99Seconds)}`,
  ].join(', ');
  const size = arrays === undefined ? '' : ` in ${arrays} arrays`;
  const lines = [
    field('size', `${sizeText(measurement.bytes)}${size}`),
    field('time', `${times} (${statistics.samples} samples)`),
    field(
      'bandwidth',
      bandwidthLine(measurement.busBandwidth, statistics.medianInterval.confidence),
    ),
    field('algorithm', bandwidthLine(measurement.algorithmBandwidth)),
  ];
  if (limit !== null) {
    lines.push(
      field('must move', `${sizeText(limit.mustMoveBytes)}: ${limit.formula}`),
      field(limit.basis === undefined ? 'copy' : 'limit', limitText(limit)),
      field('ratio', `${percentText(limit.ratio)} of that limit`),
    );
  }
  if (check.kind === 'exact') lines.push(field('check', `${check.wrong ?? 0} wrong elements`));
  if (check.kind === 'error') {
    const error = check.error === null ? 'not a number' : check.error.toExponential(2);
    lines.push(
      field('check', `relative error ${error}, at most ${(check.tolerance ?? 0).toExponential(2)}`),
    );
  }
  if (measurement.traffic !== undefined) {
    lines.push(...trafficFields(measurement.traffic).map(([name, text]) => field(name, text)));
  }
  lines.push(field('verdict', `${verdict.level}: ${verdict.text}`));
  if (verdict.likelyCause !== null) lines.push(field('cause', verdict.likelyCause));
  return lines;
}

function limitText({ kind, basis, copyBytesPerSecond, loopBytes, boundSeconds }: Limit): string {
  const rate =
    basis ??
    `${bandwidthText(copyBytesPerSecond)} read and written by ${kind !== undefined ? 'cores that pass lines to one another' : loopBytes === undefined ? "this machine's copy" : `a plain loop over ${sizeText(loopBytes)}, caches included`}`;
  return `${rate}, so at least ${timeText(boundSeconds)}`;
}

function bandwidthLine(bandwidth: Bandwidth, confidence?: number): string {
  const { bytesPerSecond, lowerBytesPerSecond, upperBytesPerSecond, formula } = bandwidth;
  const interval =
    confidence === undefined
      ? ''
      : ` (${(lowerBytesPerSecond / 1e9).toFixed(2)} to ${bandwidthText(upperBytesPerSecond)}, ${percentText(confidence)} interval)`;
  return `${bandwidthText(bytesPerSecond)}${interval} = ${formula}`;
}

export function field(name: string, text: string): string {
  return `  ${name.padEnd(10)} ${text}`;
}
