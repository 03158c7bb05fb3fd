// The public interface under random calls: at least half of them right, with right results, the others with one defect.
// Each round is a process of its own, so that a crash is one round that names its seed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { build } from 'esbuild';
import type { Plugin } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';

import { folderOfAllTests } from '../support/folders.js';
import { runWith } from '../support/gpu-commands.js';
import { campaign, campaignTimeout } from './support/campaign.js';

const root = join(import.meta.dirname, '../..');
let folder = '';
let child = '';
folderOfAllTests((made) => {
  folder = made;
  child = join(folder, 'child.mjs');
});

/** The entries are those that users import: dist. */
const entries: Readonly<Record<string, string>> = {
  'lib/index.js': 'index.js',
  'lib/measure/index.js': 'measure.js',
  'lib/models/index.js': 'models.js',
  'lib/optimizers/decentralised/index.js': 'decentralised.js',
  'lib/topology/index.js': 'topology.js',
  'lib/train/index.js': 'tfjs.js',
};
const toDist: Plugin = {
  name: 'to-dist',
  setup(bundler) {
    bundler.onResolve({ filter: /\/lib\/.*index\.js$/ }, ({ path }) => {
      const entry = entries[path.slice(path.indexOf('lib/'))];
      return entry === undefined ? null : { path: join(root, 'dist', entry), external: true };
    });
  },
};

beforeAll(async () => {
  const entryPoints = [join(import.meta.dirname, 'api/child.ts')];
  const common = { bundle: true, platform: 'node', format: 'esm', target: 'node20' } as const;
  await build({ ...common, entryPoints, outfile: child, plugins: [toDist], logLevel: 'silent' });
});

interface Figures {
  readonly calls: number;
  readonly succeeded: number;
  readonly refused: number;
  readonly faults: readonly string[];
}

/** A worker with two servers, or a process alone. */
async function round(seed: number, kind: 'alone' | 'dist', calls: number): Promise<Figures> {
  const log = join(folder, `last-${String(seed)}`);
  const env = {
    GRADLINK_API_SEED: String(seed),
    GRADLINK_API_CALLS: String(calls),
    GRADLINK_API_KIND: kind,
    GRADLINK_API_LOG: log,
  };
  const launch = [join(root, 'bench/gradlink.js'), 'launch', '-n', '1', '-s', '2', '--'];
  const program = kind === 'dist' ? [...launch, process.execPath, child] : [child];
  const { code, signal, stdout, stderr } = await runWith(process.execPath, program, env);
  const line = /\{"calls":.*\}/.exec(stdout)?.[0];
  if (code !== 0 || line === undefined) {
    const status = signal ?? String(code);
    const last = readFileSync(log, 'utf8').trim();
    throw new Error(`seed ${env.GRADLINK_API_SEED}, ${status} at ${last}: ${stderr.slice(-2000)}`);
  }
  return JSON.parse(line) as Figures;
}

it(
  'is right or refuses with a code, and never crashes or hangs',
  async () => {
    const sums = await campaign('api', 8, async (random, number) => {
      const dist = number % 4 === 3;
      const seed = random.int(2 ** 31);
      const { faults, ...figures } = await round(seed, dist ? 'dist' : 'alone', dist ? 400 : 1700);
      expect(faults, `seed ${String(seed)}`).toEqual([]);
      return figures;
    });
    expect(sums['succeeded']! * 2).toBeGreaterThanOrEqual(sums['calls']!);
  },
  campaignTimeout,
);
