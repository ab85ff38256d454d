import { describe, expect, it } from 'vitest';
import {
  adviceFor,
  installationAt,
  installationOf,
  isInstanceName,
  unitOf,
} from '../../src/config/installations.ts';

const SHOP = '/etc/postrider-shop/postrider.toml';

describe('the installations of a machine', () => {
  it.each(['a', 'shop', 'shop-2', 'a'.repeat(20)])('has instances such as %s', (name) => {
    expect(isInstanceName(name)).toBe(true);
    const installation = installationOf(name);
    // systemd(1) refuses longer user names.
    expect(installation.user.length).toBeLessThanOrEqual(31);
    expect(installationAt(installation.configFile)).toEqual(installation);
  });

  it.each(['', '-', 'Shop', '2', 'a-', '../a', 'a b', 'a%i', 'a@b', 'a.b', 'a'.repeat(21)])(
    'refuses the name "%s"',
    (name) => {
      expect(isInstanceName(name)).toBe(false);
      expect(installationAt(`/etc/postrider-${name}/postrider.toml`)?.instance ?? null).toBe(null);
    },
  );

  it('finds the one that a file belongs to', () => {
    expect(installationAt('/etc/postrider/postrider.toml')?.user).toBe('postrider');
    expect(installationAt('/etc/postrider-shop/other.toml')?.user).toBe('postrider-shop');
    for (const file of [null, '/srv/config/postrider.toml', '/etc/postrider-shop/sub/postrider.toml'])
      expect(installationAt(file)).toBe(null);
    expect([unitOf(null), unitOf(SHOP)]).toEqual(['postrider', 'postrider@shop']);
  });
});

describe('advice for an instance', () => {
  it.each([
    [
      'journalctl -u postrider -n 50; after the repair: systemctl start postrider, or: postrider serve',
      'journalctl -u postrider@shop -n 50; after the repair: systemctl start postrider@shop, or: postrider --instance shop serve',
    ],
    ['postrider zone', 'postrider --instance shop zone'],
    ['run "postrider migrate" first', 'run "postrider --instance shop migrate" first'],
    ['certificate in /etc/postrider/cert.pem', 'certificate in /etc/postrider/cert.pem'],
    [
      'Install the version of postrider that last used it',
      'Install the version of postrider that last used it',
    ],
  ])('%s', (text, expected) => {
    expect(adviceFor(text, SHOP)).toBe(expected);
    expect(adviceFor(text, '/etc/postrider/postrider.toml')).toBe(text);
    expect(adviceFor(text, null)).toBe(text);
  });
});
