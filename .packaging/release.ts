import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { namesOfVersion, releasedChangelog, versionFault } from './release-texts.ts';

/*
 * `npm run release -- 0.3.0 [--dry-run] [--maintainer "Name <address>"]`: makes a release of what is committed.
 *
 *   1. package.json, that of the client, the lock file, the names of packages in README and docs, and CHANGELOG.md get the
 *      version;
 *   2. a commit with these files;
 *   3. the packages of both processors, and SHA256SUMS, in dist-package/;
 *   4. a signed tag with the section of the changelog as its message.
 *
 * Nothing is pushed: the last lines print how. --dry-run prints what would be written and changes nothing. Before the tag
 * exists, `git reset --hard HEAD~1` takes everything back.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'dry-run': { type: 'boolean', default: false },
    maintainer: { type: 'string' },
    root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
  },
});
const [version = ''] = positionals;
const root = values.root;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

const current: { version: string } = JSON.parse(read('package.json'));
const changelog = releasedChangelog(read('CHANGELOG.md'), version, new Date().toISOString().slice(0, 10));
const faults = [
  versionFault(current.version, version),
  'fault' in changelog ? changelog.fault : null,
  git('status', '--porcelain') === '' ? null : 'The working tree has changes: commit them first',
  git('tag', '--list', `v${version}`) === '' ? null : `The tag v${version} exists`,
].filter((fault) => fault !== null);
if ('fault' in changelog || faults.length > 0) {
  for (const fault of faults) console.error(fault);
  process.exit(1);
}

const files = new Map([
  ['CHANGELOG.md', changelog.text],
  ...['package.json', 'clients/node/package.json'].map((file): [string, string] => [
    file,
    read(file).replace(`"version": "${current.version}"`, `"version": "${version}"`),
  ]),
  // The version of the package itself is in the first lines; those of the libraries follow.
  ['package-lock.json', lockFile(read('package-lock.json'))],
  ...['README.md', ...filesOf('docs', /\.md$/), ...filesOf('docs/examples', /\.yaml$/)].map(
    (file): [string, string] => [file, namesOfVersion(read(file), current.version, version)],
  ),
]);
for (const [file, text] of files) {
  if (text === read(file)) continue;
  console.log(`${file} gets the version ${version}`);
  if (!values['dry-run']) writeFileSync(join(root, file), text);
}
if (values['dry-run']) {
  console.log(
    `the packages and SHA256SUMS are built, and the tag v${version} is signed with this message:\n`,
  );
  console.log(changelog.section);
} else {
  git('commit', '--all', '--message', `Release ${version}`);
  const maintainer = values.maintainer === undefined ? [] : ['--maintainer', values.maintainer];
  for (const arch of ['x64', 'arm64'])
    execFileSync('npm', ['run', 'package', '--', '--arch', arch, ...maintainer], {
      cwd: root,
      stdio: 'inherit',
    });
  const names = [`postrider_${version.replace('-', '~')}_`, `postrider-${version}-`];
  const packages = filesOf('dist-package', /\.(deb|tar\.gz)$/).filter((file) =>
    names.some((name) => file.startsWith(`dist-package/${name}`)),
  );
  const sums = packages.map((file) => `${sha256(join(root, file))}  ${file.slice('dist-package/'.length)}\n`);
  writeFileSync(join(root, 'dist-package/SHA256SUMS'), sums.join(''));
  git('tag', '--sign', `v${version}`, '--message', `Postrider ${version}\n\n${changelog.section}`);
  console.log(
    `\nReview it, then: git push --follow-tags\nUpload: ${packages.join(' ')} dist-package/SHA256SUMS`,
  );
}

/** The paths of a directory's files whose names match. */
function filesOf(dir: string, name: RegExp): string[] {
  return readdirSync(join(root, dir))
    .filter((file) => name.test(file))
    .map((file) => `${dir}/${file}`);
}

function lockFile(text: string): string {
  const lock: { version: string; packages: { '': { version: string } } } = JSON.parse(text);
  lock.version = version;
  lock.packages[''].version = version;
  return `${JSON.stringify(lock, null, 2)}\n`;
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
