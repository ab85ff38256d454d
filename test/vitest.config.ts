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
          exclude: ['e2e/**'],
          pool: 'forks',
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
    ],
  },
});
