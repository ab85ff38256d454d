import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { LongestFirst } from './support/longest-first.ts';

/** e2e tests that compare durations or processor time. */
const SERIAL = ['e2e/event-loop.test.ts'];
/** A limit for tests that hang, also on a busy machine. */
const slow = { testTimeout: 300_000, hookTimeout: 300_000 };

/** Settings of projects whose files run at the same time. */
const atTheSameTime = {
  root: import.meta.dirname,
  globalSetup: ['support/build.ts'],
  pool: 'forks',
  // As for unit tests: a process for each file would load the modules that all of them share.
  isolate: false,
  // More than the cores of a small machine: most of the time the tests wait for servers.
  maxWorkers: 4,
  sequence: { groupOrder: 1 },
} satisfies UserWorkspaceConfig['test'];

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          root: import.meta.dirname,
          include: ['**/*.test.ts'],
          exclude: ['e2e/**', 'chaos/**', 'scenarios/**'],
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
      // Each file runs the scenarios of one family over a daemon in its process, see scenarios/README.md.
      {
        test: {
          name: 'scenarios',
          root: import.meta.dirname,
          include: ['scenarios/*.test.ts'],
          pool: 'forks',
          isolate: false,
          maxWorkers: 3,
          globalSetup: ['support/build.ts', 'support/temporary-files.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      // The programs that these tests start have their own ports and folders, so that files can run at the same time.
      {
        test: {
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: SERIAL,
          ...atTheSameTime,
          ...slow,
        },
      },
      {
        test: {
          name: 'chaos',
          include: ['chaos/**/*.test.ts'],
          ...atTheSameTime,
          testTimeout: 600_000,
        },
      },
      // One file at a time, after all others: other load would change what these measure.
      {
        test: {
          name: 'serial',
          root: import.meta.dirname,
          include: SERIAL,
          globalSetup: ['support/build.ts'],
          pool: 'forks',
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          ...slow,
        },
      },
    ],
  },
});
