import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../../src/core/clock.ts';
import { createSite, type Site, type SlotReservation } from '../../../src/delivery/scheduling/site.ts';
import { createOpenConnections } from '../../../src/delivery/scheduling/slots.ts';
import { heldClock } from '../../support/store.ts';
import { readyMessage } from '../messages.ts';

/** Sites with enough messages, 10 connections each and `limit` open connections together. */
function createTestSites(limit: number) {
  const clock = heldClock();
  const openConnections = createOpenConnections({ limit, clock });
  let created = 0;
  const createTestSite = (): Site => {
    const name = `${created}.test`;
    const site = createSite({
      key: `mx.${name} via default`,
      number: created++,
      pool: 'default',
      profile: {
        connections: 10,
        messagesPerConnection: 100,
        perSecond: 0,
        idleMs: MINUTE,
        tls: 'opportunistic',
        chunking: true,
        addressPauseMs: 0,
      },
      clock,
      firstSuspensionMs: 5 * SECOND,
      initialConnections: 10,
      openConnections,
    });
    for (let seq = 1; seq <= 100; seq++)
      site.add({
        message: readyMessage(seq),
        hosts: [{ name: `mx.${name}`, addresses: ['192.0.2.1'] }],
        route: null,
        provider: name,
        lane: 'primary',
        readAt: clock.now(),
      });
    return site;
  };
  return { clock, createTestSite };
}

/** Reserves as many slots as the site allows, at most `count`. */
function reserve(site: Site, count = 100): SlotReservation[] {
  const reservations: SlotReservation[] = [];
  while (reservations.length < count) {
    const next = site.reserve(() => true);
    if (typeof next === 'string') break;
    reservations.push(next.reservation);
  }
  return reservations;
}

function release(reservations: readonly SlotReservation[]): void {
  for (const reservation of reservations) {
    reservation.site.answered(reservation, true);
    reservation.site.release(reservation);
  }
}

describe('the open connections of all sites', () => {
  it('are shared: a site uses those that it has before it opens more', () => {
    const { createTestSite } = createTestSites(12);
    const [one, two] = [createTestSite(), createTestSite()];
    release(reserve(one));
    const ofTwo = reserve(two);
    expect(ofTwo).toHaveLength(2);
    expect(two.hasFreeSlot(0)).toBe(false);
    expect(two.connections(0)).toEqual({ used: 2, allowed: 2 });
    expect(reserve(one)).toHaveLength(10);
    release(ofTwo);
    expect(reserve(two)).toHaveLength(2);
  });

  it('always include one of each site', () => {
    const { createTestSite } = createTestSites(2);
    release(reserve(createTestSite()));
    const other = createTestSite();
    for (let n = 0; n < 3; n++) {
      const reservations = reserve(other);
      expect(reservations).toHaveLength(1);
      release(reservations);
    }
  });

  it('are given to another site when they are not used for some time', () => {
    const { createTestSite, clock } = createTestSites(10);
    const [one, two] = [createTestSite(), createTestSite()];
    release(reserve(one));
    expect(reserve(two)).toHaveLength(1);
    clock.advance(4999);
    expect(reserve(two)).toHaveLength(0);
    clock.advance(1);
    expect(reserve(two)).toHaveLength(9);
    // All ten belong to the other site now.
    expect(reserve(one)).toHaveLength(1);
  });

  it('do not include those of a site that does not answer', () => {
    const { createTestSite } = createTestSites(10);
    const [dead, live] = [createTestSite(), createTestSite()];
    for (const reservation of reserve(dead)) dead.release(reservation);
    expect(reserve(live)).toHaveLength(10);
  });
});
