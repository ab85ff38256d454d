import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { programVersion } from '../src/config/version.ts';
import { copy, normalize, type Parts, write, writePrefix } from './contents.ts';
import { buildDeb, maintainerOf } from './deb.ts';
import { buildNativeModule } from './native.ts';
import { fetchRuntime, PACKAGED, type Processor } from './runtime.ts';
import { systemdUnits } from './unit.ts';

/*
 * `npm run package -- [--arch arm64] [--maintainer "Name <address>"] [--fast] [--out DIR]`: builds the Debian package and
 * the tarball into dist-package/. The same sources and the same compiler result in the same files. --fast compresses less,
 * for tests. A package gets its name when it is complete: compressing takes minutes on a slow machine, and apt refuses an
 * incomplete file.
 */
const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: process.arch },
    out: { type: 'string', default: 'dist-package' },
    maintainer: { type: 'string' },
    fast: { type: 'boolean', default: false },
  },
});
const processor = processorOf(values.arch);
const maintainer = maintainerOf(values.maintainer, process.env);
const out = resolve(root, values.out);
const cache = join(root, 'dist-package/cache');

mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(out, 'work-'));
try {
  progress('Node for the packages');
  const runtime = fetchRuntime(PACKAGED, processor, cache);
  progress('better-sqlite3 for this Node');
  const parts: Parts = {
    root,
    version: programVersion(),
    runtime,
    nativeModule: buildNativeModule(root, processor, runtime, cache),
    epoch: sourceDateEpoch(),
  };
  const prefix = join(work, 'prefix');
  progress('API reference');
  execFileSync(process.execPath, ['--import', 'tsx', 'test/http/openapi/write-api-docs.ts'], { cwd: root });
  progress('files');
  await writePrefix(parts, prefix);
  progress('Debian package: compressing takes a minute or more');
  publish(buildDeb(parts, { processor, maintainer, isFast: values.fast }, prefix, join(work, 'deb'), work));
  progress('tarball');
  publish(buildTarball(parts, prefix));
} finally {
  rmSync(work, { recursive: true, force: true });
}

function buildTarball(parts: Parts, prefix: string): string {
  const name = `postrider-${parts.version}-linux-${processor}`;
  const dir = join(work, name);
  cpSync(prefix, dir, { recursive: true });
  for (const [unit, text] of Object.entries(systemdUnits(root))) write(join(dir, 'systemd', unit), text);
  for (const file of ['systemd/postrider.sysusers.conf', 'README.md', 'LICENSE'])
    copy(join(root, file), join(dir, file), 0o644);
  copy(join(root, '.packaging/install.sh'), join(dir, 'install.sh'), 0o755);
  normalize(dir, parts.epoch);
  const file = join(work, `${name}.tar.gz`);
  const owner = ['--owner=0', '--group=0', '--numeric-owner'];
  execFileSync('tar', [
    '--sort=name',
    '--format=gnu',
    ...owner,
    '-I',
    values.fast ? 'gzip -n1' : 'gzip -n',
    '-cf',
    file,
    '-C',
    work,
    name,
  ]);
  return file;
}

function processorOf(name: string): Processor {
  if (name !== 'x64' && name !== 'arm64') throw new Error(`--arch ${name}: must be x64 or arm64`);
  return name;
}

/** `$SOURCE_DATE_EPOCH`, else the time of the last commit, in seconds. */
function sourceDateEpoch(): number {
  const text =
    process.env['SOURCE_DATE_EPOCH'] ??
    execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  const seconds = Number(text);
  if (!Number.isSafeInteger(seconds) || seconds <= 0)
    throw new Error(`SOURCE_DATE_EPOCH must be a number of seconds since 1970, not ${text.trim()}`);
  return seconds;
}

function progress(step: string): void {
  console.error(`${processor}: ${step} …`);
}

/** Moves a complete file to its place, which is on the same file system, and prints it. */
function publish(file: string): void {
  const target = join(out, basename(file));
  renameSync(file, target);
  console.log(`${target}  ${(statSync(target).size / 1e6).toFixed(1)} MB`);
}
