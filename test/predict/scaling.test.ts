import { describe, expect, it } from 'vitest';

import { predictCurve } from '../../lib/predict/curve.js';
import { plainLink } from '../../lib/predict/link.js';
import { linkOfPair } from '../../lib/predict/pair.js';
import { predict, type PredictOptions } from '../../lib/predict/scaling.js';
import { exchangeSeconds, type Cluster } from '../../lib/predict/schemes.js';
import { bucketsOf, stepTime, type Workload } from '../../lib/predict/step.js';
import { publishedTables, validatePublished } from '../../lib/predict/validate.js';

const alpha = 10e-6;
const rate = 1e9;
const link = plainLink(alpha, rate);

function cluster(workers: number, more: Partial<Cluster> = {}): Cluster {
  return { workers, perHost: Infinity, inside: link, between: link, servers: workers, ...more };
}

const workload: Workload = {
  gradientBytes: [4e6, 1e6, 2e6, 3e6],
  forwardSeconds: 0.01,
  backwardSeconds: 0.02,
  sigmaSeconds: 0,
  bucketBytes: 3e6,
  overlap: true,
};

const options: PredictOptions = { workload, workers: [2, 4, 8, 64], inside: link, batchSize: 32 };

describe('schemes', () => {
  const bytes = 1e7;
  it.each([
    ['ring', 8, 14 * alpha + (14 / 8) * 0.01],
    ['tree', 8, 6 * alpha + 2 * 0.01],
    ['halving-doubling', 8, 6 * alpha + (14 / 8) * 0.01],
    ['halving-doubling', 6, 4 * alpha + (6 / 4) * 0.01 + 2 * (alpha + 0.01)],
    ['hierarchical', 8, 14 * alpha + (14 / 8) * 0.01],
    ['one-peer', 8, alpha + 0.01],
    ['parameter-server', 8, 2 * (alpha + 0.01)],
  ] as const)('%s of %d workers', (scheme, workers, seconds) => {
    expect(exchangeSeconds(scheme, bytes, cluster(workers))).toBeCloseTo(seconds, 12);
    expect(exchangeSeconds(scheme, bytes, cluster(1))).toBe(0);
  });

  const slow = plainLink(100e-6, 1e8);
  const hosts = { perHost: 4, between: slow, servers: 4 };
  it.each([
    ['ring', 14 * (100e-6 + bytes / 8 / 1e8)],
    ['tree', 2 * (2 * alpha + 100e-6) + (2 * bytes) / 1e8],
    ['halving-doubling', 4 * alpha + (6 / 4) * 0.01 + 2 * (100e-6 + bytes / 2 / 1e8)],
    ['hierarchical', 6 * (alpha + bytes / 4 / rate) + 2 * (100e-6 + bytes / 2 / 1e8)],
    ['one-peer', 100e-6 + bytes / 1e8],
    ['parameter-server', 2 * (100e-6 + (4 * bytes) / 1e8)],
  ] as const)('%s of two hosts of four', (scheme, seconds) => {
    expect(exchangeSeconds(scheme, bytes, cluster(8, hosts))).toBeCloseTo(seconds, 9);
  });

  it.each([
    ['ring', 14 * (100e-6 + bytes / 8 / 4 / 1e8)],
    ['tree', 2 * (2 * alpha + 100e-6) + (2 * bytes) / 4 / 1e8],
    ['halving-doubling', 4 * alpha + (6 / 4) * 0.01 + 2 * (100e-6 + bytes / 8 / 1e8)],
    ['hierarchical', 6 * (alpha + bytes / 4 / rate) + 2 * (100e-6 + bytes / 8 / 1e8)],
    ['one-peer', 100e-6 + bytes / 1e8],
    ['parameter-server', 2 * (100e-6 + (2 * bytes) / 1e8)],
  ] as const)('%s of two hosts of four with four rails', (scheme, seconds) => {
    // A server that all workers send to.
    const rails = { ...hosts, rails: 4, servers: 1 };
    expect(exchangeSeconds(scheme, bytes, cluster(8, rails))).toBeCloseTo(seconds, 9);
  });

  it('of a thousand hosts grow with the hosts where messages are small, and with the bytes where not', () => {
    const of = (workers: number, size: number): number =>
      exchangeSeconds('hierarchical', size, cluster(workers, { perHost: 8, between: slow }));
    expect(of(8000, 8) / of(800, 8)).toBeCloseTo(10, 0);
    expect(of(8000, 1e10) / of(80, 1e10)).toBeLessThan(1.2);
  });
});

describe('a step', () => {
  it('fills buckets from the last gradient on', () => {
    expect(bucketsOf(workload)).toEqual([
      { bytes: 3e6, ready: 0.3 },
      { bytes: 3e6, ready: 0.6 },
      { bytes: 4e6, ready: 1 },
    ]);
  });

  it('hides what fits under the backward pass', () => {
    const hidden = stepTime(workload, 4, () => 1e-3);
    // Only the last bucket is ready when nothing is left to hide it.
    expect(hidden.exposedSeconds).toBeCloseTo(1e-3, 9);
    expect(hidden.communicationSeconds).toBeCloseTo(3e-3, 9);
    const bare = stepTime({ ...workload, overlap: false }, 4, () => 1e-3);
    expect(bare.exposedSeconds).toBeCloseTo(3e-3, 9);
    const slow = stepTime(workload, 4, () => 0.1);
    expect(slow.stepSeconds).toBeCloseTo(0.01 + 0.02 * 0.3 + 0.3, 9);
  });

  it('waits for the slowest of many', () => {
    const uneven = { ...workload, sigmaSeconds: 1e-3 };
    expect(stepTime(uneven, 100, () => 0).stragglerSeconds).toBeCloseTo(3.035e-3, 6);
    expect(stepTime(uneven, 1, () => 0).stragglerSeconds).toBe(0);
  });
});

describe('predict', () => {
  it('gives a band around each figure that widens with the workers', () => {
    const { steps, predicted } = predict({ ...options, schemes: ['ring'] });
    expect(predicted).toBe(true);
    for (const { stepBand, efficiency, throughput, speedup, workers, stepSeconds } of steps) {
      for (const { value, low, high } of [stepBand, efficiency, throughput, speedup]) {
        expect(low).toBeLessThan(value);
        expect(high).toBeGreaterThan(value);
      }
      expect(throughput.value).toBeCloseTo((workers * 32) / stepSeconds, 6);
      expect(efficiency.value).toBeCloseTo(speedup.value / workers, 9);
    }
  });

  it('is off by a fifth of what is exchanged, half as much again for each doubling of two', () => {
    const bare = { ...workload, overlap: false };
    const found = predict({ ...options, workload: bare, schemes: ['ring'] });
    const errors = found.steps.map(
      ({ stepBand, communicationSeconds }) =>
        (stepBand.high - stepBand.value) / communicationSeconds,
    );
    expect(errors).toEqual([0.2, 0.3, 0.4, 0.7].map((one) => expect.closeTo(one, 9) as number));
    expect(found.assumptions.join()).toMatch(/\b10\.0 us\b/);
  });

  it('marks the best scheme of each number of workers', () => {
    const { steps } = predict(options);
    for (const workers of options.workers) {
      const all = steps.filter((step) => step.workers === workers);
      const row = all.filter(({ scheme }) => scheme !== 'one-peer');
      const quickest = Math.min(...row.map(({ stepSeconds }) => stepSeconds));
      for (const { best, stepSeconds } of row) expect(best).toBe(stepSeconds === quickest);
      // It is the quickest, and no all-reduce.
      const peer = all.find(({ scheme }) => scheme === 'one-peer');
      expect(peer?.stepSeconds).toBeLessThanOrEqual(quickest);
      expect(peer?.best).toBe(false);
    }
  });

  it('finds where efficiency crosses 80 %', () => {
    // A ring's latency grows with the workers: 0.03 s of compute allow 0.0075 s.
    const slow = plainLink(1e-4, 1e12);
    const one = { ...workload, overlap: false, bucketBytes: 1e9 };
    const { crossings } = predict({ ...options, workload: one, inside: slow });
    const ring = crossings.find(({ scheme }) => scheme === 'ring');
    expect(ring?.workers).toBe(Math.floor((0.0075 - 2e-5) / 2e-4) + 2);
    expect(crossings.find(({ scheme }) => scheme === 'one-peer')?.workers).toBeNull();
    // Two seconds beside eight are at 80 %, not below.
    const even = { ...one, gradientBytes: [2 ** 20], forwardSeconds: 4, backwardSeconds: 4 };
    const at = { workload: even, inside: plainLink(1, 2 ** 20), schemes: ['one-peer'] as const };
    expect(predict({ ...options, ...at }).crossings[0]?.workers).toBeNull();
  });

  it('says what it cannot predict', () => {
    expect(() => predict({ ...options, perHost: 8, workers: [12] })).toThrow(/multiple/);
    expect(() => predict({ ...options, workers: [0] })).toThrow(RangeError);
    const idle = { ...workload, forwardSeconds: 0, backwardSeconds: 0 };
    expect(() => predict({ ...options, workload: idle })).toThrow(/compute time/);
    const empty = { ...workload, gradientBytes: [] };
    expect(() => predict({ ...options, workload: empty })).toThrow(/sizes above 0/);
  });
});

describe('a curve of measured steps', () => {
  const step = (workers: number): number =>
    0.1 + (workers > 8 ? (0.02 * 2 * (workers / 8 - 1)) / (workers / 8) : 0);
  const measured = [8, 16].map((workers) => ({
    workers,
    hosts: workers / 8,
    stepSeconds: step(workers),
  }));

  it('lies between that of a tree and that of a ring', () => {
    const found = predictCurve(measured, { workers: 64, hosts: 8 });
    expect(found.highSeconds).toBeCloseTo(step(64), 9);
    expect(found.lowSeconds).toBeCloseTo(0.12, 9);
    expect(found.stepSeconds).toBeCloseTo((step(64) + 0.12) / 2, 9);
  });

  it('tells how far the points lie from it', () => {
    const at64 = { workers: 64, hosts: 8 };
    expect(predictCurve(measured, at64).misfit).toBeCloseTo(0, 9);
    // Compute alone: a step that becomes shorter with more hosts is on no curve.
    const shorter = [0.1, 0.08].map((stepSeconds, i) => ({ ...measured[i]!, stepSeconds }));
    expect(predictCurve(shorter, at64).misfit).toBeGreaterThan(0.09);
  });

  it('needs two numbers of workers', () => {
    expect(() => predictCurve(measured.slice(1), { workers: 64, hosts: 8 })).toThrow(TypeError);
  });
});

describe('the network that a pair of hosts shows', () => {
  const schemesOfPairs = ['ring', 'hierarchical', 'tree', 'parameter-server'] as const;
  it.each(schemesOfPairs)('is found again, %s', (scheme) => {
    const between = plainLink(20e-6, 2e9);
    const pair = { ...workload, overlap: false };
    const { stepSeconds } = stepTime(pair, 8, (bytes) =>
      exchangeSeconds(scheme, bytes, cluster(8, { perHost: 4, between, servers: 2 })),
    );
    const shown = linkOfPair({ workload: pair, perHost: 4, inside: link, stepSeconds, scheme });
    const rateFound = 1 / shown.regimes[0]!.betaSecondsPerByte;
    // Slower than the link inside, or a ring would not show it.
    if (scheme === 'hierarchical') expect(rateFound / 2e9).toBeCloseTo(1, 6);
    const again = stepTime(pair, 8, (bytes) =>
      exchangeSeconds(scheme, bytes, cluster(8, { perHost: 4, between: shown, servers: 2 })),
    );
    expect(again.stepSeconds).toBeCloseTo(stepSeconds, 9);
  });

  it('needs a pair', () => {
    expect(() => linkOfPair({} as never)).toThrow(TypeError);
  });
});

describe('published tables', () => {
  it.each(publishedTables)('%s: the model keeps to what is promised', (table) => {
    const found = validatePublished(table);
    const promised = found.filter(({ target }) => target !== null);
    expect(promised).toHaveLength(table === 'elasticdl' ? 1 : 2);
    for (const { passed, error, target, source, rows } of promised) {
      expect(passed).toBe(true);
      expect(error).toBeLessThanOrEqual(target!);
      expect(source).toMatch(/ at [0-9a-f]{7} /);
      expect(rows.length).toBeGreaterThan(0);
    }
  });

  it('holds the figures that the tables have', () => {
    const [dlperf] = validatePublished('dlperf');
    expect(dlperf?.rows).toHaveLength(43);
    expect(dlperf?.rows[0]).toMatchObject({ published: 12411.97 });
  });

  it('promise nothing of a series whose known points lie on no curve', () => {
    const refused = validatePublished('bluefog').at(-1);
    expect(refused?.target).toBeNull();
    expect(refused?.rows.map(({ name }) => name)).toEqual(['Horovod, batch 32 (4.6 % off)']);
  });

  it('are foretold from one host and a pair as docs/predict.md says', () => {
    const pairs = validatePublished('dlperf').slice(1);
    expect(pairs.map(({ rows }) => rows.length)).toEqual([43, 43]);
    const [ring = 1, hierarchical = 1] = pairs.map(({ error }) => error);
    expect(ring).toBeCloseTo(0.031, 3);
    expect(hierarchical).toBeCloseTo(0.122, 2);
  });
});
