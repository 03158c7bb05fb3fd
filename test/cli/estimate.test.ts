// What a long run says of the time that it takes.
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';

import { expect, it } from 'vitest';

import { measured } from '../../lib/cli/measured-command.js';
import { durationText, estimateLine } from '../../lib/cli/progress/estimate.js';
import { ReportOutput } from '../../lib/cli/reports/report-output.js';
import { headOf } from '../../lib/measure/common-run.js';

it.each([
  [10.2, '11 s'],
  [89, '89 s'],
  [95, '2 min'],
  [3600, '60 min'],
  [7200, '2 h'],
  [7500, '2 h 5 min'],
])('%d s is %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});

it('is said before the first case, with what is quicker', () => {
  expect(estimateLine(130, 0, 35, '--quick')).toBe(
    'This takes about 2 min (35 cases). --quick gives a first look in seconds.',
  );
  expect(estimateLine(130, 0, 35)).toBe('This takes about 2 min (35 cases).');
});

it('is said after each case, until little or nothing is left', () => {
  expect(estimateLine(60, 12, 35, '--quick')).toBe('12 of 35 cases are done, about 60 s are left.');
  expect(estimateLine(9, 34, 35)).toBeUndefined();
  expect(estimateLine(60, 35, 35)).toBeUndefined();
});

/** What a run of two cases, of which each takes a minute, writes to standard error. */
async function stderrOf(isTTY: boolean, format: 'text' | 'json'): Promise<string> {
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const signals = new EventEmitter();
  const io = {
    stdout: new PassThrough(),
    stderr,
    env: {},
    on: signals.on.bind(signals),
    off: signals.off.bind(signals),
  };
  const output = new ReportOutput({ format }, io);
  const tool = { head: () => [], rows: () => [], foot: () => [] };
  await measured({ tool, output, io, unit: undefined, quicker: '--quick' }, (events) => {
    const head = headOf('p2p', { asked: { commandLine: [], options: {} } });
    events.onStart(head, []);
    for (const done of [0, 1, 2]) events.onEstimate(60 * (2 - done), done, 2);
    return Promise.resolve({ ...head, cases: [] });
  });
  return String(stderr.read() ?? '');
}

it('goes to standard error, and on a terminal leaves the rest to the bar', async () => {
  const first = 'This takes about 2 min (2 cases). --quick gives a first look in seconds.\n';
  expect(await stderrOf(false, 'text')).toBe(
    `${first}1 of 2 cases are done, about 60 s are left.\n`,
  );
  expect(await stderrOf(true, 'text')).toBe(first);
});

it('is not said where nobody reads along', async () => {
  expect(await stderrOf(false, 'json')).toBe('');
});
