import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';

import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

import { fakesEnvironment } from './test/gpu/setup/fakes.js';
import { sanitizer, sanitizerEnvironment } from './test/setup/sanitizer.js';
import { missingTfjsNode, tfjsNodeEnvironment } from './test/setup/tfjs-node.js';

/** Without --gpus the GPUs that are there are used: these tests are of CPU devices, whatever the machine has. */
const onCpus = { CUDA_VISIBLE_DEVICES: '' };

const setupFiles = ['test/setup/running.ts', 'test/setup/equality.ts'];
/** A core's tests wait for an eighth of the time, which those of a third file fill. */
const maxWorkers = Math.ceil(1.5 * availableParallelism());
const shared = { pool: 'forks', testTimeout: 60_000, hookTimeout: 60_000, setupFiles } as const;

/** What starts processes waits for them, on a machine that has other work too. */
const patient = { testTimeout: 240_000, hookTimeout: 240_000 };
/** Files of such tests side by side: two leave a quarter of two cores idle. */
const sideBySide = 3;

/** Random attacks; under a sanitizer, which makes them slow, only where `npm run test:attack` asks for them. */
const attacks = 'test/attack/**/*.test.ts';

/** The tests of a part of `npm run test:full`, which are a project each. `workers`: how many files run side by side. */
const parts: Readonly<
  Record<
    string,
    { readonly include: string[]; readonly workers: number; readonly hookTimeout?: number }
  >
> = {
  hosts: {
    include: [
      'test/process/{check-hosts,doctor-hosts,launch-hosts,launch-slurm,launch-slurm-hosts,slow-hosts,train-hosts}.test.ts',
    ],
    workers: 1,
  },
  guides: {
    include: [
      'test/process/{acceptance,command-lines,guides,moving,train-example,troubleshooting}.test.ts',
    ],
    workers: sideBySide,
  },
  peers: { include: ['lab/test/**/*.test.ts'], workers: 1 },
  packages: {
    include: ['test/process/{bundlers,container,managers,pack,pack-build,packing}.test.ts'],
    workers: sideBySide,
    // They pack in their hooks, which compiles all of TypeScript: minutes beside other work.
    hookTimeout: 15 * 60_000,
  },
  training: {
    include: ['test/process/{batch-norm,ddp,ddp-model,train,training,training-job}.test.ts'],
    workers: sideBySide,
  },
  browser: {
    include: ['test/report/page*.test.ts', 'test/docs/site.test.ts'],
    workers: sideBySide,
  },
  attacks: { include: [attacks], workers: 1 },
};
const ofParts = Object.values(parts).flatMap(({ include }) => include);

/** All other tests that start processes. */
const jobs = [
  'test/process/**/*.test.ts',
  'test/distributed/**/*.test.ts',
  'test/mpi/**/*.test.ts',
];

/** Of these, the ones that measure ranks' patience, or take every core: beside others they would measure the machine's load. */
const serial = [
  'test/process/{check,ending,joining,measure-shared,progress,windows}.test.ts',
  'test/{distributed,mpi}/failures.test.ts',
];

/**
 * Unit tests that replace modules, or load the built library beside lib/, have a process each: modules must not have been
 * loaded before, and native code knows one class of errors.
 */
const replacing = readdirSync(join(import.meta.dirname, 'test'), {
  recursive: true,
  encoding: 'utf8',
})
  .map((name) => `test/${name}`)
  .filter((file) => file.endsWith('.test.ts') && !file.startsWith('test/gpu/'))
  .filter((file) =>
    /\bvi\.(doMock|mock|resetModules)\(|known-limits|\bimport\(new URL\(/.test(
      readFileSync(join(import.meta.dirname, file), 'utf8'),
    ),
  );

/** These take ten seconds and more: begun last, as vitest's order by name would have it, they leave cores idle. */
const longest = ['pack', 'check-cluster', 'loader', 'scripts', 'mpi'];
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.indexOf(basename(moduleId, '.test.ts'));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** What the addon itself is tried with under a sanitizer: memory that JavaScript shares with threads, and their ends. */
const sanitized = [
  'test/communicator/**/*.test.ts',
  'test/kvstore/**/*.test.ts',
  'test/native/sanitized.test.ts',
  'test/train/buckets.test.ts',
  'test/process/{ending,joining,kvstore,memory}.test.ts',
  ...(process.env.GRADLINK_ATTACKS === '1' ? [attacks] : []),
];

/** What trains, once more on TensorFlow's own library: ranks of one process with the one package, jobs with the other. */
const onTensorFlow = (
  [
    ['node', ['test/train/{data-parallel,decentralised,optimizer,models}.test.ts']],
    [
      'node-gpu',
      [
        'test/tfjs-node/{backend,doctor,gathering,guide}.test.ts',
        'test/process/{ddp-model,train,training}.test.ts',
      ],
    ],
  ] as const
).map(([backend, include]) => ({
  test: {
    ...shared,
    name: `tfjs-${backend}`,
    include: missingTfjsNode === undefined ? [...include] : ['test/tfjs-node/missing.test.ts'],
    env: tfjsNodeEnvironment(backend),
    ...patient,
    maxWorkers: 2,
    sequence: { groupOrder: 3 },
  },
}));

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    tags: [
      { name: 'smoke', description: 'a case of each kind of job, which `npm test` runs' },
      {
        name: 'full',
        description: 'takes long, or depends on how fast the machine is: for `npm run test:full`',
      },
    ],
    // Forks: the addon's threads and exit handlers belong to a process, and a crash shall cost one file only.
    projects: sanitizer
      ? [
          {
            test: {
              ...shared,
              name: sanitizer,
              include: sanitized,
              env: { ...sanitizerEnvironment },
              // More files than cores were not tried with these.
              maxWorkers: '100%',
              ...patient,
            },
          },
        ]
      : [
          {
            test: {
              ...shared,
              name: 'unit',
              env: onCpus,
              maxWorkers,
              include: ['test/**/*.test.ts'],
              exclude: [
                ...[...jobs, ...ofParts, ...replacing, 'test/gpu/**', 'test/tfjs-node/**'],
                'test/native/sanitized.test.ts',
              ],
              // A process takes file after file: loading the library anew for each was a third of the time.
              isolate: false,
              sequence: { groupOrder: 0 },
            },
          },
          {
            test: {
              ...shared,
              name: 'unit-replacing',
              env: onCpus,
              maxWorkers,
              include: replacing,
              exclude: [...jobs, ...ofParts],
              sequence: { groupOrder: 0 },
            },
          },
          {
            test: {
              ...shared,
              // On the stand-ins of test/fakes, or, with GRADLINK_GPU_TESTS=real, on the machine's GPUs.
              name: 'gpu',
              include: ['test/gpu/**/*.test.ts'],
              globalSetup: ['test/gpu/setup/global.ts'],
              setupFiles: [...setupFiles, 'test/gpu/setup/worker.ts'],
              maxWorkers,
              env: { ...fakesEnvironment },
              sequence: { groupOrder: 0 },
            },
          },
          {
            test: {
              ...shared,
              ...patient,
              name: 'jobs',
              env: onCpus,
              include: jobs,
              exclude: [...serial, ...ofParts],
              maxWorkers: sideBySide,
              sequence: { groupOrder: 1 },
            },
          },
          {
            test: {
              ...shared,
              ...patient,
              name: 'serial',
              env: onCpus,
              include: serial,
              maxWorkers: 1,
              sequence: { groupOrder: 2 },
            },
          },
          ...Object.entries(parts).map(([name, { include, workers, ...limits }]) => ({
            test: {
              ...shared,
              ...patient,
              ...limits,
              name,
              env: onCpus,
              include,
              maxWorkers: workers,
              // What runs side by side shares the number of workers.
              sequence: { groupOrder: workers === 1 ? 2 : 1 },
            },
          })),
          ...onTensorFlow,
        ],
  },
});
