import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { namesOfVersion, releasedChangelog, versionFault } from '../../.packaging/release-texts.ts';
import { temporaryDir } from '../support/store.ts';

describe('the next version', () => {
  it.each([
    ['0.1.0', '0.1.1'],
    ['0.1.9', '0.2.0'],
    ['0.9.9', '1.0.0'],
    ['0.1.0', '0.2.0-rc.1'],
    ['0.2.0-rc.1', '0.2.0'],
  ])('after %s may be %s', (current, next) => {
    expect(versionFault(current, next)).toBeNull();
  });

  it.each(['0.2.0', '0.1.9', '0.2', 'v0.3.0', '0.03.0', '0.3.0 ', ''])('after 0.2.0 is not %j', (next) => {
    expect(versionFault('0.2.0', next)).toMatch(/does not follow|is not a version/);
  });
});

const CHANGELOG =
  '# Changelog\n\nAll changes.\n\n## Unreleased\n\n- One.\n- Two.\n\n## 0.1.0 - 2026-01-02\n\n- Zero.\n';

describe('the changelog of a release', () => {
  it('has what was unreleased under the version', () => {
    expect(releasedChangelog(CHANGELOG, '0.2.0', '2026-03-04')).toEqual({
      section: '- One.\n- Two.',
      text: CHANGELOG.replace('## Unreleased\n', '## Unreleased\n\n## 0.2.0 - 2026-03-04\n'),
    });
  });

  it.each([
    ['nothing is unreleased', CHANGELOG.replace('- One.\n- Two.\n', '')],
    ['the section is missing', CHANGELOG.replace('## Unreleased', '## Next')],
  ])('is refused when %s', (_, text) => {
    expect(releasedChangelog(text, '0.2.0', '2026-03-04')).toEqual({
      fault: expect.stringContaining('Unreleased'),
    });
  });
});

it('names the packages and images of the new version in the documents', () => {
  expect(namesOfVersion('-t postrider:0.1.0 --build-arg VERSION=0.1.0 -f', '0.1.0', '0.2.0')).toBe(
    '-t postrider:0.2.0 --build-arg VERSION=0.2.0 -f',
  );
  expect(
    namesOfVersion('postrider_0.1.0_amd64.deb postrider-0.1.0-linux-x64 0.1.0', '0.1.0', '0.2.0-rc.1'),
  ).toBe('postrider_0.2.0~rc.1_amd64.deb postrider-0.2.0-rc.1-linux-x64 0.1.0');
});

describe('a dry run', () => {
  const script = new URL('../../.packaging/release.ts', import.meta.url).pathname;

  function repository() {
    const root = temporaryDir();
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.net', ...args], {
        cwd: root,
        encoding: 'utf8',
      });
    for (const dir of ['docs/examples', 'clients/node']) mkdirSync(join(root, dir), { recursive: true });
    const files = {
      'CHANGELOG.md': CHANGELOG,
      'package.json': '{\n  "version": "0.1.0"\n}\n',
      'clients/node/package.json': '{\n  "version": "0.1.0"\n}\n',
      'package-lock.json': JSON.stringify({ version: '0.1.0', packages: { '': { version: '0.1.0' } } }),
      'README.md': 'apt install ./postrider_0.1.0_amd64.deb\n',
      'docs/install.md': 'Nothing about versions.\n',
    };
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text);
    git('init', '--quiet');
    git('add', '.');
    git('commit', '--quiet', '--message', 'Begin');
    return { root, git, files };
  }

  const release = (root: string, ...args: string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx', script, '--root', root, ...args], { encoding: 'utf8' });

  it('prints what would be written, and changes nothing', () => {
    const { root, git, files } = repository();
    const { status, stdout, stderr } = release(root, '0.2.0', '--dry-run');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const file of [
      'CHANGELOG.md',
      'package.json',
      'clients/node/package.json',
      'package-lock.json',
      'README.md',
    ])
      expect(stdout).toContain(`${file} gets the version 0.2.0`);
    expect(stdout).not.toContain('docs/install.md');
    expect(stdout).toContain('- One.\n- Two.');
    expect(git('status', '--porcelain')).toBe('');
    expect(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')).toBe(files['CHANGELOG.md']);
  });

  it('names everything that stands in the way', () => {
    const { root, git } = repository();
    git('tag', 'v0.1.0');
    writeFileSync(join(root, 'README.md'), 'changed');
    const { status, stderr } = release(root, '0.1.0', '--dry-run');
    expect(status).toBe(1);
    expect(stderr.trim().split('\n')).toEqual([
      '0.1.0 does not follow 0.1.0',
      'The working tree has changes: commit them first',
      'The tag v0.1.0 exists',
    ]);
  });
});
