import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { FilesOfProjects } from './support/file-order.ts';
import { LeftOutTests } from './support/left-out-tests.ts';
import { COMPONENT, LONG, SERIAL } from './support/test-lists.ts';

const long = Object.keys(LONG);
const serial = Object.keys(SERIAL);

/** Settings of all projects. */
const shared = {
  root: import.meta.dirname,
  pool: 'forks',
  // One process runs many files: loading the modules again for each would take longer than the tests.
  isolate: false,
  // The projects share one pool. More than the cores of a small machine: tests wait for servers, sockets and timers.
  maxWorkers: 4,
  setupFiles: ['support/cost.ts'],
  // A poll without its own timeout must not fail because the machine is busy.
  expect: { poll: { timeout: 15_000 } },
} satisfies UserWorkspaceConfig['test'];

/** Tests that import src/: their databases are in memory where possible. */
const inProcess = {
  ...shared,
  globalSetup: ['support/build.ts', 'support/temporary-files.ts'],
} satisfies UserWorkspaceConfig['test'];

/**
 * Tests of the built program. What they start has its own ports and folders, so that files can run at the same time. The
 * timeouts are for tests that hang, also on a busy machine.
 */
const ofProgram = {
  ...shared,
  globalSetup: ['support/build.ts'],
  testTimeout: 300_000,
  hookTimeout: 300_000,
} satisfies UserWorkspaceConfig['test'];

export default defineConfig({
  test: {
    sequence: { sequencer: FilesOfProjects },
    reporters: ['default', new LeftOutTests()],
    // Modules are transformed once, not again in each project and each run.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          ...ofProgram,
          name: 'long',
          include: long,
          testTimeout: 600_000,
        },
      },
      {
        test: {
          ...ofProgram,
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: [...serial, ...long],
        },
      },
      // Each file runs the scenarios of one family over a daemon in its process, see scenarios/README.md.
      {
        test: {
          ...inProcess,
          name: 'scenarios',
          include: ['scenarios/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...inProcess,
          name: 'component',
          include: [...COMPONENT],
          exclude: long,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...inProcess,
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: ['e2e/**', 'chaos/**', 'scenarios/**', ...COMPONENT],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          ...ofProgram,
          name: 'serial',
          include: serial,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
