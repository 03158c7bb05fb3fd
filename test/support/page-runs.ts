// Made-up runs that together have every kind of chart.
import { partOf } from '../../lib/check/part.js';
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

/** @param seconds of a pass over the memory */
export function checkRun(seconds = 0.02): Report {
  const verdict = (text: string) => ({ level: 'good', text, likelyCause: null }) as const;
  return report('check', [
    partOf(
      { name: 'doctor', parameters: {} },
      { samplesSeconds: [1], verdict: verdict('lines as they should be') },
    ),
    partOf(
      { name: 'memory', parameters: {} },
      { samplesSeconds: [seconds, seconds], bytes: 2 ** 28, verdict: verdict('steadily') },
    ),
  ]);
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
          parameters: {
            from,
            to,
            by: from,
            figure: 'one',
            quantity: 'bandwidth',
            flow: `${from} to ${to}`,
            beside: `${to} to ${from}`,
          },
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

function bucketed(mode: string, phase: string, mebibytes: number): CaseResult {
  const isBackward = phase === 'backward';
  const seconds = isBackward ? 0.1 - mebibytes / 1000 : 0.03;
  const base = completeCase({
    name: 'ddp',
    parameters: { mode, phase, model: 'resnet50', ranks: 2, bucketBytes: mebibytes * 2 ** 20 },
    samplesSeconds: [0.98, 1, 1.4].map((factor) => factor * seconds),
    volume: { ...copy, bytes: 1e8, mustMoveBytes: 1e8 },
    copyBytesPerSecond: null,
    check: exactCheck(0),
  });
  const values = { computeSeconds: 0.03, communicationSeconds: 0.06, exposedSeconds: 0.04 };
  return isBackward ? { ...base, values } : base;
}

/** Modes of reducing gradients, by sizes of buckets. */
export function ddpRun(): Report {
  const cases = [3, 10, 25].flatMap((size) =>
    ['overlap', 'async', 'sync'].flatMap((mode) =>
      ['forward', 'backward'].map((phase) => bucketed(mode, phase, size)),
    ),
  );
  return report('ddp', cases);
}

/** Averaging with neighbours beside all-reduce, whose cases lack some of its parameters. */
export function neighborsRun(): Report {
  const cases = [2 ** 14, 2 ** 20, 2 ** 24].flatMap((bytes) =>
    (['all_reduce', 'neighbor_all_reduce'] as const).map((name): CaseResult => {
      const own = name === 'all_reduce' ? {} : { topology: 'exp2', dynamic: false };
      const seconds = 1e-6 + bytes / (name === 'all_reduce' ? 9e9 : 12e9);
      const result = completeCase({
        name,
        parameters: { bytes, dtype: 'float32', ranks: 2, shared: false, ...own },
        samplesSeconds: [seconds, seconds, 1.1 * seconds],
        volume: { ...copy, bytes, mustMoveBytes: 2 * bytes },
        copyBytesPerSecond: 30e9,
        loopBytes: 2 * bytes,
        check: exactCheck(0),
      });
      return { ...result, values: { timeOverAllReduce: name === 'all_reduce' ? 1 : 0.75 } };
    }),
  );
  return report('collectives', cases);
}

/** A figure that its limit does not allow, among many that it does. */
export function aboveRun(): Report {
  const cases = Array.from({ length: 14 }, (_, index): CaseResult => {
    const bytes = 2 ** (12 + index);
    const seconds = bytes / (index === 13 ? 24e9 : 18e9);
    return completeCase({
      name: 'broadcast',
      parameters: { bytes, ranks: 2 },
      samplesSeconds: [seconds, seconds, seconds],
      volume: { ...copy, bytes, mustMoveBytes: bytes },
      copyBytesPerSecond: 20e9,
      loopBytes: bytes,
      check: exactCheck(0),
    });
  });
  return report('collectives', cases);
}

/** Nanoseconds from place to place, with those within a place, which are another kind of figure. */
export function latencyRun(): Report {
  const places = ['gpu:0', 'gpu:1', 'gpu:2'];
  const cases = places.flatMap((from) =>
    places.map((to) =>
      completeCase({
        name: 'device_to_device_latency_sm',
        parameters: { from, to, quantity: 'latency', flow: `${from} to ${to}` },
        samplesSeconds: [from === to ? 3e-7 : from === 'gpu:0' ? 9e-7 : 8e-7],
        volume: { ...copy, bytes: 0, mustMoveBytes: 0 },
        copyBytesPerSecond: null,
        check: exactCheck(0),
      }),
    ),
  );
  return report('p2p', cases);
}

export function storesRun(): Report {
  return report('measure', [storeCase(), storeCase(0.5), sharedStoreCase()]);
}
