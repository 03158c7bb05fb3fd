// Made-up runs that together have every kind of chart.
import { collectiveVolume, type Volume } from '../../lib/results/bandwidth.js';
import { completeCase, exactCheck } from '../../lib/results/case.js';
import type { CaseResult, Report, Scalar } from '../../lib/results/result.js';
import { report, sharedStoreCase, storeCase, waived } from './reports.js';

const copy: Omit<Volume, 'bytes' | 'mustMoveBytes'> = {
  algorithmFormula: 'bytes / t',
  busFactor: 1,
  busFormula: 'bytes / t',
  mustMoveFormula: 'bytes in one direction',
};

/** @param bytesPerSecond of large sizes */
export function sweepRun(bytesPerSecond = 10e9): Report {
  const cases = [64, 1024, 16384, 262144, 4194304].flatMap((count) =>
    (['out-of-place', 'in-place'] as const).map((placement): CaseResult => {
      const volume = collectiveVolume('all_reduce', {
        countPerRank: count,
        elementBytes: 4,
        ranks: 4,
        placement,
      });
      const seconds = 2e-6 + volume.bytes / bytesPerSecond;
      return completeCase({
        name: 'all_reduce',
        parameters: { bytes: volume.bytes, count, dtype: 'float32', placement, ranks: 4 },
        samplesSeconds: [0.95, 0.98, 1, 1, 1.01, 1.2].map((factor) => factor * seconds),
        volume,
        copyBytesPerSecond: 60e9,
        check: exactCheck(0),
      });
    }),
  );
  return report('collectives', [...cases, waived()]);
}

export function matrixRun(): Report {
  const places = ['gpu:0', 'gpu:1', 'gpu:2', 'gpu:3'];
  const bytes = 2 ** 23;
  const cases = places.flatMap((from) =>
    places
      .filter((to) => to !== from)
      .map((to) =>
        completeCase({
          name: 'device_to_device_memcpy_write_ce',
          parameters: { from, to, figure: 'one', quantity: 'bandwidth', flow: `${from} to ${to}` },
          samplesSeconds: [bytes / (from === 'gpu:0' ? 25e9 : 144e9)],
          volume: { ...copy, bytes, mustMoveBytes: bytes },
          copyBytesPerSecond: 159e9,
          check: exactCheck(0),
        }),
      ),
  );
  return report('p2p', cases);
}

function trained(mode: string, workers: number, efficiency: number): CaseResult {
  const parameters: Record<string, Scalar> = { model: 'resnet20', mode, workers };
  const base = completeCase({
    name: 'train',
    parameters,
    samplesSeconds: [0.05, 0.051, 0.052],
    volume: { ...copy, bytes: 1e6, mustMoveBytes: 1e6 },
    copyBytesPerSecond: null,
    check: exactCheck(0),
  });
  return {
    ...base,
    values: {
      imagesPerSecond: 100 * workers * efficiency,
      forwardSeconds: 0.01,
      backwardSeconds: 0.02,
      communicationSeconds: 0.015,
      exposedSeconds: 0.004,
    },
  };
}

export function trainRun(): Report {
  return report('train', [
    trained('sync', 1, 1),
    trained('sync', 2, 0.8),
    trained('sync', 4, 0.5),
    trained('overlap', 1, 1),
    trained('overlap', 2, 0.95),
    trained('overlap', 4, 0.9),
  ]);
}

export function storesRun(): Report {
  return report('measure', [storeCase(), storeCase(0.5), sharedStoreCase()]);
}
