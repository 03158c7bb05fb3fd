// Saves that are killed with SIGKILL before any of their calls to the file system: what is there after is whole.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { beforeEach, describe, expect, it } from 'vitest';

import { Baselines } from '../../lib/compare/index.js';
import { KVStore } from '../../lib/index.js';
import { loadCheckpoint } from '../../lib/train/checkpoints/load.js';
import { saveCheckpoint } from '../../lib/train/checkpoints/save.js';
import type { NamedArray } from '../../lib/train/checkpoints/types.js';
import { madeRun } from '../support/comparing.js';
import { runWith, type Ended } from '../support/gpu-commands.js';
import { until } from '../support/launching.js';
import { noPeers } from '../support/ranks.js';
import { campaign, campaignTimeout } from './support/campaign.js';
import { folderOfEachTest } from '../support/folders.js';

const root = join(import.meta.dirname, '../..');
const program = join(root, 'bench/gradlink.js');
const library = pathToFileURL(join(root, 'dist/tfjs.js')).href;

let folder: string;
let killer: string;
folderOfEachTest((made) => (folder = made));
beforeEach(() => {
  killer = join(folder, 'killer.mjs');
  // Loaded before the program, so that what it imports of node:fs is what is counted here.
  writeFileSync(
    killer,
    `import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    let left = Number(process.env.KILLED_AT);
    const root = process.env.KILLED_IN;
    const descriptors = new Set();
    const counts = (first) => typeof first === 'number' ? descriptors.has(first) : String(first).startsWith(root);
    for (const name of ['openSync', 'writeSync', 'fsyncSync', 'closeSync', 'renameSync', 'rmSync', 'mkdirSync',
      'rmdirSync', 'fchmodSync', 'ftruncateSync', 'writeFileSync', 'copyFileSync']) {
      const call = fs[name];
      fs[name] = (...given) => {
        if (counts(given[0])) {
          if (left-- === 0) {
            // Half of what it was to write, as a kill may leave it.
            if (name === 'writeSync') call(given[0], given[1], given[2], given[3] >> 1);
            process.kill(process.pid, 'SIGKILL');
          }
        }
        const result = call(...given);
        if (name === 'openSync' && counts(given[0])) descriptors.add(result);
        if (name === 'closeSync') descriptors.delete(given[0]);
        return result;
      };
    }
    syncBuiltinESMExports();
    process.on('exit', () => process.stdout.write('calls left ' + left + '\\n'));`,
  );
});

/** Runs a program that is killed before its `at`-th call that changes something in `inside`. */
async function killedAt(at: number, inside: string, argv: readonly string[]): Promise<Ended> {
  const ended = await runWith(process.execPath, ['--import', pathToFileURL(killer).href, ...argv], {
    KILLED_AT: String(at),
    KILLED_IN: inside,
    XDG_DATA_HOME: inside,
    XDG_STATE_HOME: inside,
  });
  const { code, signal } = ended;
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(JSON.stringify(ended));
  return ended;
}

const arrays = (step: number): NamedArray[] => [
  { name: 'w', shape: [1000], data: new Float32Array(1000).fill(step) },
];

const saving = `
  import { saveCheckpoint } from ${JSON.stringify(library)};
  const alone = { rank: 0, size: 1, allReduce: async () => {}, broadcast: async () => {} };
  for (const step of [1, 2, 3, 3, 4]) {
    const arrays = [{ name: 'w', shape: [1000], data: new Float32Array(1000).fill(step) }];
    await saveCheckpoint(process.env.KILLED_IN, alone, { step, samplesSeen: step, labels: {} }, arrays);
    process.stdout.write('saved ' + step + '\\n');
  }
`;

/** Native code writes these: killed is who is seen to have begun. */
const savingStates = `
  import { KVStore, createOptimizer } from ${JSON.stringify(pathToFileURL(join(root, 'dist/index.js')).href)};
  const kv = await KVStore.create('local');
  await kv.init('w', new Float32Array(2 ** 20));
  await kv.setOptimizer(createOptimizer('sgd', { momentum: 0.9 }));
  for (;;) {
    await kv.push('w', new Float32Array(2 ** 20).fill(1));
    await kv.saveOptimizerStates(process.env.STATES, { dumpOptimizer: true });
  }
`;

/** A few more calls than each save makes: the last rounds come to their end. */
const mostCalls = { checkpoints: 150, baseline: 30, output: 10 };

describe('a save that is killed', () => {
  it('of checkpoints leaves the last whole one', { timeout: campaignTimeout }, async () => {
    const script = join(folder, 'saving.mjs');
    writeFileSync(script, saving);
    await campaign('killed saves of checkpoints', 8, async (random, round) => {
      const inside = join(folder, `checkpoints ${round}`);
      mkdirSync(inside);
      const at = random.int(mostCalls.checkpoints);
      const { signal, stdout } = await killedAt(at, inside, [script]);
      const saved = Number([...stdout.matchAll(/saved (\d)/g)].at(-1)?.[1] ?? 0);
      const loaded = await loadCheckpoint(inside, noPeers, {});
      const step = loaded?.checkpoint.step ?? 0;
      expect([saved, saved + 1]).toContain(step);
      if (loaded !== undefined) expect(loaded.arrays).toEqual(arrays(step));
      await saveCheckpoint(inside, noPeers, { step: 9, samplesSeen: 9, labels: {} }, arrays(9));
      const staying = [...(step === 0 ? [] : [`checkpoint-${step}`]), 'checkpoint-9'];
      expect(readdirSync(inside)).toEqual(staying);
      const files = ['complete.json', 'rank-0.safetensors'];
      expect(readdirSync(join(inside, 'checkpoint-9'))).toEqual(files);
      rmSync(inside, { recursive: true });
      return { killed: signal === null ? 0 : 1, ended: signal === null ? 1 : 0 };
    });
  });

  it('of a baseline leaves the old runs or the new', { timeout: campaignTimeout }, async () => {
    const runs = [1, 2, 3].map((seed) => {
      const file = join(folder, `run ${seed}.json`);
      writeFileSync(file, JSON.stringify(madeRun({ seed })));
      return file;
    });
    await campaign('killed saves of baselines', 6, async (random, round) => {
      const inside = join(folder, `baselines ${round}`);
      const baselines = new Baselines({ XDG_DATA_HOME: inside, XDG_STATE_HOME: inside });
      baselines.save('v1', runs);
      const at = random.int(mostCalls.baseline);
      const argv = [program, 'baseline', 'save', 'v1', ...runs.slice(0, 2)];
      const { signal } = await killedAt(at, inside, argv);
      const found = baselines.read('v1').length;
      expect(signal === null ? [2] : [3, 2]).toContain(found);
      expect(baselines.names()).toEqual(['v1']);
      baselines.save('v1', runs.slice(2));
      expect(baselines.read('v1')).toHaveLength(1);
      expect(readdirSync(join(inside, 'gradlink', 'baselines'))).toEqual(['v1']);
      rmSync(inside, { recursive: true });
      return { killed: signal === null ? 0 : 1, 'new runs': found === 2 ? 1 : 0 };
    });
  });

  it('of an output leaves the old one or the new', { timeout: campaignTimeout }, async () => {
    const run = join(folder, 'run.json');
    writeFileSync(run, JSON.stringify(madeRun({ seed: 1 })));
    await campaign('killed outputs', 4, async (random, round) => {
      const inside = join(folder, `outputs ${round}`);
      mkdirSync(inside);
      const output = join(inside, 'compared.json');
      writeFileSync(output, 'old');
      const argv = [program, 'compare', run, run, '--output', output];
      const { signal } = await killedAt(random.int(mostCalls.output), inside, argv);
      const text = readFileSync(output, 'utf8');
      if (text !== 'old') expect(JSON.parse(text)).toMatchObject({ regressed: false });
      if (signal === null) expect(text).not.toBe('old');
      const { signal: again } = await killedAt(1000, inside, argv);
      expect(again).toBeNull();
      expect(readdirSync(inside)).toEqual(['compared.json']);
      rmSync(inside, { recursive: true });
      return { killed: signal === null ? 0 : 1, 'new outputs': text === 'old' ? 0 : 1 };
    });
  });

  it(
    'of states of optimizers leaves the old or the new',
    { timeout: campaignTimeout },
    async () => {
      const script = join(folder, 'saving-states.mjs');
      writeFileSync(script, savingStates);
      await campaign('killed saves of states', 4, async (_, round) => {
        const inside = join(folder, `states ${round}`);
        mkdirSync(inside);
        const states = join(inside, 'states');
        const halves = () => readdirSync(inside).filter((name) => name.endsWith('.partial'));
        const kv = await KVStore.create('local');
        await kv.init('w', new Float32Array(2 ** 20));
        let kills = 0;
        for (let half: string[] = []; half.length === 0; half = halves()) {
          const child = spawn(process.execPath, [script], {
            env: { ...process.env, STATES: states },
            stdio: ['ignore', 'ignore', 'inherit'],
          });
          const ended = once(child, 'close');
          await until(() => child.exitCode !== null || (existsSync(states) && halves().length > 0));
          child.kill('SIGKILL');
          expect(await ended).toEqual([null, 'SIGKILL']);
          // It has a checksum.
          await kv.loadOptimizerStates(states);
          kills += 1;
        }
        await kv.saveOptimizerStates(states);
        expect(readdirSync(inside)).toEqual(['states']);
        await kv.close();
        rmSync(inside, { recursive: true });
        return { kills, 'within a save': 1 };
      });
    },
  );
});
