import { describe, expect, it } from 'vitest';
import { parseProxy } from '../../src/config/egress-settings.ts';
import { loadConfig } from '../../src/config/load.ts';

const load = (egress: string, more: Record<string, string> = {}) =>
  loadConfig({ cwd: '/', env: { POSTRIDER_DELIVERY__EGRESS: egress, ...more } }).delivery;

describe('the address of a proxy', () => {
  it.each([
    ['socks5://192.0.2.9:1080', { host: '192.0.2.9', port: 1080, user: null }],
    ['socks5://me@Proxy.example:1', { host: 'proxy.example', port: 1, user: 'me' }],
    ['socks5://[2001:db8::1]:1080', { host: '2001:db8::1', port: 1080, user: null }],
  ])('%s is valid', (text, expected) => {
    expect(parseProxy(text)).toEqual(expected);
  });
  it.each([
    'socks5://192.0.2.9',
    'socks5://192.0.2.9:0',
    'socks5://192.0.2.9:65536',
    'socks5://me:secret@192.0.2.9:1080',
    'socks4://192.0.2.9:1080',
    'http://192.0.2.9:1080',
    'socks5://192.0.2.9:1080/path',
    '192.0.2.9:1080',
  ])('%s is not valid', (text) => {
    expect(parseProxy(text)).toBeNull();
  });
});

describe('an entry of delivery.egress', () => {
  it('has a start as a TOML date or as text, and 30 days by default', () => {
    for (const started of ['2026-12-01', '"2026-12-01"'])
      expect(load(`[{ name = "a", warmup = { started = ${started} } }]`).egress[0]?.warmup).toEqual({
        started: '2026-12-01',
        days: 30,
      });
  });

  it('has the path of its password file relative to the configuration', () => {
    const entry =
      '{ name = "a", address = "192.0.2.1", proxy = "socks5://me@192.0.2.9:1080", proxyPasswordFile = "p" }';
    expect(load(`[${entry}]`).egress[0]?.proxyPasswordFile).toBe('/p');
  });

  it.each([
    ['{ name = "a", warmup = { started = "2026-02-30" } }', /warmup\.started: must be a date/],
    ['{ name = "a", warmup = { started = "soon" } }', /must be a date/],
    ['{ name = "a", warmup = { started = 2026-12-01, days = 0 } }', /warmup\.days/],
    ['{ name = "a", proxyPasswordFile = "p" }', /proxy: is missing: proxyPasswordFile needs it/],
    [
      '{ name = "a", address = "192.0.2.1", proxy = "socks5://me@192.0.2.9:1080" }',
      /proxyPasswordFile: is missing/,
    ],
    [
      '{ name = "a", address = "192.0.2.1", proxy = "socks5://192.0.2.9:1080", proxyPasswordFile = "p" }',
      /needs a user in proxy/,
    ],
    [
      '{ name = "a", proxy = "socks5://192.0.2.9:1080" }',
      /address: is missing: name the address from which the proxy connects/,
    ],
    [
      '{ name = "a", address = "192.0.2.1", proxy = "socks5://a:b@192.0.2.9:1080" }',
      /put the password in proxyPasswordFile/,
    ],
  ])('%s is rejected', (entry, message) => {
    expect(() => load(`[${entry}]`)).toThrow(message);
  });
});

it('rejects a schedule whose limits decrease', () => {
  expect(() => load('[]', { POSTRIDER_DELIVERY__WARMUP__SCHEDULE: '[50, 100, 60]' })).toThrow(
    /schedule: must not contain a smaller number after a larger one/,
  );
});
