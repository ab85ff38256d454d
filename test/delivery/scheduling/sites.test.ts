import { describe, expect, it } from 'vitest';
import type { ShapingProfile } from '../../../src/config/shaping.ts';
import { MINUTE } from '../../../src/core/clock.ts';
import { createSites } from '../../../src/delivery/scheduling/sites.ts';

const DEFAULT: ShapingProfile = {
  name: 'default',
  match: [],
  connections: 10,
  messagesPerConnection: 100,
  perSecond: 0,
  idleSeconds: 60,
  tls: 'opportunistic',
  chunking: true,
  shared: true,
  origin: 'program',
};
const GOOGLE: ShapingProfile = {
  ...DEFAULT,
  name: 'google',
  match: ['*.google.com'],
  connections: 5,
  messagesPerConnection: 50,
  tls: 'required',
};

const createTestSites = (shaping: ShapingProfile[] = []) =>
  createSites({ clock: { now: () => 0 }, shaping: [...shaping, DEFAULT], firstSuspensionMs: MINUTE });
const hosts = (...names: string[]) => names.map((name) => ({ name, addresses: ['192.0.2.1'] }));

describe('sites', () => {
  it('are shared by domains behind the same hosts, in any order, within a pool', () => {
    const sites = createTestSites();
    const site = sites.of('a.test', hosts('mx1.x', 'mx2.x'), null, 'p');
    expect(sites.of('b.test', hosts('mx2.x', 'mx1.x'), null, 'p')).toBe(site);
    expect(sites.of('a.test', hosts('mx1.x', 'mx2.x'), null, 'q')).not.toBe(site);
    expect(sites.of('a.test', hosts('mx1.x'), null, 'p')).not.toBe(site);
  });

  it('are shared by all hosts that match one profile', () => {
    const sites = createTestSites([GOOGLE]);
    const site = sites.of('a.test', hosts('aspmx.l.google.com'), null, 'p');
    expect(sites.of('b.test', hosts('alt1.aspmx.l.google.com', 'other'), null, 'p')).toBe(site);
    expect(site.profile()).toEqual({
      connections: 5,
      messagesPerConnection: 50,
      perSecond: 0,
      idleMs: MINUTE,
      tls: 'required',
      chunking: true,
    });
  });

  it("also match a recipient's domain, and never a look-alike", () => {
    const sites = createTestSites([{ ...GOOGLE, match: ['a.test'] }, GOOGLE]);
    expect(sites.of('a.test', hosts('mx.x'), null, 'p').profile().connections).toBe(5);
    expect(sites.of('b.test', hosts('evilgoogle.com'), null, 'p').profile().connections).toBe(10);
  });

  it('are found only when they exist', () => {
    const sites = createTestSites();
    expect(sites.find('a.test', hosts('mx.x'), null, 'p')).toBeNull();
    const site = sites.of('a.test', hosts('mx.x'), null, 'p');
    expect(sites.find('a.test', hosts('mx.x'), null, 'p')).toBe(site);
  });
});
