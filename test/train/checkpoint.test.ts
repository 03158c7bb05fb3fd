import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { Communicator } from '../../lib/index.js';
import { completeCheckpoints } from '../../lib/train/checkpoints/folder.js';
import { loadCheckpoint } from '../../lib/train/checkpoints/load.js';
import { saveCheckpoint } from '../../lib/train/checkpoints/save.js';
import { exchangePlaces } from '../../lib/train/checkpoints/parts.js';
import type { NamedArray } from '../../lib/train/checkpoints/types.js';
import { errorWith } from '../support/errors.js';
import { folderOfEachTest } from '../support/folders.js';
import { asRanks } from '../support/ranks.js';

let folder: string;
folderOfEachTest((made) => (folder = made));

const labels = { model: 'mlp' };

function arrays(rank: number, step: number): NamedArray[] {
  return [
    { name: 'a', shape: [2, 2], data: new Float32Array([rank, step, -0.5, 1e-30]) },
    { name: 'weights of µ', shape: [3], data: new Int32Array([step, -1, 2 ** 31 - 1]) },
    { name: 'none', shape: [0], data: new Float32Array(0) },
  ];
}

function save(size: number, step: number, keep?: number): Promise<string[]> {
  const place = { step, samplesSeen: 10 * step, labels };
  return asRanks(size, (rank) =>
    saveCheckpoint(folder, rank, place, arrays(rank.rank, step), { keep }),
  );
}

describe('checkpoints', () => {
  it.each([1, 3, 4])('written by 3 ranks give %i ranks what they or others wrote', async (size) => {
    await save(3, 5);
    const loaded = await asRanks(size, (rank) => loadCheckpoint(folder, rank, labels));
    for (const [rank, one] of loaded.entries()) {
      expect(one?.checkpoint).toMatchObject({ step: 5, samplesSeen: 50, size: 3 });
      expect(one?.arrays).toEqual(arrays(rank % 3, 5));
    }
  });

  it('are none in an empty folder, and in one that is not there', async () => {
    expect(await asRanks(2, (rank) => loadCheckpoint(folder, rank, labels))).toEqual([
      undefined,
      undefined,
    ]);
    expect(completeCheckpoints(join(folder, 'absent'))).toEqual([]);
  });

  it('count by their steps, and only so many stay', async () => {
    for (const step of [8, 9, 10, 100]) await save(2, step);
    expect(completeCheckpoints(folder).map(({ step }) => step)).toEqual([100, 10]);
    expect(readdirSync(folder).sort()).toEqual(['checkpoint-10', 'checkpoint-100']);
    await save(2, 101, 1);
    expect(readdirSync(folder)).toEqual(['checkpoint-101']);
  });

  it('leave the one before as the last when a rank is lost while they are written', async () => {
    await save(2, 1);
    const group = Communicator.local(2);
    const [first, second] = await group.openRanks();
    const place = { step: 2, samplesSeen: 20, labels };
    const saving = saveCheckpoint(folder, first!, place, arrays(0, 2));
    await exchangePlaces(second!, place);
    second!.abort('the rank is lost');
    await expect(saving).rejects.toMatchObject({ code: 'ERR_ABORTED' });
    await group.close();
    expect(existsSync(join(folder, 'checkpoint-2', 'rank-0.safetensors'))).toBe(true);
    const [loaded] = await asRanks(1, (rank) => loadCheckpoint(folder, rank, labels));
    expect(loaded?.arrays).toEqual(arrays(0, 1));
  });

  it('are of one step: else all ranks fail before anything is written', async () => {
    await save(2, 1);
    for (const late of [
      { step: 3, samplesSeen: 20, labels },
      { step: 2, samplesSeen: 30, labels },
    ]) {
      const ended = await asRanks(2, (rank) => {
        const place = rank.rank === 1 ? late : { step: 2, samplesSeen: 20, labels };
        return Promise.allSettled([saveCheckpoint(folder, rank, place, arrays(rank.rank, 2))]);
      });
      for (const [one] of ended) {
        expect(one).toMatchObject({
          reason: {
            code: 'ERR_MISMATCH',
            rank: 1,
            usable: true,
            message: expect.stringMatching(/\b(step|samplesSeen) is (2|20) .*\b(3|30) /) as string,
          },
        });
      }
      expect(readdirSync(folder)).toEqual(['checkpoint-1']);
    }
  });

  it('of another run are a mismatch that says in what', async () => {
    await save(1, 3);
    const other = asRanks(1, (rank) => loadCheckpoint(folder, rank, { model: 'lenet' }));
    await expect(other).rejects.toThrow(errorWith('ERR_MISMATCH', /\bmodel lenet .*\bmlp\b/));
  });
});
