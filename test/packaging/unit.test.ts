import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { installationOf } from '../../src/config/installations.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { unitText, verifyUnit } from '../support/systemd-unit.ts';

const required = requirePrograms('systemd-analyze');
const MAX_EXPOSURE = 1.8;

describe.skipIf(required.missing)(`the systemd unit${required.reason}`, () => {
  it.each([
    ['postrider.service', 'postrider.service'],
    ['postrider@.service', 'postrider@shop.service'],
    ['system-postrider.slice', 'system-postrider.slice'],
  ])('%s is valid', async (unit, as) => {
    expect(await verifyUnit('', { unit, as })).toBe('');
  });

  it.each(['postrider.service', 'postrider@shop.service'])('%s is rated as safe', (name) => {
    const dir = mkdtempSync(join(tmpdir(), 'postrider-unit-'));
    try {
      const file = join(dir, name);
      writeFileSync(file, unitText(name.replace('shop', '')));
      const output = execFileSync('systemd-analyze', ['security', '--offline=true', '--no-pager', file], {
        encoding: 'utf8',
      });
      const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(output) ?? [];
      expect(Number(exposure)).toBeLessThanOrEqual(MAX_EXPOSURE);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

describe('the template of instances', () => {
  /** The lines without comments. */
  const settings = (name: string) =>
    unitText(name)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));

  it('differs from the unit of the only daemon in names and in the limits of memory only', () => {
    const [only, template] = [settings('postrider.service'), settings('postrider@.service')];
    expect(only.filter((line) => !template.includes(line))).toEqual([
      'Description=Postrider mail platform',
      'ConditionPathExists=/etc/postrider/postrider.toml',
      'ExecStart=/usr/bin/postrider --config /etc/postrider/postrider.toml serve',
      'ExecReload=/usr/bin/postrider --config /etc/postrider/postrider.toml config check',
      'User=postrider',
      'Group=postrider',
      'StateDirectory=postrider',
      'ConfigurationDirectory=postrider',
      'LoadCredential=master.key:postrider.master-key',
      'MemoryHigh=60%',
      'MemoryMax=75%',
    ]);
    expect(template.filter((line) => !only.includes(line))).toEqual([
      'Description=Postrider mail platform, %i',
      'ConditionPathExists=/etc/postrider-%i/postrider.toml',
      'ExecStart=/usr/bin/postrider --instance %i serve',
      'ExecReload=/usr/bin/postrider --instance %i config check',
      'User=postrider-%i',
      'Group=postrider-%i',
      'StateDirectory=postrider-%i',
      'ConfigurationDirectory=postrider-%i',
      'LoadCredential=master.key:postrider-%i.master-key',
      'Slice=system-postrider.slice',
    ]);
    expect(settings('system-postrider.slice')).toEqual(
      expect.arrayContaining(['MemoryHigh=60%', 'MemoryMax=75%']),
    );
  });

  it('uses the names of the program', () => {
    const { configFile, dataDir, user } = installationOf('%i');
    const template = settings('postrider@.service');
    expect(template).toEqual(
      expect.arrayContaining([
        `ConditionPathExists=${configFile}`,
        `StateDirectory=${basename(dataDir)}`,
        `User=${user}`,
      ]),
    );
  });
});

describe('the scripts of the packages', () => {
  it.each(['debian/postinst', 'debian/prerm', 'debian/postrm', 'install.sh', 'postrider.sh'])(
    '%s is valid',
    (name) => {
      const file = new URL(`../../.packaging/${name}`, import.meta.url).pathname;
      expect(execFileSync('sh', ['-n', file], { encoding: 'utf8' })).toBe('');
    },
  );
});

describe('the timeouts of the unit', () => {
  const seconds = (name: string) =>
    Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(unitText('postrider.service'))?.[1]);

  it('leaves each step of a stop its grace period', () => {
    const folder = new URL('../../src/daemon/', import.meta.url);
    const daemon = readdirSync(folder)
      .map((name) => readFileSync(new URL(name, folder), 'utf8'))
      .join('');
    const steps = daemon.match(/\.close\(GRACE_MS\)/g)?.length ?? 0;
    const graceSeconds = Number(/^export const GRACE_MS = (\d+) \* SECOND;$/m.exec(daemon)?.[1]);
    // The deliveries end within the same time, and their last results within 2 s more.
    const longestStop = (steps + 1) * graceSeconds + 2;
    expect(steps).toBeGreaterThan(0);
    expect(seconds('TimeoutStopSec')).toBeGreaterThan(longestStop);
  });
});
