// Reports of made-up runs, for the tests of everything that reads one.
import { collectiveVolume, storeVolume, type Placement } from '../../lib/results/bandwidth.js';
import { completeCase, errorCheck, exactCheck, waivedCase } from '../../lib/results/case.js';
import {
  schemaVersion,
  type CaseResult,
  type EnvironmentInfo,
  type Report,
} from '../../lib/results/result.js';

export const environment: EnvironmentInfo = {
  cpuModel: 'Example CPU',
  availableCores: 2,
  onlineCores: 4,
  simdLevel: 'avx2',
  threads: 2,
  memoryBytes: 8 * 2 ** 30,
  freeMemoryBytes: 4 * 2 ** 30,
  lastLevelCacheBytes: 32 * 2 ** 20,
  operatingSystem: 'Linux',
  kernel: '6.1.0',
  architecture: 'x64',
  nodeVersion: 'v20.19.0',
  variables: { GRADLINK_NUM_THREADS: '2' },
};

/** The first README run of MXNet's tool: resnet-200 on two devices. */
export function storeCase(error = 0): CaseResult {
  const bytes = 257991328;
  const seconds = [0.023242, 0.023106, 0.023218, 0.023193, 0.023089];
  const printed = [11.100222, 11.165508, 11.111735, 11.123614, 11.173694];
  return completeCase({
    name: 'kvstore',
    parameters: { kvStore: 'device', network: 'resnet', devices: 2 },
    samplesSeconds: seconds,
    warmupIterations: 1,
    volume: storeVolume({ bytes, devices: 2 }),
    copyBytesPerSecond: 60e9,
    check: errorCheck(error, 1e-4),
    context: { threads: 2, availableCores: 2 },
    arrays: 205,
    iterations: seconds.map((value, index) => ({
      iteration: index + 1,
      seconds: value,
      bytesPerSecond: (printed[index] ?? 0) * 1e9,
      error,
    })),
  });
}

/** Of two workers and two servers. */
export function sharedStoreCase(): CaseResult {
  const bytes = 102e6;
  const worker = { medianSeconds: 0.05, bytesSent: 3e8, bytesReceived: 3e8, copySeconds: 0.06 };
  const waits = { waitSeconds: 0.05, reduceSeconds: 0, updateSeconds: 0 };
  const server = { shards: 80, elements: 12e6, bytesReceived: 3e8, bytesSent: 3e8 };
  const busy = { mergeSeconds: 0.03, updateSeconds: 0.01, waitSeconds: 0.02 };
  return completeCase({
    name: 'kvstore',
    parameters: { kvStore: 'dist_sync', network: 'resnet', devices: 1, workers: 2, servers: 2 },
    samplesSeconds: [0.05, 0.05, 0.05],
    volume: storeVolume({ bytes, devices: 1, workers: 2, servers: true }),
    copyBytesPerSecond: 20e9,
    check: errorCheck(0, 1e-4),
    context: { threads: 2, availableCores: 8, processes: 4 },
    arrays: 160,
    traffic: {
      batches: 3,
      workers: [
        { rank: 0, ...worker, ...waits },
        { rank: 1, ...worker, ...waits, medianSeconds: 0.055 },
      ],
      servers: [
        { server: 0, ...server, ...busy },
        { server: 1, ...server, ...busy, bytesSent: 2.9e8 },
      ],
      networkBytesPerSecond: 8e9,
      networkFormula: 'bytes sent and received by all workers / t',
      slowestRank: 1,
      shares: { copy: 0.4, wire: 0.1, merge: 0.2, update: 0.05 },
    },
  });
}

export function collectiveCase(
  options: { count?: number; placement?: Placement; wrong?: number } = {},
): CaseResult {
  const { count = 2 ** 20, placement = 'out-of-place', wrong = 0 } = options;
  const call = { countPerRank: count, elementBytes: 4, ranks: 4, placement };
  const volume = collectiveVolume('all_reduce', call);
  return completeCase({
    name: 'all_reduce',
    parameters: { bytes: volume.bytes, count, dtype: 'float32', op: 'sum', root: -1, placement },
    samplesSeconds: Float64Array.from([0.002, 0.0021, 0.0019, 0.002, 0.0022, 0.002]),
    iterationsPerSample: 10,
    volume,
    copyBytesPerSecond: 20e9,
    check: exactCheck(wrong),
  });
}

export function waived(): CaseResult {
  const parameters = { bytes: 4194304, count: 1048576, dtype: 'float32', op: null, root: -1 };
  const identity = { name: 'alltoall', parameters: { ...parameters, placement: 'in-place' } };
  return waivedCase(identity, 'no in-place | try out-of-place');
}

export function report(tool: string, cases: readonly CaseResult[]): Report {
  return {
    schemaVersion,
    run: {
      tool,
      packageVersion: '0.1.0',
      commandLine: ['--kv-store', 'device'],
      options: { kvStore: 'device', numBatches: 5, gpus: null, progress: false },
      startedAt: '2026-01-02T03:04:05.678Z',
    },
    environment,
    cases,
  };
}
