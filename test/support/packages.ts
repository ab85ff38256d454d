import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { sharedFolder } from './build.ts';

const run = promisify(execFile);
const PROJECT = new URL('../..', import.meta.url).pathname;
/** With a domain that lintian accepts: those of RFC 2606 are no mail hosts. */
const MAINTAINER = 'The tests of Postrider <postmaster@postrider.dev>';

/** Paths of the files that `npm run package` builds. */
export interface Packages {
  deb: string;
  tarball: string;
}

/**
 * The packages of the built program, with less compression than for users. The first test of a run that needs them builds
 * them, the others wait for it; none changes them.
 */
export async function builtPackages(): Promise<Packages> {
  const dir = join(sharedFolder(), 'packages');
  // The tarball gets its name last.
  const stdout = await runPackaging(dir, { unless: `[ -n "$(ls ${dir}/*.tar.gz 2>/dev/null)" ]` });
  const names = await readdir(dir);
  const fileOf = (end: string) => {
    const name = names.find((each) => each.endsWith(end));
    if (name === undefined) throw new Error(`no package was built: ${stdout}`);
    return join(dir, name);
  };
  return { deb: fileOf('.deb'), tarball: fileOf('.tar.gz') };
}

/**
 * Runs the build of the packages, and resolves with what it prints. `env`: variables that it gets in addition; `unless`: it does
 * not run when this command of the shell succeeds.
 */
export async function runPackaging(
  dir: string,
  { env = {}, unless = 'false' }: { env?: Record<string, string>; unless?: string } = {},
): Promise<string> {
  const script = join(PROJECT, '.packaging/package.ts');
  const options = ['--fast', '--maintainer', MAINTAINER, '--out', dir];
  // Several test files build packages, and share the runtime and the compiled module in the cache.
  const lock = join(
    tmpdir(),
    `postrider-packages-${createHash('sha256').update(PROJECT).digest('hex').slice(0, 12)}.lock`,
  );
  const build = [process.execPath, '--import', 'tsx', script, ...options];
  const command = [lock, 'sh', '-c', `${unless} || exec "$@"`, 'sh', ...build];
  const { stdout } = await run('flock', command, { cwd: PROJECT, env: { ...process.env, ...env } });
  return stdout;
}

/**
 * Builds a package of another version in `dir`, with the same contents and `files`: texts by path in the package. Returns its
 * path.
 */
export async function withVersion(
  deb: string,
  version: string,
  dir: string,
  files: Record<string, string> = {},
): Promise<string> {
  const tree = await mkdtemp(join(dir, 'tree-'));
  await run('dpkg-deb', ['--raw-extract', deb, tree]);
  for (const file of ['DEBIAN/control', 'usr/lib/postrider/package.json']) {
    const text = await readFile(join(tree, file), 'utf8');
    await writeFile(join(tree, file), text.replace(/(Version: |"version": ")[^"\n]+/, `$1${version}`));
  }
  for (const [path, text] of Object.entries(files)) await writeFile(join(tree, path), text);
  const file = join(dir, deb.slice(dirname(deb).length + 1).replace(/_[^_]+/, `_${version}`));
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, file]);
  await rm(tree, { recursive: true });
  return file;
}
