// The load of the machine during a run, from /proc and NVML.
import { readFileSync } from 'node:fs';

/** The kernel's counters at one moment. */
export interface UtilisationSample {
  /** Of the monotonic clock. */
  readonly seconds: number;
  /** Time of all processors since boot, in kernel ticks. */
  readonly busyTicks: number;
  readonly totalTicks: number;
  readonly memoryUsedBytes: number;
  readonly memoryBytes: number;
  /** Busy milliseconds of all disks, summed. */
  readonly diskBusyMilliseconds: number;
  readonly disks: number;
  readonly diskReadBytes: number;
  readonly diskWrittenBytes: number;
  /** Of all interfaces but loopback. */
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
}

/** Means over the run; null if unknown. Shares are from 0 to 1. */
export interface UtilisationSummary {
  /** Duration of the observation. */
  readonly seconds: number;
  /** Of all cores, from 0 to 1; null if unknown. */
  readonly cpuShare: number | null;
  /** Of all memory, from 0 to 1; null if unknown. */
  readonly memoryShare: number | null;
  /** Share of busy time, the mean over the disks. */
  readonly diskShare: number | null;
  /** Null if unknown. */
  readonly diskReadBytesPerSecond: number | null;
  /** Null if unknown. */
  readonly diskWrittenBytesPerSecond: number | null;
  /** Null if unknown. */
  readonly networkReceivedBytesPerSecond: number | null;
  /** Null if unknown. */
  readonly networkSentBytesPerSecond: number | null;
  /** Mean over the GPUs. */
  readonly gpuShare: number | null;
}

/** The figures of a summary. */
export const utilisationNames = [
  'seconds',
  'cpuShare',
  'memoryShare',
  'diskShare',
  'diskReadBytesPerSecond',
  'diskWrittenBytesPerSecond',
  'networkReceivedBytesPerSecond',
  'networkSentBytesPerSecond',
  'gpuShare',
] as const satisfies readonly (keyof UtilisationSummary)[];

/** Reads a file of /proc; undefined if there is none. */
export type ReadProc = (name: string) => string | undefined;

const readProc: ReadProc = (name) => {
  try {
    return readFileSync(`/proc/${name}`, 'utf8');
  } catch {
    return undefined;
  }
};

const sectorBytes = 512; // of /proc/diskstats, whatever the disk's own
const kibibyte = 1024;

/** Whole disks: partitions, loop devices and memory would count the same bytes twice. */
const wholeDisk = /^(sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|nvme\d+n\d+|mmcblk\d+)$/;

export function sampleUtilisation(seconds: number, read: ReadProc = readProc): UtilisationSample {
  const ticks = (/^cpu +(\S.*)$/m.exec(read('stat') ?? '')?.[1] ?? '').split(/\s+/).map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal; user already includes guest time.
  const totalTicks = ticks.slice(0, 8).reduce((sum, value) => sum + value, 0);
  const [, , , idle = 0, waiting = 0] = ticks;
  const memory = read('meminfo') ?? '';
  const memoryOf = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(memory)?.[1] ?? NaN) * kibibyte;
  const disks = (read('diskstats') ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , name = '']) => wholeDisk.test(name));
  const diskSum = (column: number): number =>
    disks.reduce((sum, fields) => sum + Number(fields[column] ?? 0), 0);
  const interfaces = (read('net/dev') ?? '')
    .split('\n')
    .map((line) => /^\s*([^:\s]+):\s*(\S.*)$/.exec(line))
    .flatMap((match) => (match === null || match[1] === 'lo' ? [] : [match[2]!.split(/\s+/)]));
  const networkSum = (column: number): number =>
    interfaces.reduce((sum, fields) => sum + Number(fields[column] ?? 0), 0);
  return {
    seconds,
    busyTicks: totalTicks - idle - waiting,
    totalTicks,
    memoryUsedBytes: memoryOf('MemTotal') - memoryOf('MemAvailable'),
    memoryBytes: memoryOf('MemTotal'),
    disks: disks.length,
    diskReadBytes: diskSum(5) * sectorBytes,
    diskWrittenBytes: diskSum(9) * sectorBytes,
    diskBusyMilliseconds: diskSum(12),
    networkReceivedBytes: networkSum(0),
    networkSentBytes: networkSum(8),
  };
}

/**
 * Summarises two or more samples: counters from first to last, memory as the mean.
 *
 * @param gpuShares of each query of the GPUs
 */
export function summarise(
  samples: readonly UtilisationSample[],
  gpuShares: readonly number[] = [],
): UtilisationSummary {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined) throw new RangeError('expected samples, got none');
  const seconds = last.seconds - first.seconds;
  const rate = (of: (sample: UtilisationSample) => number, per = seconds): number | null =>
    finite((of(last) - of(first)) / per);
  return {
    seconds,
    cpuShare: rate(({ busyTicks }) => busyTicks, last.totalTicks - first.totalTicks),
    memoryShare: finite(
      samples.reduce(
        (sum, { memoryUsedBytes, memoryBytes }) => sum + memoryUsedBytes / memoryBytes,
        0,
      ) / samples.length,
    ),
    diskShare: rate(
      ({ diskBusyMilliseconds }) => diskBusyMilliseconds,
      seconds * 1000 * last.disks,
    ),
    diskReadBytesPerSecond: last.disks === 0 ? null : rate(({ diskReadBytes }) => diskReadBytes),
    diskWrittenBytesPerSecond:
      last.disks === 0 ? null : rate(({ diskWrittenBytes }) => diskWrittenBytes),
    networkReceivedBytesPerSecond: rate(({ networkReceivedBytes }) => networkReceivedBytes),
    networkSentBytesPerSecond: rate(({ networkSentBytes }) => networkSentBytes),
    gpuShare:
      gpuShares.length === 0
        ? null
        : gpuShares.reduce((sum, share) => sum + share, 0) / gpuShares.length,
  };
}

/** The mean over machines, without those that lack a figure. */
export function meanUtilisation(machines: readonly UtilisationSummary[]): UtilisationSummary {
  const [first] = machines;
  if (first === undefined) throw new RangeError('expected machines, got none');
  const mean = (name: keyof UtilisationSummary): number | null => {
    const known = machines.flatMap((one) => one[name] ?? []);
    return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0) / known.length;
  };
  const figures = Object.fromEntries(utilisationNames.map((name) => [name, mean(name)]));
  return { ...first, ...figures };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

const intervalMs = 500;

/** Observes the machine until stopped. */
export class UtilisationWatch {
  readonly #samples: UtilisationSample[] = [];
  readonly #gpuShares: number[] = [];
  readonly #timer: NodeJS.Timeout;

  /** @param gpuShare the current load of the GPUs; undefined if unknown */
  constructor(private readonly gpuShare: () => number | undefined = () => undefined) {
    this.#sample();
    this.#timer = setInterval(() => {
      this.#sample();
    }, intervalMs);
    this.#timer.unref();
  }

  #sample(): void {
    this.#samples.push(sampleUtilisation(performance.now() / 1000));
    const share = this.gpuShare();
    if (share !== undefined) this.#gpuShares.push(share);
  }

  stop(): UtilisationSummary {
    clearInterval(this.#timer);
    this.#sample();
    return summarise(this.#samples, this.#gpuShares);
  }
}
