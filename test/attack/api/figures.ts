// Figures of measurements, and forecasts from them.
import * as measure from '../../../lib/measure/index.js';
import type { Random } from '../support/random.js';
import { loose, right, same } from './call.js';
import type { Call } from './call.js';

const numbers = (random: Random, count: number) =>
  Array.from({ length: count }, () => 1 + random.int(50));

function figured(random: Random): Call {
  const samples = numbers(random, 1 + random.int(30)).map((x) => x / 1e3);
  const sorted = [...samples].sort((a, b) => a - b);
  const percent = 1 + random.int(100);
  const statistics = measure.describe(samples);
  const volume = { countPerRank: 8, elementBytes: 4, ranks: 2, placement: 'in-place' };
  return random.pick<Call>([
    {
      name: 'describe',
      args: [samples],
      run: (...args) => loose(measure)['describe']!(...args),
      check: (made) => {
        const { minSeconds, maxSeconds } = made as measure.Statistics;
        same([minSeconds, maxSeconds], [sorted[0]!, sorted.at(-1)!], 'describe');
      },
    },
    {
      name: 'percentile',
      args: [sorted, percent],
      run: (...args) => loose(measure)['percentile']!(...args),
      check: (found) => {
        const place = Math.ceil((percent * sorted.length) / 100) - 1;
        same([found as number], [sorted[place]!], `percentile ${String(percent)}`);
      },
    },
    {
      name: 'bandwidth',
      args: [1000, statistics, 'S / t'],
      run: (...args) => loose(measure)['bandwidth']!(...args),
      check: (made) => {
        const { bytesPerSecond } = made as measure.Bandwidth;
        same([bytesPerSecond], [1000 / statistics.medianSeconds], 'bandwidth');
      },
    },
    {
      name: 'collectiveVolume',
      args: [random.pick(['all_reduce', 'broadcast']), volume],
      run: (...args) => loose(measure)['collectiveVolume']!(...args),
      check: (made) => {
        right((made as measure.Volume).bytes === 32, 'bytes of a volume');
      },
    },
    {
      name: 'ratioOfMedians',
      args: [[samples], [samples], 0.9],
      run: (...args) => loose(measure)['ratioOfMedians']!(...args),
      check: (ratio) => {
        same([(ratio as measure.Ratio).median], [1], 'a ratio to itself');
      },
    },
  ]);
}

function predicted(random: Random): Call {
  const workers = 1 + random.int(6);
  const inside = measure.plainLink(1e-5, 1e9);
  const workload = {
    gradientBytes: [1e6, 2e6],
    forwardSeconds: 0.01,
    backwardSeconds: 0.02,
    sigmaSeconds: 0,
    bucketBytes: 1e7,
    overlap: true,
  };
  return {
    name: 'stepTime',
    args: [workload, workers, () => 0],
    run: (...args) => [loose(measure)['stepTime']!(...args), inside],
    check: (made) => {
      const [{ stepSeconds }] = made as [measure.StepTime];
      same([stepSeconds], [0.03], 'a step that exchanges nothing');
    },
  };
}

/** A report of one case, as a run would give it. */
function reported(random: Random): Call {
  const samplesSeconds = numbers(random, 8).map((x) => 1 + x / 100);
  const volume = measure.storeVolume({ bytes: 1000, devices: 2 });
  const input = {
    name: 'kvstore',
    parameters: { devices: 2 },
    samplesSeconds,
    volume,
    copyBytesPerSecond: 1e9,
    check: measure.exactCheck(0),
    arrays: 3,
    context: { threads: 2, availableCores: 2 },
  };
  const made = measure.completeCase(input);
  const head = {
    tool: 'measure',
    packageVersion: '1.0.0',
    startedAt: '2026-01-01T00:00:00Z',
    commandLine: [],
    options: {},
  };
  const environment = measure.environmentOf();
  const report = { schemaVersion: measure.schemaVersion, run: head, environment, cases: [made] };
  const side = { name: 'one', reports: [report] };
  return random.pick<Call>([
    {
      name: 'completeCase',
      args: [input],
      run: (...args) => loose(measure)['completeCase']!(...args),
      check: (one) => {
        right((one as { status: string }).status === 'ok', 'a case that ran');
      },
    },
    {
      name: 'compareRuns',
      args: [side, side, { tolerance: 0.05 }],
      run: (...args) => loose(measure)['compareRuns']!(...args),
      check: (comparison) => {
        const { same: alike, unclear } = measure.countChanges(comparison as measure.Comparison);
        right(alike + unclear === 1, 'a run and itself');
      },
    },
    {
      name: 'parseReport',
      args: [JSON.stringify(report), 'own'],
      run: (...args) => loose(measure)['parseReport']!(...args),
    },
    {
      name: 'outcome',
      args: [report],
      run: (...args) => loose(measure)['outcome']!(...args),
      check: (counts) => {
        right((counts as measure.Outcome).ok === 1, 'an outcome');
      },
    },
    {
      name: 'storeVolume',
      args: [{ bytes: 1000, devices: 2, compressed: true, optimizerStates: 1 }],
      run: (...args) => loose(measure)['storeVolume']!(...args),
      check: (one) => {
        right((one as measure.Volume).bytes === 1000, 'bytes of a store');
      },
    },
    {
      name: 'environmentChanges',
      args: [[report], [report]],
      run: (...args) => loose(measure)['environmentChanges']!(...args),
      check: (changes) => {
        right((changes as unknown[]).length === 0, 'a machine and itself');
      },
    },
  ]);
}

function forecast(random: Random): Call {
  const points = Array.from({ length: 8 }, (_, i) => ({
    bytes: 2 ** (10 + i),
    seconds: 1e-5 + 2 ** (10 + i) / 1e9,
  }));
  const inside = measure.fitLink(points);
  const workers = 2 + random.int(4);
  const workload = {
    gradientBytes: [1e6],
    forwardSeconds: 0.1,
    backwardSeconds: 0.1,
    sigmaSeconds: 0,
    bucketBytes: 1e6,
    overlap: false,
  };
  const cluster = { workers, perHost: 8, inside, between: inside, servers: 1 };
  return random.pick<Call>([
    {
      name: 'fitLink',
      args: [points],
      run: (...args) => loose(measure)['fitLink']!(...args),
      check: (link) => {
        right((link as measure.Link).points.length === 8, 'points of a link');
      },
    },
    {
      name: 'predict',
      args: [{ workload, workers: [1, workers], inside, schemes: ['ring', 'tree'] }],
      run: (...args) => loose(measure)['predict']!(...args),
      check: (made) => {
        right((made as measure.Prediction).steps.length === 4, 'predicted steps');
      },
    },
    {
      name: 'exchangeSeconds',
      args: [random.pick(measure.schemes), 1e6, cluster],
      run: (...args) => loose(measure)['exchangeSeconds']!(...args),
      check: (seconds) => {
        right((seconds as number) > 0, 'seconds of an exchange');
      },
    },
    {
      name: 'predictCurve',
      args: [
        [1, 2, 4].map((n) => ({ workers: n, hosts: n, stepSeconds: 1 })),
        { workers: 8, hosts: 8 },
      ],
      run: (...args) => loose(measure)['predictCurve']!(...args),
      check: (point) => {
        same([(point as measure.PredictedPoint).stepSeconds], [1], 'a flat curve');
      },
    },
  ]);
}

export const nextFigure = (random: Random): Call =>
  random.pick([figured, predicted, reported, forecast])(random);
