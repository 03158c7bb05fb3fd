import { defineConfig } from 'vitest/config';

import { fakesEnvironment } from './test/gpu/setup/fakes.js';

const shared = { pool: 'forks', testTimeout: 60_000, hookTimeout: 60_000 } as const;

export default defineConfig({
  test: {
    // Forks: the addon's threads and exit handlers belong to a process, and a crash shall cost one file only.
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/process/**', 'test/distributed/**', 'test/mpi/**', 'test/gpu/**'],
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
          setupFiles: ['test/gpu/setup/worker.ts'],
          env: { ...fakesEnvironment },
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'process',
          include: [
            'test/process/**/*.test.ts',
            'test/distributed/**/*.test.ts',
            'test/mpi/**/*.test.ts',
          ],
          // Files that spawn ranks of their own would, side by side, measure each other's patience.
          maxWorkers: 1,
          testTimeout: 240_000,
          hookTimeout: 240_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
