import { describe, expect, it } from 'vitest';
import type { ShapingProfile } from '../../../src/config/shaping.ts';
import { MINUTE } from '../../../src/core/clock.ts';
import { createSites, type SitesOptions } from '../../../src/delivery/scheduling/sites.ts';

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
  addressPause: 0,
  delisting: '',
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

const createTestSites = (
  shaping: ShapingProfile[] = [],
  hostAnswers?: SitesOptions['hostAnswers'],
  now = () => 0,
) =>
  createSites({
    clock: { now },
    shaping: [...shaping, DEFAULT],
    firstSuspensionMs: MINUTE,
    ...(hostAnswers === undefined ? {} : { hostAnswers }),
  });
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
    expect(sites.of('b.test', hosts('alt1.aspmx.l.google.com', 'x.google.com'), null, 'p')).toBe(site);
    expect(site.isShared).toBe(true);
    expect(site.profile()).toEqual({
      addressPauseMs: 0,
      connections: 5,
      messagesPerConnection: 50,
      perSecond: 0,
      idleMs: MINUTE,
      tls: 'required',
      chunking: true,
    });
  });

  it('are not shared with a destination that has other hosts, too, but have the limits of the profile', () => {
    const sites = createTestSites([GOOGLE]);
    const google = sites.of('a.test', hosts('aspmx.l.google.com'), null, 'p');
    for (const names of [
      ['mx.evil.test', 'www.google.com'],
      ['www.google.com', 'mx.evil.test'],
    ]) {
      const site = sites.of('evil.test', hosts(...names), null, 'p');
      expect(site).not.toBe(google);
      expect(site.isShared).toBe(false);
      expect(site.profile().connections).toBe(5);
    }
  });

  it('are not shared with a destination whose best host was tried and has never replied', () => {
    const silent = new Set(['www.google.com']);
    const sites = createTestSites([GOOGLE], { isSilent: (host) => silent.has(host) });
    const google = sites.of('a.test', hosts('aspmx.l.google.com', 'www.google.com'), null, 'p');
    const site = sites.of('evil.test', hosts('www.google.com'), null, 'p');
    expect(site).not.toBe(google);
    silent.clear();
    expect(sites.of('evil.test', hosts('www.google.com'), null, 'p')).toBe(google);
  });

  it('have a limit for each account, and one for all', () => {
    const sites = createTestSites();
    const fill = (account: string) => {
      let created = 0;
      for (; sites.mayCreate(account); created++) {
        const name = `mx.${account}${created}.test`;
        const site = sites.of(name, hosts(name), null, 'p', account);
        // Mail waits at it.
        site.addWaitingKey({ priority: 0, account_id: account, destination: name });
      }
      return created;
    };
    expect(fill('acct_one')).toBe(2500);
    expect(sites.mayCreate('acct_two')).toBe(true);
    expect(['acct_two', 'acct_three', 'acct_four', 'acct_five'].map(fill)).toEqual([2500, 2500, 2500, 0]);
  });

  it('without mail are removed soon where there are many', () => {
    let now = 0;
    const sites = createTestSites([], undefined, () => now);
    const create = (number: number) =>
      sites.of(`d${number}.test`, hosts(`mx.d${number}.test`), null, 'p', 'acct_one');
    const first = create(0);
    now += 1001;
    expect(sites.removeObsolete(first)).toBe(false);
    for (let number = 1; number < 1250; number++) create(number);
    const waiting = create(1250);
    waiting.addWaitingKey({ priority: 0, account_id: 'acct_one', destination: 'd1250.test' });
    expect(sites.removeObsolete(first)).toBe(true);
    now += 1001;
    expect(sites.removeObsolete(waiting)).toBe(false);
    expect(create(0)).not.toBe(first);
  });

  it('are shared with a destination that the operator named, also when its hosts have never replied', () => {
    const own: ShapingProfile = {
      ...DEFAULT,
      name: 'own',
      match: ['a.test', 'b.test'],
      origin: 'configuration',
    };
    const sites = createTestSites([own], { isSilent: () => true });
    const site = sites.of('a.test', hosts('mx.a.test'), null, 'p');
    expect(sites.of('b.test', hosts('mx.b.test'), null, 'p')).toBe(site);
    // Its failures count.
    expect(site.isShared).toBe(false);
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
