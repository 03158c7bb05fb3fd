import { defineConfig } from 'vitest/config';

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
          exclude: ['test/process/**'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'process',
          include: ['test/process/**/*.test.ts'],
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
