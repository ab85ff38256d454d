import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { compressed, copy, normalize, type Parts, write } from './contents.ts';
import { OLDEST_LIBC } from './native.ts';
import type { Processor } from './runtime.ts';
import { systemdUnits } from './unit.ts';

/** deb-control(5) architectures. */
const ARCHITECTURES: Record<Processor, string> = { x64: 'amd64', arm64: 'arm64' };
const SCRIPTS = ['postinst', 'prerm', 'postrm'];

export interface DebOptions {
  processor: Processor;
  /** `Name <address>`. */
  maintainer: string;
  /** Less compression, for tests. */
  isFast: boolean;
}

/** Builds the Debian package from the files of `prefix` in `work`; returns its path in `out`. */
export function buildDeb(
  parts: Parts,
  { processor, maintainer, isFast }: DebOptions,
  prefix: string,
  work: string,
  out: string,
): string {
  const { root, epoch } = parts;
  const architecture = ARCHITECTURES[processor];
  // deb-version(7): a pre-release is older than the release.
  const version = parts.version.replace('-', '~');
  cpSync(prefix, join(work, 'usr'), { recursive: true });
  for (const [name, text] of Object.entries(systemdUnits(root)))
    write(join(work, 'usr/lib/systemd/system', name), text);
  copy(join(root, 'systemd/postrider.sysusers.conf'), join(work, 'usr/lib/sysusers.d/postrider.conf'), 0o644);
  mkdirSync(join(work, 'etc/postrider'), { recursive: true });
  const changelog = debianChangelog({ version, maintainer, epoch });
  write(join(work, 'usr/share/doc/postrider/changelog.gz'), compressed(changelog));
  const overrides = join(work, 'usr/share/lintian/overrides/postrider');
  copy(join(root, '.packaging/debian/lintian-overrides'), overrides, 0o644);
  const bytes = normalize(work, epoch);

  const control = join(work, 'DEBIAN');
  for (const script of SCRIPTS) copy(join(root, '.packaging/debian', script), join(control, script), 0o755);
  const kilobytes = Math.ceil(bytes / 1024);
  write(join(control, 'control'), controlFile({ version, architecture, maintainer, kilobytes }));
  write(join(control, 'md5sums'), checksums(work));
  normalize(work, epoch);

  const file = join(out, `postrider_${version}_${architecture}.deb`);
  // All programs that read package archives support xz; some of those in Debian 12 do not support zstd.
  const compression = isFast ? ['-Zgzip', '-z1'] : ['-Zxz'];
  execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', work, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return file;
}

/**
 * The `Maintainer` of the package (deb-control(5)): the person who builds it. `given` is the value of `--maintainer`; without
 * it $DEBFULLNAME and $DEBEMAIL, as for Debian's own tools. Throws for a value that is not `Name <address>`.
 */
export function maintainerOf(given: string | undefined, env: NodeJS.ProcessEnv): string {
  const { DEBFULLNAME: name, DEBEMAIL: address } = env;
  // $DEBEMAIL may contain the name, too.
  const fromEnv = address?.includes('<')
    ? address
    : address && `${name || 'Postrider packages'} <${address}>`;
  const maintainer = given ?? (fromEnv || 'Unknown builder <root@localhost>');
  if (!/^[^<>@\n]*[^<>@\s] <[^<>@\s]+@[^<>@\s]+>$/.test(maintainer))
    throw new Error(
      `The maintainer must be "Name <address>", not "${maintainer}": set --maintainer, or DEBFULLNAME and DEBEMAIL`,
    );
  return maintainer;
}

/** deb-changelog(5). */
function debianChangelog(fields: { version: string; maintainer: string; epoch: number }): string {
  const date = new Date(fields.epoch * 1000).toUTCString().replace('GMT', '+0000');
  return `postrider (${fields.version}) unstable; urgency=medium

  * See /usr/share/doc/postrider/CHANGELOG.md.gz.

 -- ${fields.maintainer}  ${date}
`;
}

function controlFile(fields: {
  version: string;
  architecture: string;
  maintainer: string;
  kilobytes: number;
}): string {
  return `Package: postrider
Version: ${fields.version}
Architecture: ${fields.architecture}
Maintainer: ${fields.maintainer}
Installed-Size: ${fields.kilobytes}
Depends: libc6 (>= ${OLDEST_LIBC}), libgcc-s1, libstdc++6 (>= 12), systemd | systemd-standalone-sysusers | systemd-sysusers
Suggests: unbound
Section: mail
Priority: optional
Description: self-hosted mail platform
 Postrider sends mail from your own server. Programs submit messages over
 HTTP or SMTP; it signs them with DKIM and delivers them directly to the
 recipients' mail servers, retries, classifies bounces, receives complaints,
 and manages consent and suppressions. All data is in one SQLite file.
 .
 The package contains its own Node.js.
`;
}

/** deb-md5sums(5), for debsums. */
function checksums(work: string): string {
  return readdirSync(work, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .filter((file) => !file.startsWith(join(work, 'DEBIAN')))
    .map((file) => `${createHash('md5').update(readFileSync(file)).digest('hex')}  ${relative(work, file)}\n`)
    .toSorted((a, b) => (a.slice(34) < b.slice(34) ? -1 : 1))
    .join('');
}
