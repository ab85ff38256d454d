import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { type Assignment, createSites, type Hold, type Site } from '../../src/delivery/sites.ts';
import { enqueue, heldClock, startStore } from '../support/store.ts';

const AT = [{ name: 'mx.one.test', addresses: ['192.0.2.1'] }];

function start(messages = 100) {
  const clock = heldClock();
  const { tables } = startStore(clock);
  const sites = createSites({ clock, shaping: [], firstSuspension: 5 * SECOND });
  const site = sites.of('one.test', AT, null, 'default');
  const { seq } = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
  const message = tables.queue.ready(seq);
  if (message === null) throw new Error('the message is not ready');
  for (let n = 0; n < messages; n++) {
    const copy = { ...message, seq: seq + n };
    site.backlog[0].push({ message: copy, hosts: AT, route: null, takenAt: clock.now() });
  }
  return { clock, sites, site };
}

/** Begins as many sessions as the site allows. */
function begin({ sites, site }: { sites: ReturnType<typeof createSites>; site: Site }): Hold[] {
  const holds: Hold[] = [];
  for (;;) {
    const next = sites.next(site, () => true);
    if (typeof next === 'string') return holds;
    holds.push(next.hold);
  }
}

describe('a site whose host is down', () => {
  it('is suspended once for all sessions that were under way', () => {
    const rig = start();
    const { clock, sites, site } = rig;
    const holds = begin(rig);
    expect(holds).toHaveLength(10);
    const waits = holds.map((hold) => {
      sites.free(hold);
      return sites.unreachable(hold);
    });
    expect(waits.filter((wait) => wait > 0)).toEqual([5 * SECOND]);
    expect(sites.wait(site)).toBe(5 * SECOND);
    clock.advance(5 * SECOND);
    expect(sites.suspended(site)).toBe(false);
  });

  it('does not count sessions of the outage that end after the suspension', () => {
    const rig = start();
    const { clock, sites, site } = rig;
    const [first, second, ...late] = begin(rig);
    for (const hold of [first, second]) if (hold) sites.unreachable(hold);
    clock.advance(6 * SECOND);
    for (const hold of late) expect(sites.unreachable(hold)).toBe(0);
    expect(sites.suspended(site)).toBe(false);
  });

  it('is probed with one connection, and then gets twice as many with every answer', () => {
    const rig = start();
    const { clock, sites } = rig;
    for (const hold of begin(rig)) {
      sites.free(hold);
      sites.unreachable(hold);
    }
    clock.advance(5 * SECOND);
    const counts: number[] = [];
    for (let round = 0; round < 5; round++) {
      const [probe, ...others] = begin(rig);
      counts.push(1 + others.length);
      for (const hold of others) sites.free(hold);
      if (probe === undefined) throw new Error('no session began');
      sites.free(probe);
      sites.answered(probe);
    }
    expect(counts).toEqual([1, 2, 4, 8, 10]);
  });

  it('is probed although sessions of the outage still hang', () => {
    const rig = start();
    const { clock, sites } = rig;
    const [first, second] = begin(rig);
    for (const hold of [first, second]) {
      if (hold === undefined) throw new Error('no session began');
      sites.free(hold);
      sites.unreachable(hold);
    }
    clock.advance(5 * SECOND);
    expect(begin(rig)).toHaveLength(1);
  });

  it('waits twice as long after each failed probe, half an hour at most, and starts anew after an answer', () => {
    const rig = start();
    const { clock, sites } = rig;
    for (const hold of begin(rig).slice(0, 2)) {
      sites.free(hold);
      sites.unreachable(hold);
    }
    const waits: number[] = [];
    const probe = () => {
      const [hold] = begin(rig);
      if (hold === undefined) throw new Error('no session began');
      sites.free(hold);
      return hold;
    };
    clock.advance(5 * SECOND);
    for (let n = 0; n < 10; n++) {
      const wait = sites.unreachable(probe());
      waits.push(wait / SECOND);
      clock.advance(wait);
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
    sites.answered(probe());
    expect(sites.unreachable(probe())).toBe(0);
    expect(sites.unreachable(probe())).toBe(5 * SECOND);
  });

  it('is used again when a session of the outage is answered after all', () => {
    const rig = start();
    const { sites, site } = rig;
    const [first, second, third] = begin(rig);
    for (const hold of [first, second]) if (hold) sites.unreachable(hold);
    expect(sites.suspended(site)).toBe(true);
    if (third) sites.answered(third);
    expect(sites.suspended(site)).toBe(false);
    for (const hold of [first, second, third]) if (hold) sites.free(hold);
    expect(begin(rig)).toHaveLength(1);
  });

  it('frees every slot once, whatever happened', () => {
    const rig = start(500);
    const { clock, sites, site } = rig;
    for (let round = 0; round < 20; round++) {
      for (const [index, hold] of begin(rig).entries()) {
        sites.free(hold);
        if ((index + round) % 3 === 0) sites.answered(hold);
        else sites.unreachable(hold);
      }
      clock.advance(MINUTE * 31);
    }
    expect(site).toMatchObject({ inFlight: 0, probes: 0 });
    expect(new Set(site.freeSlots).size).toBe(10);
  });
});

describe('a message that the limits refuse', () => {
  it('is passed by one of another account', () => {
    const { sites, site } = start(2);
    const [first, second] = site.backlog[0];
    if (first === undefined || second === undefined) throw new Error('no backlog');
    first.message.account_id = 'acct_big';
    const admits = ({ message }: Assignment) => message.account_id !== 'acct_big';
    expect(sites.next(site, admits)).toMatchObject({ assignment: second });
    expect(sites.next(site, admits)).toBe('refused');
    expect(site.backlog[0]).toEqual([first]);
  });
});
