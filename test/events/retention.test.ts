import { statSync } from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createRetention, type PurgedKind } from '../../src/events/retention.ts';
import { packContent, plainContent } from '../../src/mail/stored-content.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { createTables } from '../../src/store/tables.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue, insertAccount, startStore } from '../support/store.ts';

const BODY_DAYS = 7;
const EVENT_DAYS = 90;

const CONFIG = { limits: { bodyDays: BODY_DAYS, eventDays: EVENT_DAYS, inboundDays: 30 } };
const LOG = createLog({ level: 'silent', hashAddresses: true });

function start(options: { mayShrink?: () => boolean } = {}) {
  const store = startStore();
  const { tables, writer, clock, recorder, ids } = store;
  const portions: [kind: PurgedKind, deleted: number][] = [];
  const retention = createRetention(
    { clock, log: LOG, tables, writer, config: CONFIG },
    { ...options, onPortion: (kind, deleted) => void portions.push([kind, deleted]) },
  );
  onTestFinished(() => retention.stop());
  const send = (columns: Partial<MessageRow> = {}) => writer.run((tx) => enqueue(tx, clock.now(), columns));
  const end = (seq: number) =>
    writer.run((tx) => {
      const message = tx.messages.bySeq(seq) ?? expect.unreachable();
      recorder.message(tx, message, exampleEvent('email_sent'));
      tx.messages.insertAttempt({
        message_seq: seq,
        attempt: 1,
        at: clock.now(),
        lane: 'primary',
        report: {},
      });
      recorder.message(tx, tx.messages.bySeq(seq) ?? expect.unreachable(), exampleEvent('email_delivered'));
    });
  const event = (at = clock.now()) =>
    tables.events.insert({
      event_id: ids.make('evt'),
      account_id: 'acct_one',
      kind: 'email_sent',
      at,
      message_seq: null,
      domain_id: null,
      data: '{}',
    });
  return {
    ...store,
    retention,
    portions,
    send,
    event,
    /** A message that is final. */
    sent: async (columns: Partial<MessageRow> = {}) => {
      const message = await send(columns);
      await end(message.seq);
      return message;
    },
    end,
    hasBody: (contentId: number) => tables.messages.content(contentId) !== null,
    hasEvent: (seq: number) => tables.events.bySeq(seq) !== null,
  };
}

describe('bodies', () => {
  it('are deleted when their message has been final for seven days', async () => {
    const { sent, hasBody, clock, retention } = start();
    const { content_id: body } = await sent();
    clock.advance(BODY_DAYS * DAY);
    await retention.run();
    expect(hasBody(body)).toBe(true);
    clock.advance(1);
    expect(await retention.run()).toMatchObject({ bodies: 1 });
    expect(hasBody(body)).toBe(false);
  });

  it('are kept while one of the messages that share them is not final or final too recently', async () => {
    const { send, end, hasBody, clock, retention, tables } = start();
    const content_id = tables.messages.insertContent(packContent('{}'), clock.now());
    const messages = [];
    for (let n = 0; n < 3; n++) messages.push(await send({ content_id, recipient: `p${n}@example.net` }));
    const [first, second, third] = messages.map(({ seq }) => seq);
    await end(second ?? 0);
    await end(third ?? 0);
    clock.advance(BODY_DAYS * DAY + 1);
    await retention.run();
    expect(hasBody(content_id)).toBe(true);
    await end(first ?? 0);
    clock.advance(BODY_DAYS * DAY);
    await retention.run();
    expect(hasBody(content_id)).toBe(true);
    clock.advance(1);
    await retention.run();
    expect(hasBody(content_id)).toBe(false);
  });

  it('of campaigns with many messages are examined in portions', async () => {
    const { hasBody, clock, retention, writer, tables, portions, recorder } = start();
    const content_id = tables.messages.insertContent(packContent('{}'), clock.now());
    const seqs = await writer.run((tx) =>
      Array.from(
        { length: 400 },
        (_, n) => enqueue(tx, clock.now(), { content_id, recipient: `p${n}@example.net` }).seq,
      ),
    );
    await writer.run((tx) => {
      for (const seq of seqs)
        recorder.message(
          tx,
          tx.messages.bySeq(seq) ?? expect.unreachable(),
          exampleEvent('email_failed', { reason: 'cancelled' }),
        );
    });
    clock.advance(BODY_DAYS * DAY + 1);
    await retention.run();
    expect(hasBody(content_id)).toBe(false);
    const examined = portions.filter(([kind]) => kind === 'bodies');
    // 1, 2, 4 … rows: at least nine portions on any machine.
    expect(examined.length).toBeGreaterThanOrEqual(9);
  });

  it('without a message are deleted by their age', async () => {
    const { hasBody, clock, retention, tables } = start();
    const old = tables.messages.insertContent(packContent('{}'), clock.now());
    clock.advance(BODY_DAYS * DAY + 1);
    const young = tables.messages.insertContent(packContent('{}'), clock.now());
    await retention.run();
    expect([hasBody(old), hasBody(young)]).toEqual([false, true]);
  });

  it('after one that is kept are deleted', async () => {
    const { send, sent, hasBody, clock, retention } = start();
    const { content_id: waiting } = await send();
    const { content_id: body } = await sent();
    clock.advance(BODY_DAYS * DAY + 1);
    await retention.run();
    expect([hasBody(waiting), hasBody(body)]).toEqual([true, false]);
  });
});

describe('messages', () => {
  it('are deleted ninety days after they were accepted, with their attempts and events, if they are final', async () => {
    const { send, sent, clock, retention, tables } = start();
    const old = await sent();
    const waiting = await send();
    clock.advance(EVENT_DAYS * DAY);
    await retention.run();
    expect(tables.messages.bySeq(old.seq)).not.toBeNull();
    clock.advance(1);
    const young = await sent();
    expect(await retention.run()).toMatchObject({ messages: 1, events: 2 });
    expect(tables.messages.bySeq(old.seq)).toBeNull();
    expect(tables.messages.attemptsOf(old.seq)).toEqual([]);
    expect(tables.events.ofMessage(old.seq)).toEqual([]);
    expect(tables.messages.bySeq(waiting.seq)).not.toBeNull();
    expect(tables.queue.get(waiting.seq)).not.toBeNull();
    expect(tables.messages.attemptsOf(young.seq)).toHaveLength(1);
  });
});

describe('events', () => {
  it('from before a clock was set back are not deleted', async () => {
    const { event, hasEvent, clock, retention } = start();
    const real = clock.now();
    const before = event();
    // The clock was set to 1970 for a moment.
    const wrong = event(1000);
    const after = event(real + 1);
    clock.advance(DAY);
    await retention.run();
    expect([before, wrong, after].map(hasEvent)).toEqual([true, true, true]);
    clock.advance(EVENT_DAYS * DAY);
    await retention.run();
    expect([before, wrong, after].map(hasEvent)).toEqual([false, false, false]);
  });

  it('with times in the future are kept and do not block others', async () => {
    const { event, hasEvent, clock, retention } = start();
    const wrong = event(clock.now() + 400 * DAY);
    const right = event();
    clock.advance(EVENT_DAYS * DAY + 1);
    const young = event();
    await retention.run();
    expect([wrong, right, young].map(hasEvent)).toEqual([true, false, true]);
  });
});

describe('everything else', () => {
  it('is deleted when it expires', async () => {
    const { clock, retention, tables } = start();
    const now = clock.now();
    const answer = {
      account_id: 'acct_one',
      endpoint: 'transactional/send',
      fingerprint: Buffer.alloc(32),
      status: 200,
      body: '{}',
    };
    tables.idempotency.insert({ ...answer, key: 'first', expires_at: now + EVENT_DAYS * DAY + 1 }, now);
    tables.idempotency.insert({ ...answer, key: 'second', expires_at: now + EVENT_DAYS * DAY + 2 }, now);
    tables.suppressions.addStrike('acct_one', 'email_1', 'soft', now);
    tables.suppressions.addStrike('acct_one', 'email_1', 'soft', now + 1);
    tables.delayNotices.add(1, Buffer.from('1'), now);
    tables.delayNotices.add(1, Buffer.from('2'), now + 1);
    const mail = {
      box: 'postmaster',
      kind: '',
      recipient: '',
      sender: '',
      remote_address: '',
      network: '',
    } as const;
    for (const received_at of [now, now + 1])
      tables.keptMail.insert({ ...mail, message_seq: null, raw: Buffer.from('x'), received_at });
    clock.advance(EVENT_DAYS * DAY + 1);
    expect(await retention.run()).toMatchObject({ strikes: 1, delayNotices: 1, keptMail: 1, answers: 1 });
    expect(tables.suppressions.strikesSince('acct_one', 'email_1', 'soft', 0)).toEqual([now + 1]);
    expect(tables.delayNotices.count(1)).toBe(1);
    expect(tables.keptMail.list(null, 10)).toHaveLength(1);
  });
});

describe('a revoked API key', () => {
  it('is deleted with its last use, a period after its revocation, and valid keys are not', async () => {
    const { clock, retention, tables, db } = start();
    const key = {
      account_id: 'acct_one',
      name: '',
      scopes: '["setup"]',
      allow_ips: '[]',
      allow_from: '[]',
      allow_essential: 1,
      strict_compliance: 0,
      simulates: 0,
      signing_secret: null,
      created_at: 1,
    } as const;
    const now = clock.now();
    const before = tables.apiKeys.count('acct_one');
    for (const [n, revoked_at] of [now, now + 1, null].entries()) {
      tables.apiKeys.insert({ ...key, key_id: `key_${n}`, hash: Buffer.from(`hash ${n}`), revoked_at });
      tables.apiKeys.use(`key_${n}`, 1);
    }
    expect(tables.apiKeys.byHash(Buffer.from('hash 0'))).not.toBeNull();
    clock.advance(EVENT_DAYS * DAY + 1);
    expect(await retention.run()).toMatchObject({ revokedKeys: 1 });
    expect(tables.apiKeys.byHash(Buffer.from('hash 0'))).toBeNull();
    expect(tables.apiKeys.count('acct_one')).toBe(before + 2);
    expect(
      db
        .prepare("SELECT key_id FROM api_key_uses WHERE key_id LIKE 'key\\__' ESCAPE '\\' ORDER BY 1")
        .pluck()
        .all(),
    ).toEqual(['key_1', 'key_2']);
  });
});

describe('what was noted for moves of accounts', () => {
  it('is deleted when its move has ended, or began two weeks ago and ends', async () => {
    const { tables, clock, db, retention } = start();
    const begin = (account_id: string) =>
      tables.accountMoves.begin({
        account_id,
        move_id: account_id,
        started_at: clock.now(),
        last_message: 1,
        last_content: 1,
      });
    const note = db.prepare("INSERT INTO account_changes VALUES (?, 'recipient', ?)");
    const noted = () =>
      db.prepare('SELECT DISTINCT account_id FROM account_changes ORDER BY account_id').pluck().all();
    for (const id of ['acct_a', 'acct_b', 'acct_c', 'acct_d']) {
      insertAccount(tables, id, 0);
      for (let n = 0; n < 40; n++) note.run(id, `${id} ${n}`);
    }
    begin('acct_b');
    clock.advance(1);
    begin('acct_d');
    clock.advance(14 * DAY);
    expect(await retention.run()).toMatchObject({ accountChanges: 120 });
    expect(tables.accountMoves.get('acct_b')).toBeNull();
    expect(noted()).toEqual(['acct_d']);
    expect(tables.accountMoves.get('acct_d')).not.toBeNull();
  });
});

describe('free pages', () => {
  /** Frees 8,000 pages and more of a file that consists of little else. */
  function freePages({ db, clock, tables }: ReturnType<typeof start>): void {
    tables.messages.insertContent(plainContent('x'.repeat(32 * 1024 * 1024)), clock.now());
    clock.advance(BODY_DAYS * DAY + 1);
    expect(tables.freeSpace.pages().total).toBeGreaterThan(8000);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  it('are released except for a reserve', async () => {
    const store = start();
    freePages(store);
    const before = store.tables.freeSpace.pages().total;
    const { bodies, freePages: released } = await store.retention.run();
    expect(bodies).toBe(1);
    const { total, free } = store.tables.freeSpace.pages();
    expect(total).toBe(before - released);
    expect(free).toBeLessThanOrEqual(4096);
    store.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    expect(statSync(store.db.name).size).toBe(total * 4096);
    expect((await store.retention.run()).freePages).toBe(0);
  });

  it('are not moved while erased data is being cleared', async () => {
    const store = start({ mayShrink: () => false });
    freePages(store);
    expect(await store.retention.run()).toMatchObject({ bodies: 1, freePages: 0 });
  });
});

describe('a pass', () => {
  it('that was interrupted between two portions is continued after a restart', async () => {
    const { dir, event, clock, portions, retention, tables, writer } = start();
    await writer.run(() => {
      for (let n = 0; n < 500; n++) event();
    });
    clock.advance(EVENT_DAYS * DAY + 1);
    const stopAfter = 4;
    const interrupted = createRetention(
      { clock, log: LOG, tables, writer, config: CONFIG },
      {
        onPortion: (kind, deleted) => {
          portions.push([kind, deleted]);
          if (portions.filter(([of]) => of === 'events').length === stopAfter) void interrupted.stop();
        },
      },
    );
    const { events: deleted } = await interrupted.run();
    expect(deleted).toBeGreaterThan(0);
    expect(deleted).toBeLessThan(500);
    // As another process sees it.
    const db = openDatabase(dir);
    const others = createWriter(db, createTables(db));
    onTestFinished(async () => {
      await others.close();
      db.close();
    });
    const next = createRetention({
      clock,
      log: LOG,
      tables: createTables(db),
      writer: others,
      config: CONFIG,
    });
    expect((await next.run()).events).toBe(500 - deleted);
    expect(await retention.run()).toMatchObject({ events: 0, messages: 0 });
  });

  it('deletes at most a thousand rows in a portion', async () => {
    const { event, clock, portions, retention, writer } = start();
    await writer.run(() => {
      for (let n = 0; n < 5000; n++) event();
    });
    clock.advance(EVENT_DAYS * DAY + 1);
    expect((await retention.run()).events).toBe(5000);
    expect(Math.max(...portions.map(([, deleted]) => deleted))).toBeLessThanOrEqual(1000);
  });

  it('checks the time after a few rows', async () => {
    const { event, clock, portions, retention, writer } = start();
    await writer.run(() => {
      for (let n = 0; n < 600; n++) event();
    });
    clock.advance(EVENT_DAYS * DAY + 1);
    // Each check of the time finds that 1 ms has passed.
    let now = 0;
    const ticking = vi.spyOn(performance, 'now').mockImplementation(() => ++now);
    try {
      await retention.run();
    } finally {
      ticking.mockRestore();
    }
    const sizes = portions.filter(([kind]) => kind === 'events').map(([, deleted]) => deleted);
    expect(sizes.reduce((sum, deleted) => sum + deleted, 0)).toBe(600);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32);
  });

  it('with nothing to delete is one portion for each kind', async () => {
    const { sent, portions, retention } = start();
    for (let n = 0; n < 20; n++) await sent();
    await retention.run();
    const kinds = portions.map(([kind]) => kind);
    expect(kinds).toHaveLength(new Set(kinds).size);
    expect(portions.every(([, deleted]) => deleted === 0)).toBe(true);
  });

  it('reports its progress and its end', async () => {
    const { event, clock, retention } = start();
    event();
    expect(retention.progress()).toEqual({ current: null, remaining: null, completedAt: null });
    clock.advance(EVENT_DAYS * DAY + 1);
    const pass = retention.run();
    await Promise.resolve();
    expect(retention.progress().current).toBe('bodies');
    await pass;
    expect(retention.progress()).toEqual({ current: null, remaining: null, completedAt: clock.now() });
  });
});
