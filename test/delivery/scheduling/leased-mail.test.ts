import { describe, expect, it, vi } from 'vitest';
import type { RouteResult } from '../../../src/delivery/routes.ts';
import { domainOf } from '../../../src/mail/address.ts';
import {
  type PackedContent,
  packContent,
  plainContent,
  readContent,
} from '../../../src/mail/stored-content.ts';
import { type Lease, type QueuePriority, toNewReady } from '../../../src/store/messages/queue.ts';
import { messageIdOf, newMessage } from '../../support/rows.ts';
import {
  createTestScheduling,
  GENERATION,
  recipientsOf,
  routeTo,
  type SchedulingOptions,
  unreadable,
  users,
} from './setup.ts';

const PAUSE = {
  scope: 'account',
  target: 'acct_one',
  action: 'pause',
  reason: 'investigation',
  until: null,
  created_at: 0,
  created_by: 'postrider',
} as const;

interface Stored {
  seq: number;
  lease: Lease | null;
  /** Informs delivery of the commit. */
  accept(): void;
}

/** New messages over a real queue, which are stored as the acceptance does. */
function startNewMessages(options: SchedulingOptions = {}) {
  const scheduling = createTestScheduling(options);
  const { db, tables, clock, dispatcher } = scheduling;
  let stored = 0;
  /** Asks for leases and stores the messages; delivery is not informed of the commit yet. */
  const storeAll = (
    recipients: readonly string[],
    priority: QueuePriority = 0,
    content = packContent('{}'),
    contentBytes = 2,
  ): Stored[] => {
    const use_case = priority === 0 ? 'tx' : 'mk';
    const leases = dispatcher.leaseNow(
      recipients.map((recipient) => ({
        account_id: 'acct_one',
        domain_id: 'domain_one',
        use_case,
        priority,
        destination: domainOf(recipient),
        content_bytes: contentBytes,
      })),
    );
    return recipients.map((recipient, index) => {
      const lease = leases[index] ?? null;
      return db.transaction((): Stored => {
        const now = clock.now();
        const row = newMessage(now, {
          message_id: messageIdOf(++stored + 500_000, now),
          recipient,
          content_id: tables.messages.insertContent(content, now),
          use_case,
        });
        const { account_id, domain_id } = row;
        const queued = { priority, destination: domainOf(recipient), due_at: now };
        const seq = tables.messages.insert(row, lease?.at);
        tables.queue.insert({
          seq,
          ...queued,
          account_id,
          domain_id,
          ready: 1,
          lease: lease?.generation ?? null,
          campaign_seq: null,
          scheduled_at: null,
        });
        const message = toNewReady(row, { seq, ...queued }, contentBytes);
        return { seq, lease, accept: () => dispatcher.accepted([{ message, content }]) };
      })();
    });
  };
  const store = (recipient: string, priority?: QueuePriority, content?: PackedContent, bytes?: number) =>
    storeAll([recipient], priority, content, bytes)[0] ?? expect.fail('nothing was stored');
  const statusOf = (seq: number) => tables.messages.bySeq(seq)?.status;
  return { ...scheduling, store, storeAll, statusOf };
}

describe('a new message', () => {
  it('is leased when it is stored, and sent after the commit', () => {
    const { store, statusOf, tables, started } = startNewMessages();
    const { seq, accept } = store('a@one.test');
    expect(tables.queue.get(seq)?.lease).toBe(GENERATION);
    expect(statusOf(seq)).toBe('sending');
    expect(started).toEqual([]);
    accept();
    expect(started).toMatchObject([
      { assignment: { lease: expect.any(Promise), message: { seq, recipient: 'a@one.test' } } },
    ]);
  });

  it.each([
    ['short', packContent('{"a":1}')],
    ['deflated', packContent(JSON.stringify('text '.repeat(1000)))],
  ])('keeps a %s content as it would be read', (_, content) => {
    const { store, tables, started } = startNewMessages();
    const { seq, accept } = store('a@one.test', 0, content);
    accept();
    const given = started[0]?.assignment.content;
    const stored =
      tables.messages.content(tables.messages.bySeq(seq)?.content_id ?? 0) ?? expect.fail('no content');
    expect(stored.shared_id).toBeNull();
    expect(given).toEqual({ encoding: 'text', text: JSON.stringify(readContent(stored)), size: stored.size });
  });

  it('keeps a short part next to a shared content while it waits for a connection', () => {
    const { storeAll, tables, clock, started, finish } = startNewMessages({ connections: 1 });
    const key = { campaignSeq: 1, digest: Buffer.alloc(32) };
    const sharedId = tables.sharedContents.findOrInsert(key, plainContent('{}'), clock.now());
    const keptOf = (text: string) => {
      const content = { ...plainContent(text), sharedId };
      // Stored by two requests at the same time.
      const both = [storeAll(['a@one.test'], 0, content), storeAll(['b@one.test'], 0, content)].flat();
      for (const { accept } of both) accept();
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
    const large = store('a@one.test', 0, plainContent(JSON.stringify('x'.repeat(65_536))));
    const behind = store('b@one.test');
    large.accept();
    expect(started[0]?.assignment.content).toBeUndefined();
    behind.accept();
    finish(1);
    expect(recipientsOf(started)).toEqual(['b@one.test']);
    expect(started[0]?.assignment.content).toBeUndefined();
  });

  it('leaves no trace when it is not stored', () => {
    const { dispatcher, onlySite, claims, store, started } = startNewMessages({ connections: 1 });
    const mail = {
      account_id: 'acct_one',
      domain_id: 'domain_one',
      use_case: 'tx',
      priority: 0,
      destination: 'one.test',
      content_bytes: 2,
    } as const;
    expect(dispatcher.leaseNow([mail])).toMatchObject([{ generation: GENERATION }]);
    expect([claims.count(), onlySite().backlogSize(0), onlySite().isUnused(-1)]).toEqual([0, 0, true]);
    store('b@one.test').accept();
    expect(recipientsOf(started)).toEqual(['b@one.test']);
  });

  it('is leased only where a connection is free for it, also among those of the same send', () => {
    const { store, storeAll } = startNewMessages({ connections: 2 });
    const leases = (stored: readonly Stored[]) => stored.map(({ lease }) => lease?.generation ?? null);
    expect(leases(storeAll(users(4)))).toEqual([GENERATION, GENERATION, null, null]);
    for (const user of users(2)) store(user).accept();
    expect(leases(storeAll(users(1)))).toEqual([null]);
  });

  it('is leased only where a connection is free for it among those that are stored at the same time', () => {
    const { store, clock } = startNewMessages({ connections: 1 });
    const [first, second] = users(2).map((user) => store(user));
    expect(first?.lease?.generation).toBe(GENERATION);
    expect(second?.lease).toBeNull();
    // The send of the first one failed.
    clock.advance(1001);
    expect(store('b@one.test').lease?.generation).toBe(GENERATION);
  });

  it('waits for a connection when others were stored more than a second before', () => {
    const { store, started, finish, onlySite, clock } = startNewMessages({ connections: 1 });
    const both = users(2).map((user) => {
      clock.advance(1001);
      return store(user);
    });
    for (const { accept } of both) accept();
    expect(recipientsOf(started)).toEqual(['a0@one.test']);
    expect(onlySite().backlogSize(0)).toBe(1);
    expect(store('b@one.test').lease).toBeNull();
    finish(1);
    expect(recipientsOf(started)).toEqual(['a1@one.test']);
    expect(started[0]?.assignment.lease).toBeDefined();
  });

  it('does not overtake mail of its key that is about to be read', () => {
    const { store, put, dispatcher, runTasks, started } = startNewMessages();
    put(['old@one.test']);
    dispatcher.request({ priority: 0, account_id: 'acct_one', destination: 'one.test' });
    expect(store('new@one.test').lease).toBeNull();
    runTasks();
    expect(recipientsOf(started)).toEqual(['old@one.test', 'new@one.test']);
  });

  it('waits in the queue when its site cannot be determined', () => {
    const { store, tables } = startNewMessages();
    vi.spyOn(tables.domains, 'byId').mockImplementation(unreadable);
    expect(store('a@one.test').lease).toBeNull();
    vi.mocked(tables.domains.byId).mockRestore();
    expect(store('b@one.test').lease?.generation).toBe(GENERATION);
  });

  it('waits in the queue while its destination is looked up', () => {
    const { store, lookups } = startNewMessages({ routeOf: () => null });
    expect(store('a@one.test').lease).toBeNull();
    expect(lookups).toEqual([]);
  });

  it('goes back to the queue when its account is paused before the commit', () => {
    const { store, controls, started, returned, tables } = startNewMessages();
    const { seq, accept } = store('a@one.test');
    controls.push(PAUSE);
    accept();
    expect(started).toEqual([]);
    expect(returned).toEqual([seq]);
    expect(tables.queue.get(seq)?.lease).toBeNull();
    expect(store('b@one.test').lease).toBeNull();
  });

  it('goes back to the queue when delivery stops before the commit', () => {
    const { store, dispatcher, started, returned } = startNewMessages();
    const { seq, accept } = store('a@one.test');
    dispatcher.stop();
    accept();
    expect(started).toEqual([]);
    expect(returned).toEqual([seq]);
  });

  it('goes back to the queue when its site cannot be read after the commit', () => {
    const { store, tables, started, returned } = startNewMessages();
    const { seq, accept } = store('a@one.test');
    vi.spyOn(tables.domains, 'byId').mockImplementation(unreadable);
    accept();
    expect([started, returned]).toEqual([[], [seq]]);
    vi.mocked(tables.domains.byId).mockRestore();
  });

  it('goes back to the queue when its route is no longer known after the commit', () => {
    let route: RouteResult | null = routeTo('one.test');
    const { store, started, returned } = startNewMessages({ routeOf: () => route });
    const { seq, accept } = store('a@one.test');
    route = null;
    accept();
    expect([started, returned]).toEqual([[], [seq]]);
  });
});

describe('a new message behind others at a fast site', () => {
  /** The site has answered to four messages within a second over its two connections, which are in use. */
  async function startFast() {
    const env = startNewMessages({ connections: 2 });
    for (const user of users(4)) {
      env.store(user).accept();
      const [first] = env.started;
      first?.reservation.site.answered(first.reservation, true);
      env.finish(1);
      await env.settle();
    }
    for (const user of [...users(2, 'busy'), ...users(2, 'next')]) env.store(user).accept();
    expect(recipientsOf(env.started)).toEqual(['busy0@one.test', 'busy1@one.test']);
    return env;
  }

  it('is leased when it is accepted, waits for its turn, and is then sent', async () => {
    const { store, tables, statusOf, claims, onlySite, started, finish, settle } = await startFast();
    for (const user of users(2, 'behind')) {
      const { seq, accept } = store(user);
      accept();
      expect(tables.queue.get(seq)?.lease).toBe(GENERATION);
      expect(statusOf(seq)).toBe('sending');
    }
    expect([claims.count(), onlySite().backlogSize(0)]).toEqual([0, 4]);
    finish(2);
    await settle();
    expect(recipientsOf(started)).toEqual(['next0@one.test', 'next1@one.test']);
    finish(2);
    expect(recipientsOf(started)).toEqual(['behind0@one.test', 'behind1@one.test']);
    expect(started.every(({ assignment }) => assignment.lease !== undefined)).toBe(true);
  });

  it('has no lease when it is marketing mail, or so large that it may wait for the budget', async () => {
    const { store, tables } = await startFast();
    const leaseOf = ({ seq }: { seq: number }) => tables.queue.get(seq)?.lease ?? null;
    expect(leaseOf(store('behind@one.test'))).toBe(GENERATION);
    expect(leaseOf(store('marketing@one.test', 1))).toBeNull();
    expect(leaseOf(store('large@one.test', 0, packContent('{}'), 1_000_000))).toBeNull();
  });

  it('has no lease when as many wait as are sent in a second', async () => {
    const { storeAll } = await startFast();
    const leases = storeAll(users(100)).map(({ lease }) => lease !== null);
    expect(leases.indexOf(false)).toBeGreaterThan(1);
    expect(leases.lastIndexOf(true)).toBeLessThan(leases.indexOf(false));
  });

  it('goes back to the queue when its site asks for less mail', async () => {
    const { store, tables, onlySite, runScan, started, returned, settle } = await startFast();
    const { seq, accept } = store('behind@one.test');
    accept();
    const [first] = started;
    if (first !== undefined) onlySite().throttled(first.reservation, 60_000);
    await runScan();
    await settle();
    expect(returned).toContain(seq);
    expect(tables.queue.get(seq)?.lease).toBeNull();
  });

  it('goes back to the queue when its account is paused before its commit or later', async () => {
    const { store, controls, returned, dispatcher, started, claims, settle } = await startFast();
    const later = store('later@one.test');
    later.accept();
    const before = store('before@one.test');
    controls.push(PAUSE);
    before.accept();
    expect(returned).toEqual([before.seq]);
    dispatcher.readAgain();
    await settle();
    expect(returned).toContain(later.seq);
    expect([started.length, claims.count()]).toEqual([2, 0]);
  });
});
