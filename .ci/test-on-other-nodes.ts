import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildNativeModule } from '../.packaging/native.ts';
import { fetchRuntime, NODE_22, PACKAGED, type PinnedRuntime, type Runtime } from '../.packaging/runtime.ts';

/*
 * The tests on Node 22 and 24. `.ci/run` runs everything on the oldest version, 20.
 *
 *     node --import tsx .ci/test-on-other-nodes.ts prepare 22   # downloads Node and compiles better-sqlite3 for it
 *     node --import tsx .ci/test-on-other-nodes.ts              # runs the tests of both
 */
const CHECKOUT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const VERSIONS: Record<string, PinnedRuntime> = { 22: NODE_22, 24: PACKAGED };
const MODULES = ['--project', 'unit', '--project', 'console'];
/** What differs between versions shows in the modules; the newest one, which the packages contain, runs more. */
const RUNS: Record<string, string[][]> = {
  22: [MODULES, ['--project', 'e2e', 'e2e/demo']],
  24: [
    [...MODULES, '--project', 'component'],
    ['--project', 'e2e', 'e2e/demo'],
  ],
};

if (process.arch !== 'x64') throw new Error(`Node 22 is not pinned for ${process.arch}: see .packaging/node-22.json`);
const processor = process.arch;
const cache = join(CHECKOUT, 'dist-package/cache');
mkdirSync(cache, { recursive: true });

const [action, major = ''] = process.argv.slice(2);
if (action === 'prepare') {
  const pinned = VERSIONS[major];
  if (pinned === undefined) throw new Error(`prepare ${major}: must be one of ${Object.keys(VERSIONS).join(', ')}`);
  prepare(pinned);
} else testAll();

function prepare(pinned: PinnedRuntime): { runtime: Runtime; module: string } {
  const runtime = fetchRuntime(pinned, processor, cache);
  return { runtime, module: buildNativeModule(CHECKOUT, processor, runtime, cache) };
}

function testAll(): void {
  // In the same file system: the copy has links to the libraries.
  const copy = mkdtempSync(join(CHECKOUT, 'dist-package/other-nodes-'));
  try {
    copyCheckout(copy);
    for (const [major, pinned] of Object.entries(VERSIONS)) {
      const { runtime, module } = prepare(pinned);
      useModule(copy, runtime.version, module);
      for (const run of RUNS[major] ?? []) test(copy, runtime, run);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** What the tests start finds this Node in PATH. */
function test(copy: string, { version, dir }: Runtime, run: string[]): void {
  console.log(`Node ${version}: vitest ${run.join(' ')}`);
  const node = join(dir, 'bin/node');
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const { status } = spawnSync(node, [vitest, 'run', '--config', 'test/vitest.config.ts', ...run], {
    cwd: copy,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, PATH: `${dirname(node)}:${process.env['PATH']}` },
  });
  if (status !== 0) process.exitCode = 1;
}

/** The files of the repository; links to those of the libraries, which nothing changes. */
function copyCheckout(copy: string): void {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: CHECKOUT,
    encoding: 'utf8',
    maxBuffer: 1 << 24,
  });
  for (const file of files.split('\0').filter((name) => name !== ''))
    cpSync(join(CHECKOUT, file), join(copy, file));
  const libraries = join(copy, 'node_modules');
  execFileSync('cp', ['-al', join(CHECKOUT, 'node_modules'), libraries]);
  execFileSync('cp', ['-al', join(CHECKOUT, '.ci/tools/node_modules'), join(copy, '.ci/tools')]);
  for (const own of ['better-sqlite3/build', '.experimental-vitest-cache'])
    rmSync(join(libraries, own), { recursive: true, force: true });
}

/** Where the loader of better-sqlite3 finds the module of a version, when there is none in its folder `build`. */
function useModule(copy: string, version: string, module: string): void {
  const dir = join(copy, 'node_modules/better-sqlite3/compiled', version, process.platform, processor);
  mkdirSync(dir, { recursive: true });
  linkSync(module, join(dir, 'better_sqlite3.node'));
}
