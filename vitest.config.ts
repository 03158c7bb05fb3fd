import { defineConfig } from 'vitest/config';

import { fakesEnvironment } from './test/gpu/setup/fakes.js';
import { sanitizer, sanitizerEnvironment } from './test/setup/sanitizer.js';
import { missingTfjsNode, tfjsNodeAliases, tfjsNodeEnvironment } from './test/setup/tfjs-node.js';

/** Without --gpus the GPUs that are there are used: these tests are of CPU devices, whatever the machine has. */
const onCpus = { CUDA_VISIBLE_DEVICES: '' };

const setupFiles = ['test/setup/equality.ts'];
/** vitest leaves a core for itself otherwise, which is one of two on small machines. */
const maxWorkers = '100%';
const shared = { pool: 'forks', testTimeout: 60_000, hookTimeout: 60_000, setupFiles } as const;

/** Tests that start processes. */
const jobs = [
  'test/process/**/*.test.ts',
  'test/distributed/**/*.test.ts',
  'test/mpi/**/*.test.ts',
];

/** Of these, the ones that measure ranks' patience, or take every core: beside others they would measure the machine's load. */
const serial = [
  'test/process/{ending,joining,killing,launch-hosts,launch-slurm,launch-slurm-hosts,measure-shared,peers,progress,windows}.test.ts',
  'test/{distributed,mpi}/failures.test.ts',
];

/** Random attacks; under a sanitizer, which makes them slow, only where `npm run test:attack` asks for them. */
const attacks = 'test/attack/**/*.test.ts';

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
  resolve: { alias: { ...tfjsNodeAliases } },
  test: {
    ...shared,
    name: `tfjs-${backend}`,
    include: missingTfjsNode === undefined ? [...include] : ['test/tfjs-node/missing.test.ts'],
    env: tfjsNodeEnvironment(backend),
    maxWorkers: 2,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    sequence: { groupOrder: 4 },
  },
}));

export default defineConfig({
  test: {
    tags: [
      { name: 'smoke', description: 'a case of each kind of job, which `npm test` runs' },
      { name: 'slow', description: 'takes minutes or a browser: not for `npm test`' },
      { name: 'full', description: 'only for `npm run test:full`' },
      {
        name: 'once',
        description: "the same on any backend: .ci/run has it on TensorFlow.js's own",
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
              maxWorkers,
              // Node under a sanitizer takes longer to start than most files take to run.
              isolate: false,
              env: { ...sanitizerEnvironment },
              testTimeout: 240_000,
              hookTimeout: 240_000,
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
                ...[...jobs, attacks, 'test/gpu/**', 'test/tfjs-node/**'],
                'test/native/sanitized.test.ts',
              ],
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
              env: { ...fakesEnvironment },
              maxWorkers,
              sequence: { groupOrder: 0 },
            },
          },
          {
            test: {
              ...shared,
              name: 'jobs',
              env: onCpus,
              include: jobs,
              exclude: serial,
              maxWorkers: 2,
              testTimeout: 240_000,
              hookTimeout: 240_000,
              sequence: { groupOrder: 1 },
            },
          },
          {
            test: {
              ...shared,
              name: 'serial',
              env: onCpus,
              include: serial,
              maxWorkers: 1,
              testTimeout: 240_000,
              hookTimeout: 240_000,
              sequence: { groupOrder: 2 },
            },
          },
          {
            test: {
              ...shared,
              name: 'attack',
              include: [attacks],
              maxWorkers: 1,
              sequence: { groupOrder: 3 },
            },
          },
          ...onTensorFlow,
        ],
  },
});
