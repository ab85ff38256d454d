import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../../src/core/clock.ts';
import { type Assignment, createSite, type SlotReservation } from '../../../src/delivery/scheduling/site.ts';
import { createWaitingIndex, createWaitingKeys } from '../../../src/delivery/scheduling/waiting-keys.ts';
import type { QueueKey, QueuePriority } from '../../../src/store/messages/queue.ts';
import { heldClock } from '../../support/store.ts';
import { readyMessage } from '../messages.ts';

const HOSTS = [{ name: 'mx.one.test', addresses: ['192.0.2.1'] }];

/** Unless `isNew`, the site may have all connections from the beginning. */
function createTestSite({ messages = 100, connections = 10, isNew = false } = {}) {
  const clock = heldClock();
  const site = createSite({
    key: 'mx.one.test via default',
    number: 0,
    pool: 'default',
    profile: {
      connections,
      messagesPerConnection: 100,
      perSecond: 0,
      idleMs: MINUTE,
      tls: 'opportunistic',
      chunking: true,
      addressPauseMs: 0,
    },
    clock,
    firstSuspensionMs: 5 * SECOND,
    ...(isNew ? {} : { initialConnections: connections }),
  });
  const assignment = (seq: number, columns: Parameters<typeof readyMessage>[1] = {}): Assignment => ({
    message: readyMessage(seq, columns),
    hosts: HOSTS,
    route: null,
    provider: 'one.test',
    lane: 'primary',
    readAt: clock.now(),
  });
  for (let seq = 1; seq <= messages; seq++) site.add(assignment(seq));
  /** Reserves as many slots as the site allows. */
  const reserveAll = (): SlotReservation[] => {
    const reservations: SlotReservation[] = [];
    for (;;) {
      const next = site.reserve(() => true);
      if (typeof next === 'string') return reservations;
      reservations.push(next.reservation);
    }
  };
  const reserve = () => {
    const next = site.reserve(() => true);
    if (typeof next === 'string') throw new Error(`no slot: ${next}`);
    return next;
  };
  return { clock, site, assignment, reserve, reserveAll };
}

describe('a new site', () => {
  it('gets two connections, and twice as many with each answer', () => {
    const { site, reserveAll } = createTestSite({ isNew: true });
    const counts: number[] = [];
    for (let open = reserveAll(); counts.length < 4; open = reserveAll()) {
      counts.push(open.length);
      for (const reservation of open) site.release(reservation);
      site.answered(open[0] ?? expect.fail('no session'), true);
    }
    expect(counts).toEqual([2, 4, 8, 10]);
  });

  it('is suspended when both sessions fail', () => {
    const { site, reserveAll } = createTestSite({ isNew: true });
    const waits = reserveAll().map((reservation) => {
      site.release(reservation);
      return site.unreachable(reservation);
    });
    expect(waits).toEqual([0, 5 * SECOND]);
  });

  it('reads few messages ahead until it has answered', () => {
    const { site, reserve } = createTestSite({ messages: 10, isNew: true });
    expect(site.hasAnswered()).toBe(false);
    expect(site.lookahead()).toBe(4);
    site.answered(reserve().reservation, true);
    expect(site.hasAnswered()).toBe(true);
    expect(site.lookahead()).toBe(60);
  });
});

describe('a site whose hosts cannot be reached', () => {
  it('is suspended once for all sessions that were in progress', () => {
    const { clock, site, reserveAll } = createTestSite();
    const reservations = reserveAll();
    expect(reservations).toHaveLength(10);
    const waits = reservations.map((reservation) => {
      site.release(reservation);
      return site.unreachable(reservation);
    });
    expect(waits.filter((ms) => ms > 0)).toEqual([5 * SECOND]);
    expect(site.suspendedMs()).toBe(5 * SECOND);
    expect(site.capacity(0)).toBe(0);
    clock.advance(5 * SECOND);
    expect(site.isSuspended()).toBe(false);
  });

  it('is probed with one connection at any time on request, and suspended for longer when that fails', () => {
    const { site, reserveAll } = createTestSite();
    for (const reservation of reserveAll()) {
      site.release(reservation);
      site.unreachable(reservation);
    }
    site.probeNow();
    expect(site.suspendedMs()).toBe(0);
    const [probe, ...others] = reserveAll();
    if (probe === undefined) throw new Error('the site is not probed');
    expect(others).toEqual([]);
    site.release(probe);
    expect(site.unreachable(probe)).toBe(10 * SECOND);
    expect(site.memory().suspension).toMatchObject({ suspensions: 2 });
  });

  it('does not count sessions of the outage that end after the suspension', () => {
    const { clock, site, reserveAll } = createTestSite();
    const [first, second, ...late] = reserveAll();
    for (const reservation of [first, second]) if (reservation) site.unreachable(reservation);
    clock.advance(6 * SECOND);
    expect(late.map(site.unreachable)).toEqual(late.map(() => 0));
    expect(site.isSuspended()).toBe(false);
  });

  it('is probed with one connection and then gets twice as many with each answer', () => {
    const { clock, site, reserveAll } = createTestSite();
    for (const reservation of reserveAll()) {
      site.release(reservation);
      site.unreachable(reservation);
    }
    clock.advance(5 * SECOND);
    const counts: number[] = [];
    const allowed: number[] = [];
    for (let round = 0; round < 5; round++) {
      allowed.push(site.connections(0).allowed);
      const [probe, ...others] = reserveAll();
      counts.push(1 + others.length);
      for (const reservation of others) site.release(reservation);
      if (probe === undefined) throw new Error('no slot');
      site.release(probe);
      site.answered(probe, true);
    }
    expect(counts).toEqual([1, 2, 4, 8, 10]);
    expect(allowed).toEqual(counts);
  });

  it('is probed although sessions of the outage still hang', () => {
    const { clock, site, reserveAll } = createTestSite();
    for (const reservation of reserveAll().slice(0, 2)) {
      site.release(reservation);
      site.unreachable(reservation);
    }
    clock.advance(5 * SECOND);
    expect(reserveAll()).toHaveLength(1);
  });

  it('waits twice as long after each failed probe, 30 minutes at most, and the first wait again after an answer', () => {
    const { clock, site, reserve, reserveAll } = createTestSite();
    for (const reservation of reserveAll().slice(0, 2)) {
      site.release(reservation);
      site.unreachable(reservation);
    }
    const probe = () => {
      const { reservation } = reserve();
      site.release(reservation);
      return reservation;
    };
    const waits: number[] = [];
    clock.advance(5 * SECOND);
    for (let n = 0; n < 10; n++) {
      const ms = site.unreachable(probe());
      waits.push(ms / SECOND);
      clock.advance(ms);
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
    site.answered(probe(), true);
    expect(site.unreachable(probe())).toBe(0);
    expect(site.unreachable(probe())).toBe(5 * SECOND);
  });

  it('is used again when a session of the outage is answered late', () => {
    const { site, reserveAll } = createTestSite();
    const [first, second, third] = reserveAll();
    if (!(first && second && third)) throw new Error('no slots');
    site.unreachable(first);
    site.unreachable(second);
    expect(site.isSuspended()).toBe(true);
    site.answered(third, true);
    expect(site.isSuspended()).toBe(false);
    for (const reservation of [first, second, third]) site.release(reservation);
    expect(reserveAll()).toHaveLength(1);
  });

  it('has all its slots again after any order of events', () => {
    const { clock, site, reserveAll, assignment } = createTestSite({ messages: 500 });
    for (let round = 0; round < 20; round++) {
      for (const [index, reservation] of reserveAll().entries()) {
        site.release(reservation);
        if ((index + round) % 3 === 0) site.answered(reservation, true);
        else site.unreachable(reservation);
      }
      clock.advance(31 * MINUTE);
    }
    site.drop();
    for (let n = 0; n < 5; n++) {
      for (let seq = 1; seq <= 20; seq++) site.add(assignment(seq));
      for (const reservation of reserveAll()) {
        site.release(reservation);
        site.answered(reservation, true);
      }
    }
    site.drop();
    for (let seq = 1; seq <= 20; seq++) site.add(assignment(seq));
    expect(new Set(reserveAll().map(({ slot }) => slot)).size).toBe(10);
  });
});

describe('a reservation', () => {
  it('is for transactional mail first', () => {
    const { site, assignment, reserve } = createTestSite({ messages: 0, connections: 2 });
    site.add(assignment(1, { priority: 1 }));
    site.add(assignment(2));
    const sent = [reserve(), reserve()].map((next) => next.assignment.message.seq);
    expect(sent).toEqual([2, 1]);
  });

  it('passes over a refused message to one of another account', () => {
    const { site, assignment } = createTestSite({ messages: 0 });
    site.add(assignment(1, { account_id: 'acct_big' }));
    site.add(assignment(2));
    const admits = ({ message }: Assignment) => message.account_id !== 'acct_big';
    expect(site.reserve(admits)).toMatchObject({ assignment: { message: { seq: 2 } } });
    expect(site.reserve(admits)).toBe('refused');
    expect(site.backlogSize(0)).toBe(1);
  });

  it('passes over a refused message to a smaller one of the same account, not to a larger one', () => {
    const { site, assignment } = createTestSite({ messages: 0 });
    for (const [seq, content_bytes] of [
      [1, 500_000],
      [2, 900_000],
      [3, 100],
    ] as const)
      site.add(assignment(seq, { content_bytes }));
    const asked: number[] = [];
    const next = site.reserve(({ message }) => {
      asked.push(message.seq);
      return message.content_bytes < 200;
    });
    expect(next).toMatchObject({ assignment: { message: { seq: 3 } } });
    expect(asked).toEqual([1, 3]);
  });

  it('passes over all messages of an account when a small one is refused', () => {
    const { site, assignment } = createTestSite({ messages: 0 });
    for (const [seq, content_bytes] of [
      [1, 900],
      [2, 100],
    ] as const)
      site.add(assignment(seq, { content_bytes }));
    const asked: number[] = [];
    const next = site.reserve(({ message }) => {
      asked.push(message.seq);
      return false;
    });
    expect(next).toBe('refused');
    expect(asked).toEqual([1]);
  });

  it('is not given without a free slot, and not without a message', () => {
    const { site, reserveAll } = createTestSite({ messages: 11 });
    reserveAll();
    expect(site.hasFreeSlot(0)).toBe(false);
    expect(site.reserve(() => true)).toBe('full');
    expect(site.drop()).toHaveLength(1);
    expect(createTestSite({ messages: 0 }).site.reserve(() => true)).toBe('none');
  });

  it.each([
    [1, 1],
    [3, 3],
    [4, 3],
    [10, 9],
    [11, 9],
  ])('leaves of %i slots %i to marketing mail', (connections, forMarketing) => {
    const { site, assignment, reserveAll } = createTestSite({ connections, messages: 0 });
    for (let seq = 1; seq <= 20; seq++) site.add(assignment(seq, { priority: 1 }));
    expect(reserveAll()).toHaveLength(forMarketing);
    expect(site.reserve(() => true)).toBe('full');
    expect(site.hasFreeSlot(1)).toBe(false);
    for (let seq = 21; seq <= 40; seq++) site.add(assignment(seq));
    expect(reserveAll()).toHaveLength(connections - forMarketing);
  });

  it('is left by a transactional message to the next one before marketing mail gets another', () => {
    const { site, assignment, reserve, reserveAll } = createTestSite({ messages: 0 });
    for (let seq = 1; seq <= 20; seq++) site.add(assignment(seq, { priority: 1 }));
    const [first] = reserveAll();
    site.add(assignment(21));
    const { reservation } = reserve();
    site.release(first ?? expect.fail('no session'));
    expect(site.reserve(() => true)).toBe('full');
    site.release(reservation);
    expect(reserve().assignment.message.priority).toBe(1);
  });

  it('is refused to transactional mail by a budget although marketing mail could not use it', () => {
    const { site, assignment, reserveAll } = createTestSite({ messages: 0 });
    for (let seq = 1; seq <= 20; seq++) site.add(assignment(seq, { priority: 1 }));
    reserveAll();
    site.add(assignment(21));
    expect(site.reserve(() => false)).toBe('refused');
  });
});

describe('the lookahead', () => {
  it('is the number of messages that the site sent in a second', () => {
    const { clock, site, reserve } = createTestSite({ connections: 2 });
    expect(site.lookahead()).toBe(40);
    clock.advance(1000);
    expect(site.lookahead()).toBe(2);
    for (let n = 0; n < 6; n++) site.release(reserve().reservation);
    expect(site.lookahead()).toBe(6);
    clock.advance(1000);
    expect(site.lookahead()).toBe(6);
    clock.advance(5000);
    expect(site.lookahead()).toBe(2);
  });

  it('is at least one for each connection in use, and two', () => {
    const { clock, site, reserve } = createTestSite({ connections: 10 });
    clock.advance(5000);
    expect(site.lookahead()).toBe(2);
    const reservations = [reserve(), reserve(), reserve()];
    expect(site.lookahead()).toBe(5);
    for (let n = 0; n < 7; n++) reserve();
    expect(site.lookahead()).toBe(10);
    for (const { reservation } of reservations) site.release(reservation);
    expect(site.lookahead()).toBe(9);
  });
});

describe('the lookahead of marketing mail', () => {
  it('is what transactional mail leaves, and two messages', () => {
    const { site, assignment } = createTestSite({ messages: 0, connections: 2 });
    expect(site.capacity(1)).toBe(40);
    for (let seq = 1; seq <= 30; seq++) site.add(assignment(seq));
    expect(site.capacity(1)).toBe(10);
    for (let seq = 31; seq <= 45; seq++) site.add(assignment(seq));
    expect(site.capacity(1)).toBe(2);
    for (let seq = 46; seq <= 48; seq++) site.add(assignment(seq, { priority: 1 }));
    expect(site.capacity(1)).toBe(0);
    expect(site.capacity(1, 'acct_two')).toBe(1);
  });
});

describe('messages that are leased ahead', () => {
  /** Has sent two messages over its two connections. */
  function createFastSite() {
    const env = createTestSite({ messages: 2, connections: 2 });
    for (const reservation of env.reserveAll()) {
      env.site.release(reservation);
      env.site.answered(reservation, true);
    }
    const seqs = () => env.site.toLeaseAhead(() => true).map(({ message }) => message.seq);
    return { ...env, seqs };
  }

  it('are one for each connection, in the order of their turns, transactional ones first', () => {
    const { site, assignment, seqs } = createFastSite();
    site.add(assignment(3, { priority: 1 }));
    for (const seq of [4, 5]) site.add(assignment(seq));
    site.add(assignment(6, { account_id: 'acct_two' }));
    expect(seqs()).toEqual([4, 6]);
  });

  it('have no lease yet, and are admitted', () => {
    const { site, assignment, seqs } = createFastSite();
    const first = assignment(3);
    site.add(first);
    site.add(assignment(4));
    expect(site.toLeaseAhead(({ message }) => message.seq !== 4)).toEqual([first]);
    first.lease = Promise.resolve(true);
    expect(seqs()).toEqual([4]);
  });

  it('are none at a site that is not fast', () => {
    const { clock, site, assignment, seqs } = createFastSite();
    clock.advance(5000);
    site.add(assignment(3));
    expect(seqs()).toEqual([]);
  });
});

describe('messages that are dropped', () => {
  it('are those read more than ten seconds ago, and their keys wait again', () => {
    const { clock, site, assignment } = createTestSite({ messages: 2 });
    clock.advance(1000);
    site.add(assignment(3, { account_id: 'acct_two' }));
    clock.advance(8999);
    expect(site.dropOutdated()).toEqual([]);
    clock.advance(1);
    expect(site.dropOutdated().map(({ message }) => message.seq)).toEqual([1, 2]);
    expect(site.waitingKeys()).toEqual([{ priority: 0, account_id: 'acct_one', destination: 'one.test' }]);
    expect(site.backlogSize(0)).toBe(1);
  });

  it('are dropped after two seconds where they may be held back: large ones, and those of a limited account', () => {
    const { clock, site, assignment, reserve } = createTestSite({ messages: 0 });
    site.add(assignment(1, { account_id: 'acct_slow' }));
    site.senderThrottled(reserve().reservation, null);
    site.add(assignment(2, { account_id: 'acct_slow' }));
    site.add(assignment(3, { content_bytes: 100_000 }));
    site.add(assignment(4));
    clock.advance(2000);
    expect(site.dropOutdated().map(({ message }) => message.seq)).toEqual([2, 3]);
    expect(site.backlogSize(0)).toBe(1);
  });
});

describe('waiting keys', () => {
  const key = (n: number, priority: QueuePriority = 0, destination = 'one.test'): QueueKey => ({
    priority,
    account_id: `acct_${n}`,
    destination,
  });

  it('are taken in order, by priority', () => {
    const { site } = createTestSite({ messages: 0, connections: 1 });
    for (const waiting of [key(1), key(2, 1), key(3), key(4), key(1)]) site.addWaitingKey(waiting);
    expect(site.waitingCount()).toBe(4);
    // The lookahead is 20: two shares.
    expect(site.takeReadable(0)).toEqual([key(1), key(3)]);
    expect(site.takeReadable(0)).toEqual([key(4)]);
    expect(site.waitingKeys()).toEqual([key(2, 1)]);
  });

  it('are taken in turns of their accounts', () => {
    const { site } = createTestSite({ messages: 0, connections: 1 });
    for (const destination of ['a.test', 'b.test', 'c.test']) site.addWaitingKey(key(1, 0, destination));
    site.addWaitingKey(key(2));
    expect(site.takeReadable(0)).toEqual([key(1, 0, 'a.test'), key(2)]);
    expect(site.takeReadable(0)).toEqual([key(1, 0, 'b.test'), key(1, 0, 'c.test')]);
  });

  it('are not taken while more than half of the lookahead is in memory, except those of an account without a message', () => {
    const { site, assignment } = createTestSite({ messages: 0, connections: 1 });
    for (let seq = 1; seq <= 11; seq++) site.add(assignment(seq, { account_id: 'acct_1' }));
    site.addWaitingKey(key(1));
    site.addWaitingKey(key(2));
    expect(site.takeReadable(0)).toEqual([key(2)]);
    expect(site.takeReadable(0)).toEqual([]);
    site.reserve(() => true);
    expect(site.takeReadable(0)).toEqual([key(1)]);
  });

  it('are not taken while the site is halted', () => {
    const { clock, site, reserve } = createTestSite({ messages: 1 });
    site.throttled(reserve().reservation, 30_000);
    site.addWaitingKey(key(1));
    expect(site.takeReadable(0)).toEqual([]);
    clock.advance(30_000);
    expect(site.takeReadable(0)).toEqual([key(1)]);
  });

  it('are bounded in number', () => {
    const { site } = createTestSite();
    for (let n = 0; n < 10_100; n++) site.addWaitingKey(key(n));
    expect(site.waitingCount()).toBe(10_000);
  });

  it('are bounded in number at all sites together', () => {
    const index = createWaitingIndex(heldClock());
    const sites = Array.from({ length: 7 }, () => createWaitingKeys(index));
    for (const waiting of sites)
      for (let n = 0; n < 8000; n++) waiting.add(key(n, 0, `${sites.indexOf(waiting)}.test`));
    expect(sites.map((waiting) => waiting.count())).toEqual([8000, 8000, 8000, 8000, 8000, 8000, 2000]);
    sites[0]?.clear();
    expect(index.isFull()).toBe(false);
    expect(index.since('0 acct_1 0.test')).toBeNull();
    expect(index.since('0 acct_1 1.test')).not.toBeNull();
  });
});

describe('a site without mail', () => {
  it('is obsolete ten minutes after its last use', () => {
    const { clock, site, reserve } = createTestSite({ messages: 1 });
    clock.advance(11 * MINUTE);
    expect(site.isObsolete()).toBe(false);
    const { reservation } = reserve();
    expect(site.isObsolete()).toBe(false);
    site.release(reservation);
    clock.advance(10 * MINUTE);
    expect(site.isObsolete()).toBe(false);
    clock.advance(1);
    expect(site.isObsolete()).toBe(true);
    site.touch();
    expect(site.isObsolete()).toBe(false);
  });
});

describe('changed limits', () => {
  const limits = (connections: number) =>
    ({
      connections,
      messagesPerConnection: 1,
      perSecond: 0,
      idleMs: SECOND,
      tls: 'required',
      chunking: true,
      addressPauseMs: 0,
    }) as const;

  it('apply to the next sessions; those in progress end by themselves', () => {
    const { site, reserveAll } = createTestSite();
    const held = reserveAll();
    site.configure(limits(2));
    expect(site.profile()).toEqual(limits(2));
    for (const reservation of held.slice(0, 8)) site.release(reservation);
    // Two sessions are in progress, whatever their slots are.
    expect(reserveAll()).toHaveLength(0);
    for (const reservation of held.slice(8)) site.release(reservation);
    expect(
      reserveAll()
        .map(({ slot }) => slot)
        .toSorted((a, b) => a - b),
    ).toEqual([0, 1]);
  });

  it('add slots, each used once', () => {
    const { site, reserveAll } = createTestSite({ connections: 2 });
    const held = reserveAll();
    site.configure(limits(5));
    const slots = [...held, ...reserveAll()].map(({ slot }) => slot);
    expect(slots.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
  });
});
