/**
 * The single result type. Every output (text, JSON, CSV, Markdown, pages and comparisons) is written from a
 * {@link Report}, without measuring or computing anything twice.
 *
 * Units are in the names: `...Seconds`, `...Bytes`, `...BytesPerSecond`. All numbers are finite: unknown ones are
 * `null` or absent, never NaN.
 */

import { anObject } from '../checks.js';
import type { HostsComparison } from './hosts.js';
import { countedKind } from './kinds.js';
import type { StoreTraffic } from './store-traffic.js';

/** Version of the JSON layout; raised when a field changes its meaning or is removed, not when one is added. */
export const schemaVersion = 1;

/** The value of an option or of a case's parameter. */
export type Scalar = string | number | boolean | null;

/** The command of a run. */
export interface RunInfo {
  /** `measure`, `collectives`, ... */
  tool: string;
  /** The measured program with its version if known: `nccl-tests 2.17.6`. Absent: gradlink itself. */
  program?: string;
  /** Version of the gradlink package that wrote the report, or read another program's. */
  packageVersion: string;
  /** The arguments, without node and the script. */
  commandLine: readonly string[];
  /** Every option with its value, in the order of the tool's help. */
  options: Readonly<Record<string, Scalar>>;
  /** Start of the run, ISO 8601 in UTC. */
  startedAt: string;
}

/** The facts of the machine that explain figures. */
export interface EnvironmentInfo {
  /** The system's name for it. */
  cpuModel: string;
  /** Processors that this process may use (its affinity mask). */
  availableCores: number;
  /** Processors of the machine. */
  onlineCores: number;
  /** Vector instructions of the kernels: `avx512`, `avx2`, `neon`, `scalar`; null without the addon. */
  simdLevel: string | null;
  /** Threads of the kernels; null without the addon. */
  threads: number | null;
  /** Of the whole machine. */
  memoryBytes: number;
  /** At the start of the run. */
  freeMemoryBytes: number;
  /** Size of a core's last cache level; null if unknown. */
  lastLevelCacheBytes: number | null;
  /** Such as `Linux`. */
  operatingSystem: string;
  /** Its release. */
  kernel: string;
  /** As Node names it: `x64`, `arm64`. */
  architecture: string;
  /** Such as `v20.19.0`. */
  nodeVersion: string;
  /** Variables that affect measurements, from a fixed list of names; never the whole environment. */
  variables: Readonly<Record<string, string>>;
}

/** The facts of a GPU that explain figures; unknown ones are null. */
export interface GpuDevice {
  /** Its ordinal in the driver. */
  ordinal: number;
  /** The driver's name for it. */
  name: string;
  /** Null if the driver does not tell. */
  uuid: string | null;
  /** Such as `0000:3b:00.0`. */
  pciBusId: string;
  /** Total memory. */
  memoryBytes: number;
  /** Such as `9.0`. */
  computeCapability: string;
  /** The NUMA node of the nearest host memory; null if unknown. */
  numaNode: number | null;
  /** Maximum generation of its PCIe link. */
  pcieGeneration: number | null;
  /** Lanes of its link to the host; null without NVML. */
  pcieWidth: number | null;
  /** Number of NVLinks; null without NVML. */
  links: number | null;
  /** NVLinks that are up; null without NVML. */
  activeLinks: number | null;
  /** Of one NVLink in one direction; null if unknown. */
  linkBytesPerSecond: number | null;
}

/** The GPUs of a run and their libraries. */
export interface GpuEnvironment {
  /** The newest CUDA that the driver supports: `13.0`. */
  cudaVersion: string;
  /** Such as `550.54`; null without NVML. */
  driverRelease: string | null;
  /** Null if NCCL is not found. */
  ncclVersion: string | null;
  /** Why NVML, and so facts about links, are missing, or null. */
  nvmlMissing: string | null;
  /** The GPUs of the run. */
  devices: readonly GpuDevice[];
}

/** Distribution-free interval of the median, from order statistics. */
export interface MedianInterval {
  /** Lower end. */
  lowerSeconds: number;
  /** Upper end. */
  upperSeconds: number;
  /** Actual coverage of the chosen order statistics; below 0.95 with fewer than six samples. */
  confidence: number;
}

/** Order statistics; percentiles are nearest rank, the median of an even number is the mean of the middle two. */
export interface Statistics {
  /** Number of samples. */
  samples: number;
  /** The shortest sample. */
  minSeconds: number;
  /** The median sample. */
  medianSeconds: number;
  /** 95th percentile, by nearest rank. */
  p95Seconds: number;
  /** 99th percentile, by nearest rank. */
  p99Seconds: number;
  /** The longest sample. */
  maxSeconds: number;
  /** Arithmetic mean, for information only. */
  meanSeconds: number;
  /** The median's interval and confidence. */
  medianInterval: MedianInterval;
}

/** A bandwidth at the median time, with an interval from the median's. */
export interface Bandwidth {
  /** At the median time. */
  bytesPerSecond: number;
  /** At the upper end of the median's interval. */
  lowerBytesPerSecond: number;
  /** At the lower end of the median's interval. */
  upperBytesPerSecond: number;
  /** The formula in words and symbols, such as `S * 2(n-1)/n / t`. */
  formula: string;
}

/** The machine's limit, from its copy bandwidth measured in the same run. */
export interface Limit {
  /** Bytes that any implementation must read plus those it must write per operation; between cores, of one core. */
  mustMoveBytes: number;
  /** The formula of mustMoveBytes. */
  formula: string;
  /**
   * Bytes read plus written per second by a plain copy with the same threads. Depending on `kind`, by a core that
   * writes lines for another or reads another's; depending on `basis`, over links.
   */
  copyBytesPerSecond: number;
  /** Between processes with separate arrays; absent: of memory or links. */
  kind?: 'between cores';
  /** The source of a rate that was not measured: `18 NVLinks x 26.56 GB/s`. */
  basis?: string;
  /** The size of the plain loop with this rate; absent: beyond all caches. */
  loopBytes?: number;
  /** mustMoveBytes / copyBytesPerSecond. */
  boundSeconds: number;
  /** boundSeconds / median time: 1 is the limit; the verdict explains higher values. */
  ratio: number;
}

/** A wrong element and its position. */
export interface FirstWrong {
  /** The rank of the output; absent for copies. */
  rank?: number;
  /** The memory: `gpu:2`, or for a copy `host`; absent for ranks without GPUs. */
  device?: string;
  /** The name of its host. */
  host?: string;
  /** Index of the element in that output or copy. */
  index: number;
  /** As text: JSON has neither NaN nor 64-bit integers. */
  expected: string;
  /** The element's value, as text. */
  got: string;
}

/** The check of the results. */
export interface Check {
  /**
   * `exact`: every element compared bit by bit; `error`: MXNet's relative error against a bound; `none`: not checked.
   */
  kind: 'exact' | 'error' | 'none';
  /** Wrong elements (`exact`) over all ranks; null if not counted. */
  wrong: number | null;
  /** The first wrong element, by rank, then by index; absent if a second comparison found no error. */
  firstWrong?: FirstWrong;
  /** sum |out - expected| / sum |expected| (`error`); null if not computed or not finite. */
  error: number | null;
  /** Bound on `error`; null for the other kinds. */
  tolerance: number | null;
  /** True also for `none`. */
  passed: boolean;
}

/** `none`: not judged. */
export type VerdictLevel = 'good' | 'fair' | 'poor' | 'none';

/**
 * Why a verdict does not follow from the share of the limit. Without a level: `no limit`, `fixed cost` (too small for
 * the limit to matter), `above limit` (its link's rate is wrong), `host time` (the host's clock), `none alike` (no
 * similar figures), `comparison` (the baseline of others), `nothing exchanged`, `scatter` (times scatter by more than
 * the effect), `excused` (a dependency is at fault). With a level: `others` (similar figures), `faults` (links down,
 * errors), `hidden` (the share of overlapping communication), `expected` (a file, a table or a baseline).
 */
export type VerdictReason =
  | 'no limit'
  | 'fixed cost'
  | 'above limit'
  | 'host time'
  | 'none alike'
  | 'comparison'
  | 'nothing exchanged'
  | 'scatter'
  | 'excused'
  | 'others'
  | 'faults'
  | 'hidden'
  | 'expected';

/** The judgement of a figure against its limit. */
export interface Verdict {
  /** `none` if not judged. */
  level: VerdictLevel;
  /** Absent: the share of the limit, or a report from before this field. */
  reason?: VerdictReason;
  /** One sentence with the share of the limit. */
  text: string;
  /** The most likely reason for a low or unsteady figure, and a remedy; null if there is nothing to explain. */
  likelyCause: string | null;
}

/** One line of MXNet's output: the mean over `--disp-batches` batches. */
export interface IterationLine {
  /** The batch number, from 1. */
  iteration: number;
  /** Mean over the line's batches. */
  seconds: number;
  /** MXNet's figure per device: S * 2(n-1)/n / t. */
  bytesPerSecond: number;
  /** -1 if results are not checked, as in the original; null if not finite. */
  error: number | null;
}

/** The identity of a case, unique in its report. */
export interface CaseIdentity {
  /** `kvstore`, or the collective: `all_reduce`, ... */
  name: string;
  /**
   * Distinguishing parameters: `kvStore`, `network`, `devices`; or `bytes`, `count`, `dtype`, `op`, `root`,
   * `placement`.
   */
  parameters: Readonly<Record<string, Scalar>>;
}

/** The measurement of a case that ran. */
export interface Measurement {
  /** Every timed sample in order, each the mean of iterationsPerSample operations. */
  samplesSeconds: readonly number[];
  /** Calls per sample. */
  iterationsPerSample: number;
  /** Calls before the first sample. */
  warmupIterations: number;
  /** Of `samplesSeconds`. */
  statistics: Statistics;
  /** Size S of the operation, as in its formula. */
  bytes: number;
  /** `bytes` by the median time. */
  algorithmBandwidth: Bandwidth;
  /** Comparable between numbers of ranks: 0 for one rank if the factor is (n-1)/n. */
  busBandwidth: Bandwidth;
  /** Null if the tool was not to measure it. */
  limit: Limit | null;
  /** The check of the results. */
  check: Check;
  /** The judgement of the figure against its limit. */
  verdict: Verdict;
  /** Number of arrays of a network; absent for a single buffer. */
  arrays?: number;
  /** MXNet's lines; only for `measure`. */
  iterations?: readonly IterationLine[];
  /** For a store with several workers. */
  traffic?: StoreTraffic;
  /** Further figures of the tool, with units in the names: `imagesPerSecond`. */
  values?: Readonly<Record<string, number | null>>;
}

export interface MeasuredCase extends CaseIdentity, Measurement {
  /** It ran with correct results. */
  status: 'ok';
}

/** A case that could not run here, without a fault (something is not installed, or not on this machine). */
export interface WaivedCase extends CaseIdentity {
  /** It cannot run here, or was not requested. */
  status: 'waived';
  /** What is missing, and how to get it. */
  reason: string;
}

/** A case that failed, or ran with wrong results (then with its measurement). */
export interface FailedCase extends CaseIdentity, Partial<Measurement> {
  /** It threw, or its results were wrong. */
  status: 'error';
  /** What happened. */
  reason: string;
  /** `ERR_...` of the error, if it had one. */
  code?: string;
}

/** A case of a report: it ran, could not run here, or failed. */
export type CaseResult = MeasuredCase | WaivedCase | FailedCase;

/** One run, as described by {@link reportSchema}. */
export interface Report {
  /** Raised when a field changes its meaning or is removed. */
  schemaVersion: typeof schemaVersion;
  /** The command, its start and version. */
  run: RunInfo;
  /** The machine of the process that wrote it. */
  environment: EnvironmentInfo;
  /** Absent if no GPU was used. */
  gpus?: GpuEnvironment;
  /** For a job on several hosts, if the tool compares them. */
  hosts?: HostsComparison;
  /** In the order of their runs. */
  cases: readonly CaseResult[];
}

/** The facts of a run before its first figure. */
export type ReportHead = Omit<Report, 'cases' | 'hosts'>;

/** The number of cases by status. */
export interface Outcome {
  /** Cases that ran. */
  ok: number;
  /** Cases that could not run. */
  waived: number;
  /** Cases that failed. */
  error: number;
}

/** Counts the cases by status. A run has succeeded if no case failed and at least one ran. */
export function outcome(report: Pick<Report, 'cases'>): Outcome {
  const counts: Outcome = { ok: 0, waived: 0, error: 0 };
  countedKind(report, 'report');
  for (const result of report.cases) counts[result.status] += 1;
  return counts;
}

/** Whether the case has a measurement: it ran, with correct or wrong results. */
export function hasMeasurement(result: CaseResult): result is CaseResult & Measurement {
  anObject(result, 'result');
  return 'statistics' in result;
}
