import { describe, expect, it, vi } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createNewMessages, type TakenNew } from '../../src/delivery/new-messages.ts';
import type { RouteResult } from '../../src/delivery/routes.ts';
import { createRecentMessages } from '../../src/delivery/scheduling/dispatcher.ts';
import type { Obstacle } from '../../src/events/event-types.ts';
import { domainOf } from '../../src/mail/address.ts';
import { packContent, plainContent, unpackContent } from '../../src/mail/stored-content.ts';
import { type QueuePriority, toNewReady } from '../../src/store/messages/queue.ts';
import { messageIdOf, newMessage } from '../support/rows.ts';
import {
  createTestScheduling,
  recipientsOf,
  routeTo,
  type SchedulingOptions,
  users,
} from './scheduling/setup.ts';

const GENERATION = 7;
const PAUSE = {
  scope: 'account',
  target: 'acct_one',
  action: 'pause',
  reason: 'investigation',
  until: null,
  created_at: 0,
  created_by: 'postrider',
} as const;

/** New messages over a real queue; `obstacle` is asked before a message is leased. */
function startNewMessages(options: SchedulingOptions = {}, obstacle: () => Obstacle | null = () => null) {
  const scheduling = createTestScheduling(options);
  const { db, tables, clock, recorder, waits, targets, scheduler, recent } = scheduling;
  const newMessages = createNewMessages({
    clock,
    log: createLog({ level: 'silent', hashAddresses: true }),
    recorder,
    waits,
    targets,
    scheduler,
    recent,
    generation: GENERATION,
    sendingObstacle: obstacle,
  });
  let stored = 0;
  /** Stores a message as the acceptance does; delivery is not informed of the commit yet. */
  const store = (
    recipient: string,
    priority: QueuePriority = 0,
    content = packContent('{}'),
    contentBytes = 2,
  ): { seq: number; taken: TakenNew | null } =>
    db.transaction(() => {
      const now = clock.now();
      const row = newMessage(now, {
        message_id: messageIdOf(++stored + 500_000, now),
        recipient,
        content_id: tables.messages.insertContent(content, now),
        use_case: priority === 0 ? 'tx' : 'mk',
      });
      const { account_id, domain_id } = row;
      const queued = { priority, destination: domainOf(recipient), due_at: now };
      const message = toNewReady(row, { seq: 0, ...queued }, contentBytes);
      const taken = newMessages.take(tables, message, content);
      const seq = tables.messages.insert(row, taken?.lease?.at);
      message.seq = seq;
      const lease = taken?.lease?.generation ?? null;
      tables.queue.insert({ seq, ...queued, account_id, domain_id, ready: 1, lease, campaign_seq: null });
      taken?.stored(tables);
      return { seq, taken };
    })();
  const statusOf = (seq: number) => tables.messages.bySeq(seq)?.status;
  return { ...scheduling, store, statusOf };
}

describe('a new message', () => {
  it('is leased while it is stored, and sent after the commit', () => {
    const { store, statusOf, tables, started } = startNewMessages();
    const { seq, taken } = store('a@one.test');
    expect(tables.queue.get(seq)?.lease).toBe(GENERATION);
    expect(statusOf(seq)).toBe('sending');
    expect(started).toEqual([]);
    taken?.committed();
    expect(started).toMatchObject([
      { leased: true, assignment: { message: { seq, recipient: 'a@one.test' } } },
    ]);
  });

  it('equals what is read from the queue', () => {
    const { store, tables, started, finish } = startNewMessages({ connections: 1 });
    store('a@one.test').taken?.committed();
    const { seq, taken } = store('b@one.test');
    taken?.committed();
    const read = tables.queue.ready(seq);
    finish(1);
    expect(read).not.toBeNull();
    expect(started[0]?.assignment.message).toEqual(read);
  });

  it.each([
    ['short', packContent('{"a":1}')],
    ['deflated', packContent(JSON.stringify('text '.repeat(1000)))],
  ])('keeps a %s content as it would be read', (_, content) => {
    const { store, tables, started } = startNewMessages();
    const { seq, taken } = store('a@one.test', 0, content);
    taken?.committed();
    const given = started[0]?.assignment.content;
    const stored =
      tables.messages.content(tables.messages.bySeq(seq)?.content_id ?? 0) ?? expect.fail('no content');
    expect(stored.shared_id).toBeNull();
    expect(given).toEqual({ encoding: 'text', text: unpackContent(stored), size: stored.size });
  });

  it('keeps a short part next to a shared content while it waits for a connection', () => {
    const { store, tables, clock, started, finish } = startNewMessages({ connections: 1 });
    const key = { campaignSeq: 1, digest: Buffer.alloc(32) };
    const sharedId = tables.sharedContents.findOrInsert(key, plainContent('{}'), clock.now());
    const keptOf = (text: string) => {
      store('a@one.test').taken?.committed();
      store('b@one.test', 0, { ...plainContent(text), sharedId }).taken?.committed();
      finish(1);
      const kept = started[0]?.assignment.content;
      finish(1);
      return kept;
    };
    expect(keptOf('{"values":[]}')).toEqual({ encoding: 'text', text: '{"values":[]}', size: 13, sharedId });
    expect(keptOf(JSON.stringify('x'.repeat(1024)))).toBeUndefined();
  });

  it('keeps no large content, and no complete one of a message that waits for a connection', () => {
    const { store, started, finish } = startNewMessages({ connections: 1 });
    store('a@one.test', 0, plainContent(JSON.stringify('x'.repeat(65_536)))).taken?.committed();
    expect(started[0]?.assignment.content).toBeUndefined();
    store('b@one.test').taken?.committed();
    finish(1);
    expect(started[0]?.assignment.content).toBeUndefined();
  });

  it('leaves no trace when it is not stored', () => {
    const { store, started, onlySite, claims } = startNewMessages({ connections: 1 });
    store('a@one.test').taken?.rolledBack();
    const next = store('b@one.test').taken;
    expect(next?.lease?.generation).toBe(GENERATION);
    const behind = store('c@one.test').taken;
    behind?.rolledBack();
    expect(claims.count()).toBe(0);
    next?.committed();
    expect(recipientsOf(started)).toEqual(['b@one.test']);
    expect(onlySite().backlogSize(0)).toBe(0);
  });

  it('is leased only where a connection is free for it', () => {
    const { store } = startNewMessages({ connections: 2 });
    const leases = users(4).map((user) => store(user).taken?.lease?.generation ?? null);
    expect(leases).toEqual([GENERATION, GENERATION, null, null]);
  });

  it('waits in memory behind those that have the connections, and is sent without being read', () => {
    const { store, tables, announce, started, finish, statusOf } = startNewMessages({ connections: 1 });
    store('a@one.test').taken?.committed();
    const { seq, taken } = store('b@one.test');
    expect(taken?.lease).toBeNull();
    expect(statusOf(seq)).toBe('queued');
    // A reader that finds the row before the commit is announced passes over it.
    announce();
    taken?.committed();
    expect(tables.queue.get(seq)?.lease).toBeNull();
    finish(1);
    expect(recipientsOf(started)).toEqual(['b@one.test']);
    finish(1);
    expect(started).toEqual([]);
  });

  it('is left in the queue when more wait than are read ahead', () => {
    const { store } = startNewMessages({ connections: 1 });
    const places = users(100).map((user) => store(user).taken?.isQueued === false);
    expect(places.indexOf(false)).toBeGreaterThan(1);
    expect(places.lastIndexOf(true)).toBeLessThan(places.indexOf(false));
  });

  it('does not overtake mail of its key that is about to be read', () => {
    const { store, put, scheduler, runTasks, started } = startNewMessages();
    put(['old@one.test']);
    scheduler.request({ priority: 0, account_id: 'acct_one', destination: 'one.test' });
    expect(store('new@one.test').taken?.isQueued).toBe(true);
    runTasks();
    expect(recipientsOf(started)).toEqual(['old@one.test', 'new@one.test']);
  });

  it.each<[string, () => Obstacle | null]>([
    [
      'is suppressed',
      () => ({
        kind: 'email_suppressed',
        fields: { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'hard_bounce' },
      }),
    ],
    ['is held', () => ({ kind: 'hold' })],
  ])('waits in the queue when it %s', (_, obstacle) => {
    const { store, statusOf, onlySite } = startNewMessages({}, obstacle);
    const { seq, taken } = store('a@one.test');
    expect(taken).toMatchObject({ lease: null, isQueued: true });
    expect(statusOf(seq)).toBe('queued');
    expect(onlySite().connections().used).toBe(0);
  });

  it('is accepted although its obstacles cannot be read, and holds no place', () => {
    let isDamaged = true;
    const { store } = startNewMessages({ connections: 1 }, () => {
      if (isDamaged) throw new Error('database disk image is malformed');
      return null;
    });
    expect(store('a@one.test').taken).toBeNull();
    isDamaged = false;
    expect(store('b@one.test').taken?.lease?.generation).toBe(GENERATION);
  });

  it('waits in the queue while its destination is looked up', () => {
    const { store, lookups } = startNewMessages({ routeOf: () => null });
    expect(store('a@one.test').taken?.isQueued).toBe(true);
    expect(lookups).toEqual([]);
  });

  it('goes back to the queue when its account is paused before the commit', () => {
    const { store, controls, started, returned, tables } = startNewMessages();
    const { seq, taken } = store('a@one.test');
    controls.push(PAUSE);
    taken?.committed();
    expect(started).toEqual([]);
    expect(returned).toEqual([seq]);
    expect(tables.queue.get(seq)?.lease).toBeNull();
    expect(store('b@one.test').taken?.isQueued).toBe(true);
  });

  it('goes back to the queue when delivery stops before the commit', () => {
    const { store, scheduler, started, returned, claims } = startNewMessages({ connections: 1 });
    const first = store('a@one.test');
    const second = store('b@one.test');
    scheduler.stop();
    first.taken?.committed();
    second.taken?.committed();
    expect(started).toEqual([]);
    expect(returned).toEqual([first.seq]);
    expect(claims.count()).toBe(0);
  });
});

describe('a new message behind others at a fast site', () => {
  /** The site has answered to four messages within a second over its two connections, which are in use. */
  async function startFast(obstacle: () => Obstacle | null = () => null) {
    const env = startNewMessages({ connections: 2 }, obstacle);
    const sent = users(6).map((user) => env.store(user));
    for (const { taken } of sent) taken?.committed();
    for (let n = 0; n < 4; n++) {
      const [first] = env.started;
      first?.reservation.site.answered(first.reservation, true);
      env.finish(1);
      await env.settle();
    }
    expect(env.started).toHaveLength(2);
    // Those of the next messages are leased ahead.
    for (const user of users(2, 'next')) env.store(user).taken?.committed();
    return env;
  }
  it('is leased when it is accepted, waits for its turn, and is then sent', async () => {
    const { store, tables, statusOf, claims, onlySite, started, finish, settle } = await startFast();
    const behind = users(2, 'behind').map((user) => store(user));
    for (const { seq, taken } of behind) {
      taken?.committed();
      expect(tables.queue.get(seq)?.lease).toBe(GENERATION);
      expect(statusOf(seq)).toBe('sending');
    }
    expect([claims.count(), onlySite().backlogSize(0)]).toEqual([0, 2]);
    finish(2);
    await settle();
    expect(recipientsOf(started)).toEqual(['next0@one.test', 'next1@one.test']);
    finish(2);
    expect(recipientsOf(started)).toEqual(['behind0@one.test', 'behind1@one.test']);
    expect(started.every(({ leased }) => leased)).toBe(true);
  });

  it('has no lease when it is marketing mail, or so large that it may wait for the budget', async () => {
    const { store, tables } = await startFast();
    const leaseOf = ({ seq }: { seq: number }) => tables.queue.get(seq)?.lease ?? null;
    expect(leaseOf(store('behind@one.test'))).toBe(GENERATION);
    expect(leaseOf(store('marketing@one.test', 1))).toBeNull();
    expect(leaseOf(store('large@one.test', 0, packContent('{}'), 1_000_000))).toBeNull();
  });

  it('goes back to the queue when its site asks for less mail', async () => {
    const { store, tables, onlySite, scheduler, started, returned } = await startFast();
    const { seq, taken } = store('behind@one.test');
    taken?.committed();
    const [first] = started;
    if (first !== undefined) onlySite().throttled(first.reservation, 60_000);
    scheduler.advance(onlySite());
    expect(returned).toContain(seq);
    expect(tables.queue.get(seq)?.lease).toBeNull();
  });

  it('goes back to the queue when its account is paused before its commit or later', async () => {
    const { store, controls, returned, scheduler, started, claims } = await startFast();
    const later = store('later@one.test');
    later.taken?.committed();
    const before = store('before@one.test');
    controls.push(PAUSE);
    before.taken?.committed();
    expect(returned).toEqual([before.seq]);
    scheduler.readAgain();
    expect(returned).toContain(later.seq);
    expect([started.length, claims.count()]).toEqual([2, 0]);
  });

  it('leaves no trace when it is not stored, or may not be sent', async () => {
    let found: Obstacle | null = null;
    const { store, onlySite, claims, statusOf } = await startFast(() => found);
    store('behind@one.test').taken?.rolledBack();
    found = { kind: 'hold' };
    const held = store('held@one.test');
    expect(held.taken?.isQueued).toBe(true);
    expect(statusOf(held.seq)).toBe('queued');
    expect([claims.count(), onlySite().backlogSize(0)]).toEqual([0, 0]);
  });
});

describe('a new message that waits in the queue', () => {
  /** Its route is not known yet. The function lets it become known, and the queue be read. */
  function startWithLookup() {
    let route: RouteResult | null = null;
    const env = startNewMessages({ routeOf: () => route });
    const read = vi.spyOn(env.tables.queue, 'ready');
    const lookUp = () => {
      route = routeTo('one.test');
      env.announce();
    };
    return { ...env, read, lookUp };
  }
  const content = { ...plainContent('{"values":[]}'), sharedId: 1 };

  it('is not read when its turn comes, and has its small content', () => {
    const { store, started, lookUp, read, recent } = startWithLookup();
    const { seq, taken } = store('a@one.test', 0, content);
    taken?.committed();
    lookUp();
    expect(started).toMatchObject([{ assignment: { message: { seq }, content: { text: '{"values":[]}' } } }]);
    expect(read).not.toHaveBeenCalled();
    expect(recent.get(seq)).toBeUndefined();
  });

  it('equals what is read from the queue', () => {
    const { store, tables, recent } = startWithLookup();
    const { seq, taken } = store('a@one.test');
    taken?.committed();
    expect(recent.get(seq)?.message).toEqual(tables.queue.ready(seq));
  });

  it('is read without its content if that is complete: it may have other recipients', () => {
    const { store, started, lookUp } = startWithLookup();
    store('a@one.test').taken?.committed();
    lookUp();
    expect(started[0]?.assignment.content).toBeUndefined();
  });

  it('is read when it was not committed here, after ten seconds, and when everything is read again', () => {
    const { store, recent, clock, scheduler } = startWithLookup();
    const [one, two, three] = users(3).map((user) => store(user));
    one?.taken?.rolledBack();
    expect(recent.get(one?.seq ?? 0)).toBeUndefined();
    two?.taken?.committed();
    clock.advance(10_000);
    expect(recent.get(two?.seq ?? 0)).toBeDefined();
    clock.advance(1);
    expect(recent.get(two?.seq ?? 0)).toBeUndefined();
    three?.taken?.committed();
    scheduler.readAgain();
    expect(recent.get(three?.seq ?? 0)).toBeUndefined();
  });

  it('is passed over when it was held or removed meanwhile', () => {
    const { store, started, lookUp, tables, clock } = startWithLookup();
    const [held, removed, kept] = users(3).map((user) => store(user));
    for (const one of [held, removed, kept]) one?.taken?.committed();
    tables.queue.hold(held?.seq ?? 0, clock.now() + 1000);
    tables.queue.remove(removed?.seq ?? 0);
    lookUp();
    expect(started.map(({ assignment }) => assignment.message.seq)).toEqual([kept?.seq]);
  });

  it('is forgotten when it is not recent any more', () => {
    const { store, recent, clock } = startWithLookup();
    const { seq, taken } = store('a@one.test');
    taken?.committed();
    clock.advance(10_001);
    const later = store('b@one.test');
    later.taken?.committed();
    recent.sweep();
    clock.advance(-10_001);
    expect([recent.get(seq), recent.get(later.seq)?.message.seq]).toEqual([undefined, later.seq]);
  });

  it('is one of the last 4,000', () => {
    const clock = { now: () => 0 };
    const recent = createRecentMessages(clock);
    const { tables, store } = startWithLookup();
    const { seq } = store('a@one.test');
    const message = tables.queue.ready(seq) ?? expect.fail('no message');
    for (let n = 1; n <= 4001; n++) recent.add({ ...message, seq: n }, undefined);
    expect([1, 2, 4001].map((n) => recent.get(n)?.message.seq)).toEqual([undefined, 2, 4001]);
  });
});
