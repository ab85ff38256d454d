import { defineConfig } from 'vitest/config';

const slow = { testTimeout: 120_000, hookTimeout: 120_000 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          root: import.meta.dirname,
          include: ['**/*.test.ts'],
          exclude: ['e2e/**', 'chaos/**'],
          pool: 'forks',
          // One process runs many files: loading the modules again for each would take longer than the tests.
          isolate: false,
          // More than the cores of a small machine: tests also wait for sockets and timers.
          maxWorkers: 3,
          globalSetup: ['support/build.ts', 'support/temporary-files.ts'],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'e2e',
          root: import.meta.dirname,
          include: ['e2e/**/*.test.ts'],
          globalSetup: ['support/build.ts'],
          pool: 'forks',
          fileParallelism: false,
          ...slow,
        },
      },
      {
        test: {
          name: 'chaos',
          root: import.meta.dirname,
          include: ['chaos/**/*.test.ts'],
          globalSetup: ['support/build.ts'],
          pool: 'forks',
          fileParallelism: false,
          // Alone, after all others: it compares latencies.
          sequence: { groupOrder: 1 },
          testTimeout: 600_000,
        },
      },
    ],
  },
});
