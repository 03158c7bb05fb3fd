// Reports of made-up runs, for the tests of everything that reads one.
import { collectiveVolume, storeVolume, type Placement } from '../../lib/measure/bandwidth.js';
import { completeCase, errorCheck, exactCheck, waivedCase } from '../../lib/measure/case.js';
import {
  schemaVersion,
  type CaseResult,
  type EnvironmentInfo,
  type Report,
} from '../../lib/measure/result.js';

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
  return waivedCase(identity, 'alltoall does not work in place | try out of place');
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
