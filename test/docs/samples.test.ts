// The output that README.md and docs/commands.md show is what the program prints of these figures.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { arraysLine, iterationLine, reportSummary } from '../../lib/report/index.js';
import { storeVolume } from '../../lib/results/bandwidth.js';
import { completeCase, errorCheck } from '../../lib/results/case.js';
import { environment, report } from '../support/reports.js';
import { root } from '../support/walks.js';

const bytes = 240_165_536;
const seconds = [0.067291, 0.066626, 0.065665, 0.066985, 0.059922];
/** From times with more digits than were printed. */
const printedRates = [5.353569, 5.407058, 5.486189, 5.378053, 6.011915];
const iterations = seconds.map((value, index) => ({
  iteration: index + 1,
  seconds: value,
  bytesPerSecond: 1e9 * printedRates[index]!,
  error: 1.38e-7,
}));
const measured = report('measure', [
  completeCase({
    name: 'kvstore',
    parameters: {
      kvStore: 'device',
      network: 'resnet',
      devices: 4,
      dtype: 'float32',
      mode: 'push-pull',
    },
    samplesSeconds: seconds,
    volume: storeVolume({ bytes, devices: 4 }),
    copyBytesPerSecond: 44.88e9,
    loopBytes: 2 ** 28,
    check: errorCheck(1.38e-7, 3.81e-6),
    context: { threads: 2, availableCores: 2, grantedCores: null },
    arrays: 157,
  }),
]);
const lines = reportSummary({
  ...measured,
  environment: {
    ...environment,
    cpuModel: 'AMD EPYC',
    availableCores: 2,
    simdLevel: 'avx512',
    threads: 2,
    memoryBytes: 23.5 * 2 ** 30,
    operatingSystem: 'Linux',
    kernel: '6.18.44-fc-v669',
    nodeVersion: 'v20.20.2',
  },
});

it.each([
  ['README.md', lines.filter((line) => /^ {2}(time|bandwidth|copy|check|verdict) /.test(line))],
  ['docs/commands.md', [arraysLine(157, bytes), ...iterations.map(iterationLine), ...lines]],
])('%s shows the layout of today', (page, printed) => {
  expect(readFileSync(join(root, page), 'utf8')).toContain(`${printed.join('\n')}\n`);
});
