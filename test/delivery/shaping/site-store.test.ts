import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { createSite, type Site } from '../../../src/delivery/scheduling/site.ts';
import { createSiteStore } from '../../../src/delivery/shaping/shaping.ts';
import { heldClock, startStore } from '../../support/store.ts';
import { readyMessage } from '../messages.ts';

const PROFILE = {
  connections: 8,
  messagesPerConnection: 100,
  perSecond: 0,
  idleMs: MINUTE,
  tls: 'none',
  chunking: true,
  addressPauseMs: 0,
} as const;

/** A daemon: a store with its sites, over a database that survives it. */
function startTestStore(store = startStore(heldClock())) {
  const { clock, tables, writer, db } = store;
  const log = createLog({ level: 'silent', hashAddresses: true });
  const sites: Site[] = [];
  const siteStore = createSiteStore({ clock, log, tables, writer }, () => sites);
  const site = (key: string): Site => {
    const memory = siteStore.memoryOf(key) ?? undefined;
    const added = createSite({
      key,
      number: 0,
      pool: 'p',
      profile: PROFILE,
      clock,
      firstSuspensionMs: MINUTE,
      memory,
    });
    sites.push(added);
    return added;
  };
  const reserve = (of: Site, account_id: string) => {
    of.add({
      message: readyMessage(1, { account_id }),
      hosts: [],
      route: null,
      lane: 'primary',
      provider: null,
      readAt: clock.now(),
    });
    const next = of.reserve(() => true);
    if (typeof next === 'string') throw new Error(next);
    of.release(next.reservation);
    return next.reservation;
  };
  const rows = () => db.prepare<[], number>('SELECT count(*) FROM site_limits').pluck().get();
  return { ...store, siteStore, sites, site, reserve, rows, restart: () => startTestStore(store) };
}

describe('the limits of sites', () => {
  it('survive a restart', async () => {
    const { site, siteStore, reserve, restart, clock } = startTestStore();
    const before = site('a');
    before.senderThrottled(reserve(before, 'acct_bad'), null);
    before.throttled(reserve(before, 'acct_good'), 10 * MINUTE);
    before.learnGreylisting(5 * MINUTE);
    const dead = site('b');
    dead.unreachable(reserve(dead, 'acct_good'));
    dead.unreachable(reserve(dead, 'acct_good'));
    await siteStore.write();
    clock.advance(20_000);

    const after = restart();
    const again = after.site('a');
    expect(again.limits()).toEqual({ ...before.limits(), inFlight: 0 });
    expect(again.limitedMs()).toBe(10 * MINUTE - 20_000);
    expect(again.accountLimitedMs('acct_bad')).toBe(MINUTE - 20_000);
    expect(again.greylistMs()).toBe(5 * MINUTE);
    expect(after.site('b').suspendedMs()).toBe(dead.suspendedMs());
    expect(after.site('c').limits()).toMatchObject({ level: 0, accounts: 0, connections: 8 });
  });

  it('are written only when they change, and deleted when they are the configured ones again', async () => {
    const { site, siteStore, reserve, rows, clock, db } = startTestStore();
    const a = site('a');
    await siteStore.write();
    expect(rows()).toBe(0);
    a.throttled(reserve(a, 'acct_one'), null);
    await siteStore.write();
    expect(rows()).toBe(1);
    const changes = () => db.prepare<[], number>('SELECT total_changes()').pluck().get();
    const before = changes();
    await siteStore.write();
    expect(changes()).toBe(before);
    clock.advance(12 * MINUTE);
    await siteStore.write();
    expect(rows()).toBe(0);
  });

  it('keeps the limits of a site without mail, and uses them when it has mail again', async () => {
    const { site, sites, siteStore, reserve } = startTestStore();
    const a = site('a');
    a.throttled(reserve(a, 'acct_one'), null);
    await siteStore.write();
    sites.length = 0;
    await siteStore.write();
    expect(site('a').limitedMs()).toBe(MINUTE);
  });

  it('are at most 10,000 rows: those of sites without mail that changed first are deleted', async () => {
    const { site, sites, siteStore, reserve, rows, tables } = startTestStore();
    for (let n = 0; n < 10_000; n++) site(`${n}`).learnGreylisting(MINUTE);
    await siteStore.write();
    expect(rows()).toBe(10_000);
    site('over').learnGreylisting(MINUTE);
    await siteStore.write();
    expect(tables.siteLimits.ofSite('0')).toHaveLength(1);
    expect(rows()).toBe(10_001);
    sites.length = 0;
    const fresh = site('fresh');
    fresh.throttled(reserve(fresh, 'acct_one'), null);
    await siteStore.write();
    expect(rows()).toBe(10_000);
    expect(siteStore.memoryOf('fresh')?.limits?.level).toBe(1);
    expect(siteStore.memoryOf('0')).toBeNull();
  });
});
