// The guide's whole program: trains on two processes, saves on one, and goes on where it ended.
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { folderOfEachTest } from '../support/folders.js';
import { root } from '../support/walks.js';

let folder = '';
folderOfEachTest((made) => (folder = made));

function train(ranks: number, steps: number): string {
  const program = ['node', join(root, 'examples/train.js'), 'model.json', String(steps)];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'bench/gradlink.js'), 'launch', '-n', String(ranks), ...program],
    { cwd: folder, encoding: 'utf8' },
  );
  expect(status, stderr).toBe(0);
  return stdout;
}

const lossesOf = (text: string): number[] =>
  [...text.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));

it('examples/train.js learns, and resumes, also with another number of ranks', () => {
  const first = train(2, 41);
  expect(first).toContain('starts');
  const [early = 0, , late = Infinity] = lossesOf(first);
  expect(late).toBeLessThan(early / 4);
  expect(Number(/([\d.]+) % of 1000 others right/.exec(first)?.[1])).toBeGreaterThan(90);
  expect(readdirSync(folder)).toEqual(['model.json']);

  const second = train(1, 1);
  expect(second).toContain('after 2624 samples');
  expect(second).toContain('1 ranks, 2656 samples');
  expect(lossesOf(second)[0]).toBeLessThan(early / 4);
});

it('examples/train.js goes on where a run was ended while it saved', () => {
  train(1, 1);
  const { mtimeMs } = statSync(join(folder, 'model.json'));
  writeFileSync(join(folder, 'model.json.new'), 'a run that was ended while it wrote');
  expect(train(1, 0)).toContain('after 32 samples');
  expect(statSync(join(folder, 'model.json')).mtimeMs).toBeGreaterThan(mtimeMs);
  expect(readdirSync(folder)).toEqual(['model.json']);
});
