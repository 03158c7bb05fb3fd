// What is handed to a command as a file and is none that it can read: one clear sentence, exit status 2.
import { mkdirSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { toJson } from '../../lib/report/render.js';
import { makeBroken, noReport, noText } from '../support/broken-files.js';
import { gradlink, type Caught } from '../support/cli.js';
import { sweepRun } from '../support/page-runs.js';
import { folderOfAllTests } from '../support/folders.js';

let folder = '';
let good = '';
folderOfAllTests((made) => (folder = made));
beforeAll(() => {
  good = join(folder, 'good.json');
  writeFileSync(good, toJson(sweepRun()));
});
let own = '';
beforeEach(() => {
  own = mkdtempSync(join(folder, 'each-'));
  vi.stubEnv('XDG_DATA_HOME', join(own, 'data'));
  vi.stubEnv('XDG_STATE_HOME', join(own, 'state'));
});
afterEach(() => {
  vi.unstubAllEnvs();
});

function expectRefused({ code, stdout, stderr }: Caught, refusal: RegExp, file: string): void {
  expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(refusal);
  expect(stderr).toContain(file);
  // One sentence, and no stack.
  expect(stderr.trimEnd().split('\n'), stderr).toHaveLength(1);
  expect(stderr).not.toMatch(/\n\s+at |internal/);
}

const readers: readonly (readonly [string, (file: string) => string[]])[] = [
  ['report', (file) => ['report', file]],
  ['compare', (file) => ['compare', good, file]],
  ['predict', (file) => ['predict', file, '--compute', '100']],
  ['baseline save', (file) => ['baseline', 'save', 'kept', file]],
];

describe.each(readers)('gradlink %s', (command, argv) => {
  const files = command === 'baseline save' ? noText : noText.filter(isNoFolderOrName);
  it.each([...files, ...noReport])('refuses a file that is $what', async (broken) => {
    const file = makeBroken(own, broken);
    expectRefused(await gradlink(argv(file)), broken.refusal, file);
  });
});

/** A folder is one of reports there, and a name that is no file that of a baseline. */
function isNoFolderOrName({ what }: { readonly what: string }): boolean {
  return !['absent', 'a directory', 'a path through a file'].includes(what);
}

describe('gradlink predict --gradients', () => {
  it.each(noText)('refuses a file that is $what', async (broken) => {
    const file = makeBroken(own, broken);
    const argv = ['predict', '--link', '2,10', '--compute', '100', '--gradients', file];
    expectRefused(await gradlink(argv), broken.refusal, file);
  });

  it.each(['{}', 'null', '[]', '[1, -1]', '["1"]', '[1,'])('refuses %s', async (text) => {
    const file = join(own, 'gradients.json');
    writeFileSync(file, text);
    const argv = ['predict', '--link', '2,10', '--compute', '100', '--gradients', file];
    const wanted = /JSON array .*got .*JSON/;
    expectRefused(await gradlink(argv), wanted, file);
  });
});

describe('other files', () => {
  it.each(noText)('--hostfile refuses one that is $what', async (broken) => {
    const file = makeBroken(own, broken);
    const argv = ['launch', '-n', '2', '--launcher', 'ssh', '--hostfile', file, 'true'];
    expectRefused(await gradlink(argv), broken.refusal, file);
  });

  it.each(noText)('--plan refuses one that is $what', async (broken) => {
    const file = makeBroken(own, broken);
    const argv = ['train', '--style', 'tianshu', '--plan', file, '--output-dir', join(own, 'out')];
    expectRefused(await gradlink(argv), broken.refusal, file);
  });

  // Those that can be moved to where it stands.
  const moved = noText.filter(({ what }) =>
    ['empty', 'binary', 'a directory', 'a pipe that nobody writes', 'a device'].includes(what),
  );
  it.each(moved)('the baseline in use is refused where it is $what', async (broken) => {
    const made = makeBroken(own, broken);
    mkdirSync(join(own, 'state/gradlink'), { recursive: true });
    const file = join(own, 'state/gradlink/baseline');
    renameSync(made, file);
    expectRefused(await gradlink(['compare', good]), broken.refusal, file);
  });
});

describe('a baseline', () => {
  const place = (name: string) => join(own, 'data/gradlink/baselines', name);

  it('without reports is refused', async () => {
    mkdirSync(place('v1'), { recursive: true });
    const argv = ['compare', 'v1', good];
    expectRefused(await gradlink(argv), /baseline.* no reports/, place('v1'));
  });

  it('that is torn is refused, also in the list of all', async () => {
    mkdirSync(place('v1'), { recursive: true });
    writeFileSync(join(place('v1'), '0001.json'), '{');
    for (const argv of [
      ['compare', 'v1', good],
      ['baseline', 'list'],
    ]) {
      expectRefused(await gradlink(argv), /invalid JSON \(.*early/, place('v1'));
    }
  });

  it('is no file', async () => {
    mkdirSync(place(''), { recursive: true });
    writeFileSync(place('v1'), '');
    expectRefused(await gradlink(['baseline', 'use', 'v1']), /a folder,/, place('v1'));
    expectRefused(await gradlink(['compare', 'v1', good]), /a folder,/, place('v1'));
    expect((await gradlink(['baseline', 'list'])).code).toBe(0);
  });
});

describe('gradlink watch', () => {
  const notFollowed = noText.filter(
    ({ what }) => !['absent', 'empty', 'above the bound', 'binary'].includes(what),
  );
  it.each(notFollowed)('refuses a file that is $what', async (broken) => {
    const file = makeBroken(own, broken);
    expectRefused(await gradlink(['watch', file]), broken.refusal, file);
  });

  it('refuses a file that is binary', async () => {
    const file = join(own, 'run.log');
    writeFileSync(file, Buffer.from('loss 1\nab\0c'));
    expectRefused(await gradlink(['watch', file]), /not text .*byte 9\)/, file);
  });
});
