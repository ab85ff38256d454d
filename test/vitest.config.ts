import type { Plugin } from 'vite';
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { COMPONENT } from './support/component-tests.ts';
import { FilesOfProjects } from './support/file-order.ts';
import { LeftOutTests } from './support/left-out-tests.ts';
import { LONG_TEST_TIMEOUT_MS, PATIENCE_MS, TEST_TIMEOUT_MS } from './support/patience.ts';

const CONSOLE = new URL('../src/console/', import.meta.url).pathname;
const { consoleIcons } = (await import(new URL('../.packaging/console-icons.mjs', import.meta.url).href)) as {
  consoleIcons(source: string): Plugin;
};

/** Loads, floods, kills and failures of the daemon, large databases, servers of others, pages in a browser: CI runs them. */
const LONG = '**/*.long.test.ts';
/** They compare durations or CPU time: one file at a time, after all others. */
const SERIAL = '**/*.serial.test.ts';

/** Settings of all projects. */
const shared = {
  root: import.meta.dirname,
  pool: 'forks',
  // One process runs many files: loading the modules again for each would take longer than the tests.
  isolate: false,
  // The projects share one pool. More than the cores of a small machine: tests wait for servers, sockets and timers.
  maxWorkers: 5,
  setupFiles: ['support/cost.ts'],
  testTimeout: TEST_TIMEOUT_MS,
  hookTimeout: TEST_TIMEOUT_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
} satisfies UserWorkspaceConfig['test'];

/** Tests that import src/: their databases are in memory where possible. */
const inProcess = {
  ...shared,
  globalSetup: ['support/build.ts', 'support/temporary-files.ts'],
} satisfies UserWorkspaceConfig['test'];

/** Tests of the built program. What they start has its own ports and folders, so that files can run at the same time. */
const ofProgram = {
  ...shared,
  globalSetup: ['support/build.ts'],
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
          include: [LONG],
          testTimeout: LONG_TEST_TIMEOUT_MS,
        },
      },
      {
        test: {
          ...ofProgram,
          name: 'e2e',
          include: ['e2e/**/*.test.ts'],
          exclude: [SERIAL, LONG],
        },
      },
      // Each file runs the scenarios of one family over a daemon in its process, see scenarios/README.md.
      {
        test: {
          ...inProcess,
          name: 'scenarios',
          include: ['scenarios/*.test.ts'],
          exclude: [LONG],
        },
      },
      {
        test: {
          ...inProcess,
          name: 'component',
          include: [...COMPONENT],
          exclude: [LONG],
        },
      },
      {
        test: {
          ...inProcess,
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: ['e2e/**', 'scenarios/**', SERIAL, LONG, ...COMPONENT],
        },
      },
      // Parts and pages of the console in a document without a browser.
      {
        plugins: [consoleIcons(CONSOLE)],
        oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
        test: {
          ...shared,
          name: 'console',
          include: ['console/**/*.test.tsx'],
          environment: 'happy-dom',
          setupFiles: [...shared.setupFiles, 'console/dom/setup.ts'],
        },
      },
      {
        test: {
          ...ofProgram,
          name: 'serial',
          include: [SERIAL],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
