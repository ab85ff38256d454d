import { describe, expect, it } from 'vitest';
import { addPerson } from '../../src/audience/people.ts';
import { MINUTE } from '../../src/core/clock.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { presentEvent } from '../../src/events/feed.ts';
import { createRecorder } from '../../src/events/record.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { SuppressionFilter } from '../../src/store/suppressions.ts';
import {
  createSuppressionList,
  type SuppressionInput,
  type SuppressionTarget,
} from '../../src/suppression/list.ts';
import { suppressedFor } from '../../src/suppression/suppression.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue, insertAccount, startStore } from '../support/store.ts';

const ADA = 'ada@example.net';
const HASH = emailIdentifier(ADA);

function start() {
  const store = startStore();
  const { tables, clock, ids } = store;
  insertAccount(tables, 'acct_two', clock.now());
  const changed: string[] = [];
  const onSuppressionChange = (_: unknown, accountId: string, hash: string) => {
    changed.push(`${accountId} ${hash}`);
  };
  const recorder = createRecorder({ clock, ids }, { onSuppressionChange });
  const list = createSuppressionList(store, { ...store, recorder, onSuppressionChange });
  const add = (email: string, input: Partial<SuppressionInput> = {}, accountId = 'acct_one') =>
    list.add(accountId, { email, reason: 'manual', stream: 'all', ...input }, 'key_1');
  const remove = async (target: SuppressionTarget, accountId = 'acct_one') => {
    const removed = await list.remove(accountId, target, { by: 'key_1', note: null });
    return isRefusal(removed) ? removed.code : removed.map(({ stream, reason }) => `${stream} ${reason}`);
  };
  const listed = async (filter: Partial<SuppressionFilter> = {}) => {
    const { rows } = await list.list({ accountId: 'acct_one', beforeSeq: null, limit: 50, ...filter });
    return rows.map(({ email, stream, reason }) => `${email} ${stream} ${reason}`);
  };
  const events = () =>
    tables.events
      .feed({ accountId: 'acct_one', afterSeq: 0, limit: 200 })
      .rows.map((row) => presentEvent(row));
  return { ...store, recorder, list, changed, add, remove, listed, events };
}

function granted<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.code} ${value.message}`);
  return value;
}

const TX = { useCase: 'tx', essential: false } as const;

describe('a suppression', () => {
  it('applies immediately, and to its account only', async () => {
    const { add, tables, clock } = start();
    const { row, created } = granted(await add('Ada <Ada@Example.net>'));
    expect(created).toBe(true);
    expect(row).toMatchObject({ recipient_hash: HASH, email: 'Ada@example.net', created_at: clock.now() });
    expect(suppressedFor(tables, 'acct_one', HASH, TX)?.code).toBe('RECIPIENT_SUPPRESSED');
    expect(suppressedFor(tables, 'acct_two', HASH, TX)).toBeNull();
  });

  it('is created once', async () => {
    const { add, clock, changed, listed } = start();
    const first = granted(await add(ADA));
    clock.advance(MINUTE);
    expect(granted(await add('ADA@example.NET'))).toEqual({ ...first, created: false });
    expect(await listed()).toEqual([`${ADA} all manual`]);
    expect(changed).toEqual([`acct_one ${HASH}`]);
  });

  it('coexists with those of other streams and reasons', async () => {
    const { add, listed } = start();
    await add(ADA);
    await add(ADA, { stream: 'mk' });
    await add(ADA, { reason: 'complaint' });
    expect(await listed()).toEqual([`${ADA} all complaint`, `${ADA} mk manual`, `${ADA} all manual`]);
  });

  it.each(['nobody', 'a@b', 'a@example.net, b@example.net', ''])(
    'is refused without a valid address: "%s"',
    async (email) => {
      const { add, listed } = start();
      expect(await add(email)).toMatchObject({
        code: 'VALIDATION_ERROR',
        extras: { details: [{ field: 'email' }] },
      });
      expect(await listed()).toEqual([]);
    },
  );

  it('for an opt-out is recorded as an event once', async () => {
    const { add, events } = start();
    await add(ADA, { reason: 'unsubscribe', stream: 'mk' });
    await add(ADA, { reason: 'unsubscribe', stream: 'mk' });
    await add(ADA);
    expect(events()).toEqual([
      expect.objectContaining({
        event: 'email_unsubscribed',
        method: 'api',
        stream: 'mk',
        recipient: ADA,
        contactIdentifier: HASH,
      }),
    ]);
  });
});

describe('an opt-out in the list', () => {
  const withContact = async () => {
    const test = start();
    const { writer, ids, clock } = test;
    const provenance = { by: 'key_2', ipAddress: null, userAgent: null, at: clock.now() };
    const person = { accountId: 'acct_one', source: 'api', defaultMethod: 'web_form' } as const;
    const seq = await writer.run((tx) =>
      addPerson(tx, ids, { email: ADA }, { ...person, provenance, mayAdd: () => null }),
    );
    return { ...test, history: () => test.tables.consents.history(granted(seq), null, 10) };
  };

  it.each(['mk', 'all'] as const)('is recorded with the consent once: stream %s', async (stream) => {
    const { add, history } = await withContact();
    await add(ADA, { reason: 'unsubscribe', stream });
    await add(ADA, { reason: 'unsubscribe', stream });
    expect(history()).toMatchObject([
      { action: 'withdrawn', method: 'api', ip_address: null, user_agent: null, recorded_by: 'key_1' },
      { action: 'given' },
    ]);
  });

  it.each([
    { reason: 'unsubscribe', stream: 'tx' },
    { reason: 'manual', stream: 'all' },
    { reason: 'complaint', stream: 'mk' },
  ] as const)('is not recorded with the consent: $reason of $stream', async (input) => {
    const { add, history } = await withContact();
    await add(ADA, input);
    expect(history()).toMatchObject([{ action: 'given' }]);
  });
});

describe('removing suppressions', () => {
  it.each<[string, Partial<SuppressionTarget>, string[] | string, number]>([
    ['all of an address', {}, ['all hard_bounce', 'mk unsubscribe', 'mk manual'], 0],
    ['one stream', { stream: 'mk' }, ['mk unsubscribe', 'mk manual'], 1],
    ['one reason', { reason: 'hard_bounce' }, ['all hard_bounce'], 2],
    ['one stream and reason', { stream: 'mk', reason: 'manual' }, ['mk manual'], 2],
    ['a stream without suppressions', { stream: 'tx' }, 'NOT_FOUND', 3],
  ])('%s', async (_, target, expected, left) => {
    const { add, remove, listed } = start();
    await add(ADA, { reason: 'hard_bounce' });
    await add(ADA, { reason: 'unsubscribe', stream: 'mk' });
    await add(ADA, { stream: 'mk' });
    expect(await remove({ email: ADA, ...target })).toEqual(expected);
    expect(await listed()).toHaveLength(left);
  });

  it('accepts the identifier of an erased person, and affects no other account', async () => {
    const { add, remove, db, listed } = start();
    await add(ADA);
    await add(ADA, {}, 'acct_two');
    db.prepare('UPDATE suppressions SET email = NULL').run();
    expect(await remove({ email: HASH })).toEqual(['all manual']);
    expect(await remove({ email: HASH })).toBe('NOT_FOUND');
    expect(await listed({ accountId: 'acct_two' })).toEqual(['null all manual']);
  });

  it('resets the counted bounces', async () => {
    const { add, remove, tables, clock } = start();
    tables.suppressions.addStrike('acct_one', HASH, 'soft', clock.now());
    await add(ADA, { reason: 'soft_bounces' });
    await remove({ email: ADA });
    expect(tables.suppressions.strikesSince('acct_one', HASH, 'soft', 0)).toEqual([]);
  });
});

describe('onSuppressionChange', () => {
  it('is called after a manual change, not when nothing changed', async () => {
    const { add, remove, changed } = start();
    await remove({ email: ADA });
    await add(ADA);
    await remove({ email: ADA });
    await remove({ email: ADA });
    expect(changed).toEqual([`acct_one ${HASH}`, `acct_one ${HASH}`]);
  });

  it('is called after a bounce', async () => {
    const { tables, writer, recorder, clock, changed } = start();
    const { seq } = enqueue(tables, clock.now(), { recipient: ADA });
    await writer.run((tx) => {
      for (const kind of ['email_sent', 'email_bounced'] as const) {
        const message = tx.messages.bySeq(seq);
        if (message === null) throw new Error('the message is gone');
        recorder.message(tx, message, exampleEvent(kind));
      }
    });
    expect(changed).toEqual([`acct_one ${HASH}`]);
  });
});

describe('the list', () => {
  it('is filtered and paged, newest first', async () => {
    const { add, list, listed } = start();
    await add('a@example.net');
    await add('b@example.net', { stream: 'tx' });
    await add('c@example.net', { reason: 'complaint' });
    await add('d@example.net', {}, 'acct_two');
    expect(await listed({ stream: 'tx' })).toEqual(['b@example.net tx manual']);
    expect(await listed({ reason: 'complaint' })).toEqual(['c@example.net all complaint']);
    expect(await listed({ recipientHash: emailIdentifier('a@example.net') })).toEqual([
      'a@example.net all manual',
    ]);
    const first = await list.list({ accountId: 'acct_one', beforeSeq: null, limit: 2 });
    expect(first.rows.map(({ email }) => email)).toEqual(['c@example.net', 'b@example.net']);
    expect(first.more).toBe(true);
    expect(await listed({ beforeSeq: first.rows[1]?.seq ?? 0 })).toEqual(['a@example.net all manual']);
  });
});
