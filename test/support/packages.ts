import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PROJECT = new URL('../..', import.meta.url).pathname;
/** With a domain that lintian accepts: those of RFC 2606 are no mail hosts. */
const MAINTAINER = 'The tests of Postrider <postmaster@postrider.dev>';

/** Paths of the files that `npm run package` builds. */
export interface Packages {
  deb: string;
  tarball: string;
}

/** Builds the packages of the built program in `dir`, with less compression than for users. */
export async function buildPackages(dir: string): Promise<Packages> {
  const stdout = await runPackaging(dir);
  const deb = /^(\S+\.deb) /m.exec(stdout)?.[1];
  const tarball = /^(\S+\.tar\.gz) /m.exec(stdout)?.[1];
  if (deb === undefined || tarball === undefined) throw new Error(`no package was built: ${stdout}`);
  return { deb, tarball };
}

/** Runs the build of the packages, and resolves with what it prints. `env`: variables that it gets in addition. */
export async function runPackaging(dir: string, env: Record<string, string> = {}): Promise<string> {
  const script = join(PROJECT, '.packaging/package.ts');
  const options = ['--fast', '--maintainer', MAINTAINER, '--out', dir];
  // Several test files build packages, and share the runtime and the compiled module in the cache.
  const lock = join(
    tmpdir(),
    `postrider-packages-${createHash('sha256').update(PROJECT).digest('hex').slice(0, 12)}.lock`,
  );
  const command = [lock, process.execPath, '--import', 'tsx', script, ...options];
  const { stdout } = await run('flock', command, { cwd: PROJECT, env: { ...process.env, ...env } });
  return stdout;
}

/** Builds a package of another version with the same contents, next to `deb`; returns its path. */
export async function withVersion(deb: string, version: string): Promise<string> {
  const tree = await mkdtemp(`${deb}-`);
  await run('dpkg-deb', ['--raw-extract', deb, tree]);
  for (const file of ['DEBIAN/control', 'usr/lib/postrider/package.json']) {
    const text = await readFile(join(tree, file), 'utf8');
    await writeFile(join(tree, file), text.replace(/(Version: |"version": ")[^"\n]+/, `$1${version}`));
  }
  const file = deb.replace(/postrider_[^_]+/, `postrider_${version}`);
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, file]);
  await rm(tree, { recursive: true });
  return file;
}
