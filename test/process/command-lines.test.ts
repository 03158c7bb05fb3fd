// Every command line of the documentation runs here, in a walk (guides.test.ts), or is named below with the reason why
// it cannot. What would take long gets smaller settings behind its own; GPUs are the stand-ins.
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { beforeAll, describe, expect, it, type TestContext } from 'vitest';

import { buildFakes, fakesEnvironment, onRealGpus } from '../gpu/setup/fakes.js';
import { commandLines, guides } from '../support/guides.js';
import { missing } from '../support/launching.js';
import { installCommands, root, walkEnvironment, walks } from '../support/walks.js';
import { folderOfAllTests } from '../support/folders.js';

const compiled = 'test/tfjs-node/guide.test.ts compiles a binding with these lines';

/** Why a line is not run here. */
const notRun: readonly (readonly [line: RegExp, reason: string])[] = [
  [/^bash scripts\/setup\.sh\b/, 'installs packages and builds; scripts/test.sh begins with it'],
  [/^npm run test:full$/, 'runs this, every night'],
  [/^npm run lint$/, '.ci/run ends with it'],
  [/^npm run docs$/, '.ci/run ends with the same pages in another folder'],
  [/^npm run test:attack -- /, 'goes on for minutes; npm run test:full has the short run'],
  [/^node scripts\/exports\.mjs$/, 'test/measure/public-names.test.ts compares what it writes'],
  [/^node scripts\/ptx\.mjs$/, 'test/process/ptx.test.ts compares what it makes'],
  [/^node scripts\/cubins\.mjs$/, 'test/process/ptx.test.ts makes them'],
  [/^npm install /, 'needs the registry; test/process/pack.test.ts installs the package'],
  [/^npm run pack( -- --cubins)?$/, 'test/process/pack.test.ts packs'],
  [/gradlink build\b/, 'compiles for minutes; test/process/pack-build.test.ts does'],
  [/^npx esbuild /, 'test/process/bundlers.test.ts bundles'],
  [/^npm run bench:gpu$/, 'test/gpu/bench-gpu.test.ts runs it'],
  [
    /^node lab\/convergence\/run\.js$/,
    'trains for minutes; lab/test/convergence.test.ts trains in small',
  ],
  [
    /^node lab\/job\/run\.js$/,
    'trains for minutes; test/process/training-job.test.ts does in small',
  ],
  [
    /train --style elasticdl --plan /,
    'trains for hours; test/process/train.test.ts has a small plan',
  ],
  [/ node lab\/peers\/training\/gathering\.js$/, 'test/tfjs-node/gathering.test.ts runs it'],
  [/^node lab\/peers\/run\.js$/, 'lab/test/peers.test.ts runs it'],
  [/^node lab\/growth\/(run|waiting)\.js /, 'lab/test/growth.test.ts runs it in small'],
  [
    /^npx gradlink watch train\.log$/,
    'follows the file until interrupted; test/cli/watch.test.ts does',
  ],
  [
    /^mpirun -n 16 /,
    'needs two hosts of eight GPUs; test/measure/collectives/split.test.ts splits',
  ],
  [/^mpirun -n 8 --hostfile/, 'names the hosts of a cluster; mpirun -n 2 of docs/mpi.md is run'],
  [/^npm init --yes$/, 'makes package.json, which this folder has'],
  [/--backend node-gpu$|--require tfjs-node-gpu$/, 'test/tfjs-node/ runs them, on the CPU'],
  [/^npm rebuild @tensorflow/, 'downloads TensorFlow'],
  [/^bash scripts\/tfjs-node\.sh$|vitest run --project tfjs-node /, 'npm run test:full runs them'],
  [
    /^(python3 -m venv|tensorflow\/bin\/pip|TF=|PACKAGE=|mkdir -p \$PACKAGE|g\+\+|export LD)/,
    compiled,
  ],
  [/^(enroot|sbatch) /, 'need Slurm with enroot; test/scripts/cluster.test.ts reads the script'],
  [/baseline save good-day /, 'prints nothing; docs/compare.md, which is walked, saves one'],
  [/gradlink check --baseline good-day$/, 'needs that baseline; test/check/expect.test.ts has one'],
  [
    /gradlink check -H /,
    'names the hosts of a cluster; test/process/check-cluster.test.ts has some',
  ],
  [/^srun /, 'needs four hosts of Slurm; test/process/launch-slurm.test.ts has one'],
];

interface How {
  /** Put behind the line: of an option that is given twice the last value counts. */
  readonly behind?: string;
  /** Only what would be started is printed: it needs hosts that are not there. */
  readonly dryRun?: true;
  /** Runs on the stand-ins of GPUs. */
  readonly gpus?: true;
  /** Programs that must be installed. */
  readonly needs?: readonly string[];
  /** Takes long, and .ci/run has another line or test that does the same: only `npm run test:full` runs it. */
  readonly full?: true;
}

const smallStore = '--network mobilenet --num-batches 1';
const smallLinks = '-b 1 -i 1 --loop-count 1';

/** The first that fits counts; a line that none fits runs as it stands. */
const settings: readonly (readonly [line: RegExp, how: How])[] = [
  // `npx gradlink p2p --quick` stays. test/gpu/measure.test.ts runs README's measure as it stands.
  [/^npx gradlink p2p$/, { gpus: true, behind: smallLinks, full: true }],
  [/^npx gradlink measure --gpus 0,1,2,3$/, { gpus: true, behind: smallStore, full: true }],
  // test/optimizers/decentralised.test.ts solves it.
  [/^node bench\/least-squares\.js$/, { full: true }],
  // test/process/check.test.ts looks at the other parts.
  [/gradlink check --hours /, { behind: '--hours 0.0001 --parts doctor' }],
  [/gradlink check --minutes /, { behind: '--minutes 0.001 --parts doctor' }],
  [/^npx gradlink check --gpus /, { gpus: true, behind: '--parts doctor' }],
  [/^npx gradlink check .*--output /, { behind: '--parts doctor' }],
  [/ --launcher ssh| -H hosts /, { dryRun: true, needs: ['mpirun'] }],
  [/ --launcher slurm/, { dryRun: true, needs: ['srun'] }],
  [/^mpirun -n 2 /, { behind: '-b 64 -e 64', needs: ['mpirun'] }],
  [/--require nccl,gpu/, { gpus: true }],
  [/p2p/, { gpus: true, behind: smallLinks }],
  [/collectives.* -g \d/, { gpus: true, behind: '-b 64 -e 64' }],
  [/gradlink watch gradlink measure/, { behind: '--network mobilenet --num-batches 3 --cpus 2' }],
  [/measure.* --num-layers 50$/, { behind: '--num-layers 18 --num-batches 1' }],
  [/measure.* --kv-store/, { behind: smallStore }],
  [/neighbor_all_reduce/, { behind: '-b 64 -e 64 --iters 2 -w 1' }],
  [/^gradlink launch -n 2 gradlink collectives /, { behind: '-b 64 -e 64 --iters 2' }],
  // Other lines read what it writes.
  [/collectives all_reduce .*--output/, { behind: '-b 1K -e 256K -f 4' }],
  [/collectives all_reduce/, { behind: '-b 64 -e 64' }],
  [/gradlink ddp/, { behind: '--steps 1 --warmup 1 --bucket-sizes 25 --modes overlap' }],
  [/train --style elasticdl/, { behind: '--steps 1 --batch-size 4' }],
  [/gradlink train .*mobilenetv2/, { behind: '--steps 1 --batch-size 2' }],
  [/gradlink train /, { behind: '--steps 1 --batch-size 4' }],
];

const all = guides
  .flatMap(commandLines)
  .filter(({ guide, inBlock }) => !(inBlock && walks.includes(guide)));
const lines = all.filter(
  ({ line }, at) =>
    all.findIndex((one) => one.line === line) === at && !notRun.some(([one]) => one.test(line)),
);

let folder = '';
folderOfAllTests((made) => (folder = made));
beforeAll(() => {
  installCommands(folder);
  for (const name of ['bench', 'lab', 'examples'])
    symlinkSync(join(root, name), join(folder, name));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/gradlink'));
  // Programs of a reader's own.
  for (const name of ['app.js', 'train.js']) {
    copyFileSync(join(root, 'examples/world.js'), join(folder, name));
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(
    join(folder, 'updater.mjs'),
    'export const updater = (key, received, stored) => stored.set(received);\n',
  );
  writeFileSync(join(folder, 'hosts'), 'node1 slots=8\nnode2 slots=8\n');
  // Runs that they have made.
  const sweep = ['collectives', 'all_reduce', '-b', '1K', '-e', '1M', '-f', '4', '-n', '2'];
  execFileSync(process.execPath, [
    ...[join(root, 'bench/gradlink.js'), ...sweep, '--output', join(folder, 'run.json')],
  ]);
  for (const name of ['before.json', 'after.json']) {
    copyFileSync(join(folder, 'run.json'), join(folder, name));
  }
  if (onRealGpus) return;
  // As the GPU tests do.
  buildFakes();
});

/** As it is typed, with what makes it run here. */
function typed(line: string, { behind, dryRun }: How): string {
  if (dryRun === true) return line.replace('gradlink launch ', 'gradlink launch --dry-run ');
  return behind === undefined ? line : `${line} ${behind}`;
}

describe('a command line', () => {
  const each = lines.map((one) => ({
    ...one,
    how: settings.find(([line]) => line.test(one.line))?.[1] ?? {},
  }));
  const run = ({ line, how }: (typeof each)[number], { skip }: TestContext) => {
    const reason = missing(how.needs ?? []);
    if (reason !== undefined) skip(reason);
    const { status, stdout, stderr } = spawnSync('bash', ['-c', typed(line, how)], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...walkEnvironment(folder),
        // Hidden from all others: vitest.config.ts.
        ...(how.gpus === true ? { ...fakesEnvironment, CUDA_VISIBLE_DEVICES: undefined } : {}),
        // Open MPI refuses root and more ranks than cores.
        OMPI_ALLOW_RUN_AS_ROOT: '1',
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
        OMPI_MCA_rmaps_base_oversubscribe: '1',
      },
    });
    expect(status, stderr).toBe(0);
    const output = / (?:-o|--output|>) (\S+)/.exec(line)?.[1];
    if (output === undefined || how.dryRun === true) expect(stdout, stderr).not.toBe('');
    else expect(statSync(join(folder, output)).size).toBeGreaterThan(0);
  };

  it.for(each.filter(({ how }) => how.full !== true))('$guide: $line', run);
  it.for(each.filter(({ how }) => how.full === true))('$guide: $line', { tags: ['full'] }, run);
});

describe('the lists of this test', () => {
  it('name lines that there are', () => {
    expect(lines.length).toBeGreaterThan(40);
    for (const [line] of [...notRun, ...settings]) {
      expect(all.filter((one) => line.test(one.line)).length, String(line)).toBeGreaterThan(0);
    }
  });
});
