import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** A Node runtime: a pinned long-term support release, unpacked from its npm package. */
export interface Runtime {
  version: string;
  /** Contains `bin/node`, `include/node` (for native modules) and `LICENSE`. */
  dir: string;
}

/** Processors as Node names them. */
export type Processor = 'x64' | 'arm64';

export interface PinnedRuntime {
  version: string;
  packages: Partial<Record<Processor, { name: string; integrity: string }>>;
}

/** The pinned runtime of the packages. */
export const PACKAGED: PinnedRuntime = readPinned('node-runtime.json');

/** Of the tests only (.ci/test-on-other-nodes.ts). */
export const NODE_22: PinnedRuntime = readPinned('node-22.json');

function readPinned(file: string): PinnedRuntime {
  return JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
}

/** Returns the runtime in `cache`, which is downloaded first if it is not there. Throws when its checksum is wrong. */
export function fetchRuntime(
  { version, packages }: PinnedRuntime,
  processor: Processor,
  cache: string,
): Runtime {
  const pinned = packages[processor];
  if (pinned === undefined) throw new Error(`Node ${version} is not pinned for ${processor}`);
  const { name, integrity } = pinned;
  const dir = join(cache, `${name}-${version}`);
  if (existsSync(dir)) return { version, dir };
  mkdirSync(cache, { recursive: true });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', cache, `${name}@${version}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const archive = join(cache, `${name}-${version}.tgz`);
  const actual = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (actual !== integrity)
    throw new Error(
      `${archive} has the checksum ${actual}, the pin of Node ${version} in .packaging expects ${integrity}`,
    );
  const partial = `${dir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial);
  const parts = ['package/bin/node', 'package/include', 'package/LICENSE'];
  execFileSync('tar', ['-xzf', archive, '-C', partial, '--strip-components=1', '--no-same-owner', ...parts]);
  rmSync(archive);
  renameSync(partial, dir);
  return { version, dir };
}
