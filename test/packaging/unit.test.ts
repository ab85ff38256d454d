import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { requirePrograms } from '../support/required-programs.ts';
import { verifyUnit } from '../support/systemd-unit.ts';

const UNIT = new URL('../../systemd/postrider.service', import.meta.url).pathname;
const required = requirePrograms('systemd-analyze');
const MAX_EXPOSURE = 1.8;

describe.skipIf(required.missing)(`the systemd unit${required.reason}`, () => {
  it('is valid', async () => {
    expect(await verifyUnit()).toBe('');
  });

  it('is rated as safe', () => {
    const output = execFileSync('systemd-analyze', ['security', '--offline=true', '--no-pager', UNIT], {
      encoding: 'utf8',
    });
    const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(output) ?? [];
    expect(Number(exposure)).toBeLessThanOrEqual(MAX_EXPOSURE);
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
    Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(readFileSync(UNIT, 'utf8'))?.[1]);

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
