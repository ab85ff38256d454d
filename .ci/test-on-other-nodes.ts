import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildNativeModule } from '../.packaging/native.ts';
import { fetchRuntime, NODE_22, PACKAGED } from '../.packaging/runtime.ts';

/*
 * `node --import tsx .ci/test-on-other-nodes.ts`: runs the unit and component tests and an end-to-end test on Node 22 and 24,
 * in a copy of the checkout. `.ci/run` runs everything on the oldest version, 20.
 */
const CHECKOUT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const RUNS = [
  ['--project', 'unit', '--project', 'component'],
  ['--project', 'e2e', 'e2e/demo'],
];

if (process.arch !== 'x64') throw new Error(`Node 22 is not pinned for ${process.arch}: see .packaging/node-22.json`);
const cache = join(CHECKOUT, 'dist-package/cache');
// In the same file system: the copy has links to the libraries.
mkdirSync(cache, { recursive: true });
const copy = mkdtempSync(join(CHECKOUT, 'dist-package/other-nodes-'));
try {
  copyCheckout();
  for (const pinned of [PACKAGED, NODE_22]) {
    const runtime = fetchRuntime(pinned, process.arch, cache);
    useModule(runtime.version, buildNativeModule(CHECKOUT, process.arch, runtime, cache));
    for (const run of RUNS) {
      console.log(`Node ${runtime.version}: vitest ${run.join(' ')}`);
      const node = join(runtime.dir, 'bin/node');
      const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
      // What the tests start finds this Node in PATH.
      const { status } = spawnSync(node, [vitest, 'run', '--config', 'test/vitest.config.ts', ...run], {
        cwd: copy,
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...process.env, PATH: `${dirname(node)}:${process.env['PATH']}` },
      });
      if (status !== 0) process.exitCode = 1;
    }
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** The files of the repository; links to those of the libraries, which nothing changes. */
function copyCheckout(): void {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: CHECKOUT,
    encoding: 'utf8',
    maxBuffer: 1 << 24,
  });
  for (const file of files.split('\0').filter((name) => name !== ''))
    cpSync(join(CHECKOUT, file), join(copy, file));
  const libraries = join(copy, 'node_modules');
  execFileSync('cp', ['-al', join(CHECKOUT, 'node_modules'), libraries]);
  for (const own of ['better-sqlite3/build', '.experimental-vitest-cache'])
    rmSync(join(libraries, own), { recursive: true, force: true });
}

/** Where the loader of better-sqlite3 finds the module of a version, when there is none in its folder `build`. */
function useModule(version: string, module: string): void {
  const dir = join(copy, 'node_modules/better-sqlite3/compiled', version, process.platform, process.arch);
  mkdirSync(dir, { recursive: true });
  linkSync(module, join(dir, 'better_sqlite3.node'));
}
