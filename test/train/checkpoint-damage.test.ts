// Checkpoints that were torn, altered, or could not be written.
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { Communicator, GradlinkError } from '../../lib/index.js';
import { completeCheckpoints } from '../../lib/train/checkpoints/folder.js';
import { loadCheckpoint } from '../../lib/train/checkpoints/load.js';
import { saveCheckpoint } from '../../lib/train/checkpoints/save.js';
import type { NamedArray } from '../../lib/train/checkpoints/types.js';
import { writeTensors } from '../../lib/train/checkpoints/tensor-file.js';
import { asRanks } from '../support/ranks.js';
import { noSmallDisk, SmallDisk } from '../support/small-disk.js';
import { warningsOfTests } from '../support/warnings.js';
import { folderOfEachTest } from '../support/folders.js';

let folder: string;
const warnings = warningsOfTests();
folderOfEachTest((made) => (folder = made));

const labels = { model: 'mlp' };
const place = (step: number) => ({ step, samplesSeen: 10 * step, labels });

function arrays(rank: number, step: number, length = 3): NamedArray[] {
  return [
    { name: 'a', shape: [length], data: new Float32Array(length).fill(rank + step / 1000) },
    { name: 'µ', shape: [1, 2], data: new Int32Array([step, -1]) },
  ];
}

/** How each rank's work ended. */
const onRanks = <T>(size: number, work: (rank: Communicator) => Promise<T>) =>
  asRanks(size, async (rank) => (await Promise.allSettled([work(rank)]))[0]);

async function save(size: number, step: number, keep?: number): Promise<void> {
  const saved = await onRanks(size, (rank) =>
    saveCheckpoint(folder, rank, place(step), arrays(rank.rank, step), { keep }),
  );
  expect(saved.map(({ status }) => status)).toEqual(Array(size).fill('fulfilled'));
}

const load = (size: number) => onRanks(size, (rank) => loadCheckpoint(folder, rank, labels));

/** All `size` ranks load what `writers` ranks wrote at `step`. */
async function expectStep(step: number, size: number, writers = size): Promise<void> {
  for (const [rank, settled] of (await load(size)).entries()) {
    if (settled.status === 'rejected') throw settled.reason;
    expect(settled.value?.checkpoint).toMatchObject({ step, samplesSeen: 10 * step, labels });
    expect(settled.value?.arrays).toEqual(arrays(rank % writers, step));
  }
  // Warnings come with the next tick.
  await new Promise(setImmediate);
}

function messages(settled: readonly PromiseSettledResult<unknown>[]): string[] {
  return settled.map((one) => {
    if (one.status === 'fulfilled') throw new Error('expected a failure');
    expect(one.reason).toBeInstanceOf(GradlinkError);
    expect(one.reason).toMatchObject({ code: 'ERR_SYSTEM', usable: true });
    return (one.reason as Error).message;
  });
}

const fileOf = (step: number, name: string): string => join(folder, `checkpoint-${step}`, name);

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at]! ^= 1;
  writeFileSync(path, bytes);
}

describe('a damaged last checkpoint', () => {
  const damages: [string, (path: string) => void][] = [
    ['cut', (path) => truncateSync(path, 100)],
    ['longer', (path) => appendFileSync(path, ' ')],
    ['flipped in its last byte', (path) => flip(path, readFileSync(path).length - 1)],
    ['flipped in its head', (path) => flip(path, 30)],
    ['gone', (path) => rmSync(path)],
    [
      'a folder',
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ];
  const names = ['rank-0.safetensors', 'rank-2.safetensors', 'complete.json'];
  it.each(damages.flatMap(([how, damage]) => names.map((name) => [name, how, damage] as const)))(
    '%s %s: all ranks, of whatever number, take the one before',
    async (name, how, damage) => {
      for (const step of [1, 2]) await save(3, step);
      damage(fileOf(2, name));
      for (const size of [1, 2, 3, 4]) {
        warnings.length = 0;
        await expectStep(1, size, 3);
        if (name === 'complete.json' && how === 'gone') continue; // As if it was never complete.
        expect(warnings).toHaveLength(size);
        for (const { name: type, message } of warnings) {
          expect(type).toBe('GradlinkWarning');
          expect(message).toMatch(
            new RegExp(`${join(folder, 'checkpoint-2')}.* ${join(folder, 'checkpoint-1')}$`),
          );
        }
        expect(warnings.some(({ message }) => message.includes(fileOf(2, name)))).toBe(true);
      }
    },
  );

  it('of which none before is whole is an error that names all', async () => {
    for (const step of [1, 2]) await save(2, step);
    flip(fileOf(1, 'complete.json'), 20);
    flip(fileOf(2, 'rank-1.safetensors'), 20);
    for (const message of messages(await load(2))) {
      expect(message).toMatch(/^no checkpoint .*: .*checkpoint-2.*; .*checkpoint-1.*\banew$/);
    }
  });

  it('that is swapped with another is found out', async () => {
    for (const step of [1, 2]) await save(2, step);
    const [one, other] = ['rank-0', 'rank-1'].map((name) => fileOf(2, `${name}.safetensors`));
    renameSync(one!, `${one!}.x`);
    renameSync(other!, one!);
    renameSync(`${one!}.x`, other!);
    await expectStep(1, 2);
    rmSync(fileOf(2, ''), { recursive: true });
    renameSync(fileOf(1, ''), fileOf(2, ''));
    expect(messages(await load(2))[0]).toMatch(/\bstep 1, .*checkpoint-2\b/);
  });

  it('is written anew by the run that went back', async () => {
    for (const step of [1, 2]) await save(2, step);
    truncateSync(fileOf(2, 'rank-1.safetensors'), 10);
    await save(2, 2);
    await expectStep(2, 2);
    expect(readdirSync(fileOf(2, '')).sort()).toHaveLength(3);
  });

  it('is no reason to remove the one that was just saved', async () => {
    for (const step of [20, 40]) await save(1, step, 1);
    truncateSync(fileOf(40, 'rank-0.safetensors'), 10);
    await save(1, 30, 1);
    await expectStep(30, 1);
  });
});

describe('a damaged old checkpoint', () => {
  it('is in the way of nothing, and goes with the next save', async () => {
    for (const step of [1, 2]) await save(2, step);
    writeFileSync(fileOf(1, 'complete.json'), '{');
    await expectStep(2, 2);
    expect(warnings).toEqual([]);
    expect(completeCheckpoints(folder).map(({ step }) => step)).toEqual([2]);
    await save(2, 3);
    expect(readdirSync(folder).sort()).toEqual(['checkpoint-2', 'checkpoint-3']);
  });
});

describe('what a killed save left', () => {
  it('goes with the next one: files in part, and folders that never counted', async () => {
    await save(2, 5);
    for (const step of [4, 6]) {
      mkdirSync(fileOf(step, ''));
      writeFileSync(fileOf(step, 'rank-0.safetensors.partial'), 'half');
    }
    mkdirSync(fileOf(7, ''));
    writeFileSync(fileOf(7, 'rank-1.safetensors.partial'), 'half');
    writeFileSync(fileOf(7, 'rank-9.safetensors'), 'of a larger job');
    writeFileSync(join(folder, 'notes.txt'), 'of the user');
    await expectStep(5, 2);
    await save(2, 7);
    expect(readdirSync(folder).sort()).toEqual(['checkpoint-5', 'checkpoint-7', 'notes.txt']);
    expect(readdirSync(fileOf(7, '')).sort()).toEqual([
      ...['complete.json', 'rank-0.safetensors', 'rank-1.safetensors'],
    ]);
  });
});

describe('a checkpoint that is saved again', () => {
  it('replaces the one of its step in one step', async () => {
    await save(2, 1);
    const other = place(1);
    const saved = await onRanks(3, (rank) =>
      saveCheckpoint(folder, rank, { ...other, samplesSeen: 77 }, arrays(rank.rank, 9)),
    );
    expect(saved.every(({ status }) => status === 'fulfilled')).toBe(true);
    const [loaded] = await load(1);
    expect(loaded).toMatchObject({ value: { checkpoint: { samplesSeen: 77, size: 3 } } });
    expect(readdirSync(fileOf(1, ''))).toHaveLength(4);
    // And with the names it had first.
    await save(2, 1);
    await expectStep(1, 2);
    expect(readdirSync(fileOf(1, ''))).toHaveLength(3);
  });

  it('stays the old one where the mark cannot be written', async () => {
    mkdirSync(fileOf(1, 'complete.json'), { recursive: true });
    const failed = messages(
      await onRanks(2, (rank) => saveCheckpoint(folder, rank, place(1), arrays(rank.rank, 1))),
    );
    expect(failed[0]).toMatch(new RegExp(`${fileOf(1, 'complete.json')} .*\\ba directory`));
    expect(failed[1]).toMatch(new RegExp(`\\brank 0 .* ${fileOf(1, '').slice(0, -1)}`));
    expect(readdirSync(fileOf(1, ''))).toEqual(['complete.json']);
  });
});

describe.skipIf(noSmallDisk !== undefined)('a full disk', () => {
  it('fails the save on all ranks, leaves nothing of it, and blocks no later one', async () => {
    const disk = new SmallDisk(256 * 1024);
    const scratch = folder;
    folder = disk.folder;
    const big = 8192;
    const saveBig = (rank: Communicator, step: number, length: number) =>
      saveCheckpoint(folder, rank, place(step), arrays(rank.rank, step, length));
    try {
      const group = Communicator.local(2);
      const ranks = await group.openRanks();
      await Promise.all(ranks.map((rank) => saveBig(rank, 1, big)));
      disk.fill(big * 4 + 8 * 4096);
      // Room for one rank's part.
      const saved = await Promise.allSettled(ranks.map((rank) => saveBig(rank, 2, big)));
      const told = messages(saved);
      expect(told.some((message) => message.includes('ENOSPC'))).toBe(true);
      expect(readdirSync(folder).sort()).toEqual(['ballast', 'checkpoint-1']);
      // The same ranks go on, with less.
      await Promise.all(ranks.map((rank) => saveBig(rank, 3, 3)));
      await group.close();
      await expectStep(3, 2);
      truncateSync(fileOf(3, 'complete.json'), 3);
      const [back] = await load(1);
      expect(back).toMatchObject({ value: { checkpoint: { step: 1 } } });
    } finally {
      folder = scratch;
      disk.remove();
    }
  });
});

describe('a checkpoint of gradlink 0.2', () => {
  function writeOld(step: number): void {
    mkdirSync(fileOf(step, ''), { recursive: true });
    writeTensors(fileOf(step, 'rank-0.safetensors'), arrays(0, step));
    writeFileSync(fileOf(step, 'complete.json'), JSON.stringify({ ...place(step), size: 1 }));
  }

  it('is loaded, with its shapes checked', async () => {
    for (const step of [1, 2]) writeOld(step);
    await expectStep(2, 2, 1);
    truncateSync(fileOf(2, 'rank-0.safetensors'), 170);
    await expectStep(1, 2, 1);
    expect(warnings[0]?.message).toContain('bytes');
  });

  it.each([
    [{ step: 2, samplesSeen: 20, labels }, /altered/],
    [{ ...place(2), size: 0 }, /size is 0/],
    [{ ...place(2), size: 1e12 }, /size is 1000000000000/],
    [{ ...place(2), size: 1, step: '2' }, /step is "2"/],
    [{ ...place(2), size: 1, samplesSeen: -1 }, /samplesSeen is -1/],
    [{ ...place(2), size: 1, labels: null }, /labels .*null/],
    [{ ...place(2), size: 1, more: 1 }, /altered/],
    [null, /not an object/],
    [[], /altered/],
  ])('whose mark is %j is skipped', async (mark, message) => {
    for (const step of [1, 2]) writeOld(step);
    writeFileSync(fileOf(2, 'complete.json'), JSON.stringify(mark));
    await expectStep(1, 1);
    expect(warnings[0]?.message).toMatch(message);
  });
});

it('a checkpoint of a later format is skipped, though its checksum fits', async () => {
  for (const step of [1, 2]) await save(1, step);
  const marker = fileOf(2, 'complete.json');
  const [, head = ''] = /^(.*),"checksum":/s.exec(readFileSync(marker, 'utf8')) ?? [];
  const later = head.replace('"format":2', '"format":3');
  const checksum = createHash('sha256').update(later).digest('hex');
  writeFileSync(marker, `${later},"checksum":"${checksum}"}\n`);
  await expectStep(1, 1);
  expect(warnings[0]?.message).toMatch(/complete\.json .*format 3, expected 2: another gradlink\b/);
});

describe('wrong arguments', () => {
  const alone = { rank: 0, size: 1, allReduce: () => Promise.resolve(), broadcast: fail };
  const good = [alone, place(1), arrays(0, 1)];
  function fail(): never {
    throw new Error('nothing is saved');
  }
  it.each([
    ['ranks', 0, [undefined, null, 7, {}, Communicator, { ...(good[0] as object), rank: 1 }]],
    [
      'place',
      1,
      [undefined, null, 'x', {}, { ...place(1), step: -1 }, { ...place(1), labels: [] }],
    ],
    [
      'place',
      1,
      [
        { ...place(1), labels: { model: 1 } },
        { ...place(1), samplesSeen: NaN },
      ],
    ],
    ['arrays', 2, [undefined, {}, [null], [{}], [{ name: 'x', data: new Float64Array(1) }]]],
    ['arrays', 2, [[{ name: 'x', data: new Float32Array(1) }]]],
  ])('for %s are found before anything is written', async (name, at, wrongs) => {
    for (const wrong of wrongs) {
      const given = good.map((value, index) => (index === at ? wrong : value));
      await expect(
        saveCheckpoint(folder, ...(given as unknown as [Communicator, never, never])),
      ).rejects.toMatchObject({
        code: expect.stringMatching(/^ERR_(INVALID_ARG_TYPE|OUT_OF_RANGE)$/) as string,
        message: expect.stringContaining(name) as string,
      });
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  const noTexts = { model: 1 } as unknown as typeof labels;
  it.each<[string, string, string, (rank: Communicator, wrong: boolean) => Promise<unknown>]>([
    [
      'a save',
      'ERR_INVALID_ARG_VALUE',
      'ERR_SYSTEM',
      (rank, wrong) =>
        saveCheckpoint(folder, rank, place(2), [
          { name: 'a', shape: [wrong ? 3 : 2], data: new Float32Array(2) },
        ]),
    ],
    [
      'a load',
      'ERR_INVALID_ARG_TYPE',
      'ERR_ABORTED',
      (rank, wrong) => loadCheckpoint(folder, rank, wrong ? noTexts : labels),
    ],
    [
      'a load of another run',
      'ERR_MISMATCH',
      'ERR_MISMATCH',
      (rank, wrong) => loadCheckpoint(folder, rank, wrong ? { model: 'other' } : labels),
    ],
  ])('of one rank in %s fail on all, and the ranks go on', async (_, own, others, call) => {
    await save(3, 1);
    const ended = await onRanks(3, async (rank) => {
      const error: unknown = await call(rank, rank.rank === 1).catch((reason: unknown) => reason);
      await rank.barrier();
      return error;
    });
    const code = (rank: number): object => ({
      status: 'fulfilled',
      value: { code: rank === 1 ? own : others, ...(rank === 1 ? {} : { rank: 1, usable: true }) },
    });
    expect(ended).toMatchObject([0, 1, 2].map(code));
    await expectStep(1, 3);
  });
});
