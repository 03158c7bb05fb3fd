/**
 * The one result type. Every output (text, JSON, CSV, Markdown, later pages and comparisons) is written
 * from a {@link Report}; nothing is measured or computed a second time on the way out.
 *
 * Units are in the names: `...Seconds`, `...Bytes`, `...BytesPerSecond`. Sizes are bytes, rates bytes a second.
 * All numbers are finite: what is not known is `null` or absent, never NaN.
 */

import { anObject } from '../checks.js';
import type { HostsComparison } from './hosts.js';
import { countedKind } from './kinds.js';
import type { StoreTraffic } from './store-traffic.js';

/** Version of the JSON layout; raised when a field changes its meaning or goes away, not when one is added. */
export const schemaVersion = 1;

/** A value that an option or a parameter of a case may have. */
export type Scalar = string | number | boolean | null;

/** What ran, as typed. */
export interface RunInfo {
  /** `measure`, `collectives`, ... */
  tool: string;
  /** Whose figures these are, with its version where it told: `nccl-tests 2.17.6`. Absent: gradlink's own. */
  program?: string;
  /** Version of the gradlink package that wrote the report, or read another program's. */
  packageVersion: string;
  /** The arguments as given, without node and the script. */
  commandLine: readonly string[];
  /** Every option with the value that was used, in the order of the tool's help. */
  options: Readonly<Record<string, Scalar>>;
  /** Start of the run, ISO 8601 in UTC. */
  startedAt: string;
}

/** The machine, as far as it explains a figure. */
export interface EnvironmentInfo {
  /** As the system names it. */
  cpuModel: string;
  /** Processors this process may run on (its affinity mask), not those of the machine. */
  availableCores: number;
  /** Of the whole machine. */
  onlineCores: number;
  /** Vector instructions the kernels use: `avx512`, `avx2`, `neon`, `scalar`; null when no addon was loaded. */
  simdLevel: string | null;
  /** Threads that the kernels use; null when no addon was loaded. */
  threads: number | null;
  /** Of the whole machine. */
  memoryBytes: number;
  /** When the run began. */
  freeMemoryBytes: number;
  /** Size of the last cache level that one core sees; null when the kernel does not tell. */
  lastLevelCacheBytes: number | null;
  /** Such as `Linux`. */
  operatingSystem: string;
  /** Its release. */
  kernel: string;
  /** As Node names it: `x64`, `arm64`. */
  architecture: string;
  /** Such as `v20.19.0`. */
  nodeVersion: string;
  /** Only variables that change what is measured (a fixed list of names), never the whole environment. */
  variables: Readonly<Record<string, string>>;
}

/** One GPU, as far as it explains a figure; null where nobody says. */
export interface GpuDevice {
  /** Its number among the GPUs that the driver shows. */
  ordinal: number;
  /** As the driver names it. */
  name: string;
  /** Null where the driver does not tell. */
  uuid: string | null;
  /** Such as `0000:3b:00.0`. */
  pciBusId: string;
  /** All of its memory. */
  memoryBytes: number;
  /** Such as `9.0`. */
  computeCapability: string;
  /** The node of the host's memory that is near to it; null where nobody knows. */
  numaNode: number | null;
  /** The most that its PCIe link can be. */
  pcieGeneration: number | null;
  /** Lanes of its link to the host; null without NVML. */
  pcieWidth: number | null;
  /** NVLinks that it has, those that are up, and what one of these carries in one direction. */
  links: number | null;
  /** NVLinks that are up; null without NVML. */
  activeLinks: number | null;
  /** Of one NVLink in one direction; null where it is not known. */
  linkBytesPerSecond: number | null;
}

/** The GPUs of a run and what drives them. */
export interface GpuEnvironment {
  /** The newest CUDA that the driver takes: `13.0`. */
  cudaVersion: string;
  /** Such as `550.54`; null without NVML. */
  driverRelease: string | null;
  /** Null where NCCL is not found. */
  ncclVersion: string | null;
  /** Why there is no NVML, and so nothing about links; null when there is one. */
  nvmlMissing: string | null;
  /** Those that the run used. */
  devices: readonly GpuDevice[];
}

/** Distribution-free interval of the median, from order statistics. */
export interface MedianInterval {
  /** Its lower end. */
  lowerSeconds: number;
  /** Its upper end. */
  upperSeconds: number;
  /** Coverage that the chosen order statistics really have; below 0.95 when there are fewer than six samples. */
  confidence: number;
}

/** Order statistics of the samples; percentiles are nearest rank, the median is the middle of the two middle ones. */
export interface Statistics {
  /** How many there are. */
  samples: number;
  /** The shortest sample. */
  minSeconds: number;
  /** The sample in the middle; of an even number the mean of the two. */
  medianSeconds: number;
  /** What 95 % of all samples do not exceed, by nearest rank. */
  p95Seconds: number;
  /** What 99 % of all samples do not exceed, by nearest rank. */
  p99Seconds: number;
  /** The longest sample. */
  maxSeconds: number;
  /** Their arithmetic mean, from which nothing is derived. */
  meanSeconds: number;
  /** Where the median lies, with its confidence. */
  medianInterval: MedianInterval;
}

/** A bandwidth at the median time, with what the interval of the median makes of it. */
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

/** What the machine allows, from its own copy bandwidth measured in the same run. */
export interface Limit {
  /** Bytes that any implementation must read plus those it must write for one operation; between cores of one of them. */
  mustMoveBytes: number;
  /** How mustMoveBytes comes about. */
  formula: string;
  /**
   * Bytes read plus bytes written in a second by a plain copy, with the same threads; where `kind` says so, by a core
   * that writes lines for another or reads another's; where `basis` says so, what the links carry.
   */
  copyBytesPerSecond: number;
  /** Absent: the memory's or the links'. Between processes with arrays of their own, what passes between their cores. */
  kind?: 'between cores';
  /** Where the rate comes from when it was not measured: `18 NVLinks x 26.56 GB/s`. */
  basis?: string;
  /** Bytes that the plain loop moved whose rate this is; absent: more than any cache holds. */
  loopBytes?: number;
  /** mustMoveBytes / copyBytesPerSecond. */
  boundSeconds: number;
  /** boundSeconds / median time: 1 is the limit; what is above has its reason in the verdict. */
  ratio: number;
}

/** One wrong element, and where it was. */
export interface FirstWrong {
  /** Whose output it is in; absent of copies. */
  rank?: number;
  /** Whose memory it is in: `gpu:2`, or of a copy `host`; absent of ranks that are no GPUs. */
  device?: string;
  /** The name of its host. */
  host?: string;
  /** Of the element, in that output or copy. */
  index: number;
  /** As text: JSON has no NaN, and no whole numbers of 64 bits. */
  expected: string;
  /** The element's value, as text. */
  got: string;
}

/** Whether the results were right. */
export interface Check {
  /** `exact`: every element compared bit for bit; `error`: MXNet's relative error against a bound; `none`: not checked. */
  kind: 'exact' | 'error' | 'none';
  /** Elements that were wrong (`exact`), over all ranks; null when not counted. */
  wrong: number | null;
  /** The first of them, by rank and then by index; absent where a second look found all right. */
  firstWrong?: FirstWrong;
  /** sum |out - expected| / sum |expected| (`error`); null when not computed or not finite. */
  error: number | null;
  /** Bound on `error`; null for the other kinds. */
  tolerance: number | null;
  /** True for `none`. */
  passed: boolean;
}

/** `none`: nothing to judge against. */
export type VerdictLevel = 'good' | 'fair' | 'poor' | 'none';

/**
 * What made a verdict where the share of the limit did not. Without a level: `no limit`, `fixed cost` (too small for its
 * limit to decide), `above limit` (its link is not what is said of it), `host time` (the host's clock), `none alike`
 * (nothing of its kind beside it), `comparison` (what others are compared with), `nothing exchanged`, `scatter` (times
 * differ by more than what is looked for), `excused` (what it needs is at fault). With a level: `others` (figures of its kind), `faults` (links that are down, counted errors),
 * `hidden` (the share of communication that is), `expected` (what a file, a table or a good day says).
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

/** What a figure is worth beside its limit. */
export interface Verdict {
  /** `none` where nothing is judged. */
  level: VerdictLevel;
  /** Absent: the share of the limit; of a report from before this field, not told. */
  reason?: VerdictReason;
  /** One sentence with the share of the limit. */
  text: string;
  /** Most likely reason for a low or unsteady figure, and what to try; null when there is nothing to explain. */
  likelyCause: string | null;
}

/** One line of MXNet's output: the mean over `--disp-batches` batches. */
export interface IterationLine {
  /** The number of the batch, from 1. */
  iteration: number;
  /** Mean over the batches of the line. */
  seconds: number;
  /** MXNet's figure per device: S * 2(n-1)/n / t. */
  bytesPerSecond: number;
  /** -1 when results are not checked, as in the original; null when it is not a finite number. */
  error: number | null;
}

/** Which case it is: unique in its report by name and parameters. */
export interface CaseIdentity {
  /** `kvstore`, or the collective: `all_reduce`, ... */
  name: string;
  /** What distinguishes it: `kvStore`, `network`, `devices`; or `bytes`, `count`, `dtype`, `op`, `root`, `placement`. */
  parameters: Readonly<Record<string, Scalar>>;
}

/** What a case that ran has to say. */
export interface Measurement {
  /** Every timed sample in order; a sample is the mean of iterationsPerSample operations. */
  samplesSeconds: readonly number[];
  /** Calls of which a sample is the mean. */
  iterationsPerSample: number;
  /** Calls before the first sample. */
  warmupIterations: number;
  /** Of `samplesSeconds`. */
  statistics: Statistics;
  /** Size S of the operation, as each formula defines it. */
  bytes: number;
  /** `bytes` by the median time. */
  algorithmBandwidth: Bandwidth;
  /** Comparable between numbers of ranks: 0 for one rank where the factor is (n-1)/n. */
  busBandwidth: Bandwidth;
  /** Null when the tool was told not to measure it. */
  limit: Limit | null;
  /** Of the results. */
  check: Check;
  /** What the figure is worth beside its limit. */
  verdict: Verdict;
  /** Arrays of a network; absent where the case is one buffer. */
  arrays?: number;
  /** MXNet's lines; only of `measure`. */
  iterations?: readonly IterationLine[];
  /** Of a store of several workers. */
  traffic?: StoreTraffic;
  /** Further figures of the tool, with the unit in each name: `imagesPerSecond`. */
  values?: Readonly<Record<string, number | null>>;
}

export interface MeasuredCase extends CaseIdentity, Measurement {
  /** It ran, and its results were right. */
  status: 'ok';
}

/** Could not run here, for a reason that is nobody's fault (not installed, not on this machine). */
export interface WaivedCase extends CaseIdentity {
  /** It cannot run here, or was not asked for. */
  status: 'waived';
  /** What is missing, and how to get it. */
  reason: string;
}

/** Failed, or ran with a wrong result (then the measurement is there too). */
export interface FailedCase extends CaseIdentity, Partial<Measurement> {
  /** It threw, or its results were wrong. */
  status: 'error';
  /** What happened. */
  reason: string;
  /** `ERR_...` of the error, when it had one. */
  code?: string;
}

/** One case of a report: it ran, could not run here, or failed. */
export type CaseResult = MeasuredCase | WaivedCase | FailedCase;

/** All of one run: what {@link reportSchema} describes. */
export interface Report {
  /** Rises when a field changes its meaning or goes away. */
  schemaVersion: typeof schemaVersion;
  /** What was run, when, by which version. */
  run: RunInfo;
  /** The machine of the process that wrote it. */
  environment: EnvironmentInfo;
  /** Absent where no GPU was used. */
  gpus?: GpuEnvironment;
  /** Of a job on several hosts, where the tool compares them. */
  hosts?: HostsComparison;
  /** In the order in which they ran. */
  cases: readonly CaseResult[];
}

/** What is known of a run before its first figure. */
export type ReportHead = Omit<Report, 'cases' | 'hosts'>;

/** What a run comes to. */
export interface Outcome {
  /** Cases that ran. */
  ok: number;
  /** Cases that could not run. */
  waived: number;
  /** Cases that failed. */
  error: number;
}

/** Counts the cases by status. A run has succeeded when no case failed and at least one ran. */
export function outcome(report: Pick<Report, 'cases'>): Outcome {
  const counts: Outcome = { ok: 0, waived: 0, error: 0 };
  countedKind(report, 'report');
  for (const result of report.cases) counts[result.status] += 1;
  return counts;
}

/** Whether the case carries a measurement: it ran, with a right or a wrong result. */
export function hasMeasurement(result: CaseResult): result is CaseResult & Measurement {
  anObject(result, 'result');
  return 'statistics' in result;
}
