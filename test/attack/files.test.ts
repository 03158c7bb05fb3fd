// Files that the package reads back, altered at every byte and at random: none is taken for good.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { createOptimizer, GradlinkError, KVStore, optimizerNames } from '../../lib/index.js';
import { loadCheckpoint } from '../../lib/train/checkpoints/load.js';
import { saveCheckpoint } from '../../lib/train/checkpoints/save.js';
import type { CheckpointRanks, NamedArray } from '../../lib/train/checkpoints/types.js';
import { readTensors, writeTensors } from '../../lib/train/checkpoints/tensor-file.js';
import { noPeers } from '../support/ranks.js';
import { warningsOfTests } from '../support/warnings.js';
import { alterationsOf } from './support/altered.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import type { Random } from './support/random.js';
import { folderOfEachTest } from '../support/folders.js';

const drawn = 200;

let folder: string;
/** One for each checkpoint that is skipped. */
const warnings = warningsOfTests();
folderOfEachTest((made) => (folder = made));

/** What a caller may meet: an error of the package, or of Node's own with a code. */
function checkTyped(error: unknown, how: string): void {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  if (error instanceof GradlinkError || /^ERR_(INVALID|OUT)_/.test(String(code))) return;
  throw new Error(`an untyped error, ${how}: ${String(error)}`, { cause: error });
}

function arraysOf(random: Random): NamedArray[] {
  return Array.from({ length: 1 + random.int(3) }, (_, at) => {
    const shape = Array.from({ length: random.int(3) }, () => 1 + random.int(4));
    const length = shape.reduce((product, one) => product * one, 1);
    const data = random.chance(0.7)
      ? Float32Array.from({ length }, () => random.next())
      : Int32Array.from({ length }, () => random.int(1000));
    return { name: `layer/${at}`, shape, data };
  });
}

/** Ranks that save together, each on its own; their numbers travel by hand. */
function ranksOf(size: number): CheckpointRanks[] {
  const waiting: (() => void)[] = [];
  const given: Float64Array[] = [];
  const meet = (data: Float64Array, settle: (all: readonly Float64Array[]) => void) =>
    new Promise<void>((resolve) => {
      given.push(data);
      waiting.push(resolve);
      if (given.length < size) return;
      settle(given.splice(0));
      for (const go of waiting.splice(0)) go();
    });
  return Array.from({ length: size }, (_, rank) => ({
    rank,
    size,
    allReduce: (data) =>
      meet(data, (all) => {
        const sums = data.map((__, at) => all.reduce((sum, one) => sum + one[at]!, 0));
        for (const one of all) one.set(sums);
      }),
    // Only rank 0 can fail to write the mark, and here it does not.
    broadcast: (data) => meet(data, () => undefined),
  }));
}

const labels = { model: 'mlp' };

async function save(into: string, step: number, parts: readonly NamedArray[][]): Promise<void> {
  const place = { step, samplesSeen: step, labels };
  await Promise.all(
    ranksOf(parts.length).map((rank) => saveCheckpoint(into, rank, place, parts[rank.rank]!)),
  );
}

describe('altered files', () => {
  it('of checkpoints are never loaded', { timeout: campaignTimeout }, async () => {
    const counts = await campaign('altered checkpoints', 3, async (random, round) => {
      const size = 1 + random.int(3);
      const [before, after] = [0, 1].map(() =>
        Array.from({ length: size }, () => arraysOf(random)),
      );
      const [both, last] = ['both', 'last'].map((name) => join(folder, `${name} ${round}`));
      await save(both!, 1, before!);
      await save(both!, 2, after!);
      await save(last!, 2, after!);
      let altered = 0;
      // The first rounds of a short run take one file of each kind.
      const names = readdirSync(join(both!, 'checkpoint-2')).sort();
      const name = names[round % names.length]!;
      const files = [both!, last!].map((into) => join(into, 'checkpoint-2', name));
      const whole = readFileSync(files[0]!);
      for (const { how, bytes } of alterationsOf(whole, random, drawn)) {
        for (const file of files) writeFileSync(file, bytes);
        const told = `${name}, ${how}`;
        const loaded = await loadCheckpoint(both!, noPeers, labels);
        if (loaded?.checkpoint.step !== 1) throw new Error(`taken for good: ${told}`);
        expect(loaded.arrays, told).toEqual(before![0]);
        const failure = await loadCheckpoint(last!, noPeers, labels).catch(
          (error: unknown) => error,
        );
        if (!(failure instanceof GradlinkError)) throw new Error(`${told}: ${String(failure)}`);
        expect(failure.message).toMatch(/^no checkpoint .*: .*checkpoint-2/);
        altered += 1;
      }
      for (const file of files) writeFileSync(file, whole);
      expect((await loadCheckpoint(both!, noPeers, labels))?.arrays).toEqual(after![0]);
      await new Promise(setImmediate);
      expect(warnings).toHaveLength(altered);
      warnings.length = 0;
      return { altered };
    });
    expect(counts['altered']).toBeGreaterThan(0);
  });

  it(
    'of tensors without checksums fail by type, or are well-formed',
    () =>
      campaign('altered headers', 2, (random) => {
        const file = join(folder, 'x.safetensors');
        writeTensors(file, arraysOf(random));
        let [altered, wellFormed] = [0, 0];
        for (const { how, bytes } of alterationsOf(readFileSync(file), random, drawn)) {
          writeFileSync(file, bytes);
          altered += 1;
          try {
            for (const { shape, data } of readTensors(file)) {
              expect(shape.reduce((product, length) => product * length, 1)).toBe(data.length);
            }
            wellFormed += 1;
          } catch (error) {
            checkTyped(error, how);
          }
        }
        return { altered, 'well-formed': wellFormed };
      }),
    campaignTimeout,
  );

  it(
    'of optimizer states are refused, and change nothing',
    { timeout: campaignTimeout },
    async () => {
      await campaign('altered optimizer states', 2, async (random) => {
        const name = random.pick(optimizerNames);
        const kv = await KVStore.create('local');
        try {
          const count = 1 + random.int(4);
          const values = () => Float32Array.from({ length: count }, () => random.next());
          await kv.init('w', values());
          await kv.setOptimizer(createOptimizer(name));
          await kv.push('w', values());
          const [file, again] = [join(folder, 'states'), join(folder, 'again')];
          const dumpOptimizer = random.chance(0.5);
          await kv.saveOptimizerStates(file, { dumpOptimizer });
          const whole = readFileSync(file);
          let altered = 0;
          for (const { how, bytes } of alterationsOf(whole, random, drawn)) {
            writeFileSync(file, bytes);
            const failure = await kv.loadOptimizerStates(file).then(
              () => new Error('taken for good'),
              (error: unknown) => error,
            );
            checkTyped(failure, `${name}, ${how}`);
            altered += 1;
          }
          await kv.saveOptimizerStates(again, { dumpOptimizer });
          expect(readFileSync(again).equals(whole)).toBe(true);
          return { altered };
        } finally {
          await kv.close();
        }
      });
    },
  );
});
