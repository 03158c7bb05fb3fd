// Links, and folders of other users, under the names that checkpoints have.
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { GradlinkError } from '../../lib/index.js';
import { loadCheckpoint } from '../../lib/train/checkpoints/load.js';
import { saveCheckpoint } from '../../lib/train/checkpoints/save.js';
import { asRanks } from '../support/ranks.js';
import { warningsOfTests } from '../support/warnings.js';
import { folderOfEachTest } from '../support/folders.js';

let folder: string;
const warnings = warningsOfTests();
folderOfEachTest((made) => (folder = made));

const labels = { model: 'mlp' };
const weights = [{ name: 'w', shape: [1], data: Float32Array.of(5) }];
const saving = () =>
  asRanks(1, (rank) =>
    saveCheckpoint(folder, rank, { step: 5, samplesSeen: 50, labels }, weights, { keep: 1 }),
  );
const loading = () => asRanks(1, (rank) => loadCheckpoint(folder, rank, labels));

async function refused(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(GradlinkError);
  expect(error).toMatchObject({ code: 'ERR_SYSTEM', usable: true });
  return (error as Error).message;
}

describe('what somebody else put under the names of a checkpoint', () => {
  let victim: string;
  beforeEach(() => {
    victim = mkdtempSync(join(tmpdir(), 'gradlink-victim-'));
    for (const name of ['complete.json', 'rank-0.safetensors']) {
      writeFileSync(join(victim, name), 'precious');
    }
  });
  afterEach(() => {
    const names = readdirSync(victim).sort();
    const texts = names.map((name) => readFileSync(join(victim, name), 'utf8'));
    rmSync(victim, { recursive: true });
    expect({ names, texts }).toEqual({
      names: ['complete.json', 'rank-0.safetensors'],
      texts: ['precious', 'precious'],
    });
  });
  it.each(['', 'rank-0.safetensors', 'complete.json'])(
    'is no link that a save follows: checkpoint-5/%s',
    async (name) => {
      const link = join(folder, 'checkpoint-5', name).replace(/\/$/, '');
      if (name !== '') mkdirSync(join(folder, 'checkpoint-5'));
      symlinkSync(join(victim, name), link);
      expect(await refused(saving())).toContain(link);
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
    },
  );

  it('is no old checkpoint that a save removes, nor one that a run goes on from', async () => {
    for (const step of [1, 9]) symlinkSync(victim, join(folder, `checkpoint-${step}`));
    await saving();
    expect(readdirSync(folder).sort()).toEqual(['checkpoint-1', 'checkpoint-5', 'checkpoint-9']);
    expect((await loading())[0]?.checkpoint.step).toBe(5);
    await new Promise(setImmediate);
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining(join(folder, 'checkpoint-9')),
    ]);
  });

  it('is no file that is read through a link', async () => {
    await saving();
    const file = join(folder, 'checkpoint-5', 'rank-0.safetensors');
    renameSync(file, join(folder, 'moved'));
    symlinkSync(join(folder, 'moved'), file);
    expect(await refused(loading())).toContain(file);
  });

  it.for(['.', 'checkpoint-5'])(
    'is no folder that a save goes into: %s',
    async (name, { skip }) => {
      if (process.getuid?.() !== 0) skip('needs root');
      const own = join(folder, name);
      mkdirSync(own, { recursive: true });
      chownSync(own, 65534, 65534);
      expect(await refused(saving())).toContain('65534');
      expect(readdirSync(own)).toEqual([]);
    },
  );
});
