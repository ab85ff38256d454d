import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import {
  type BounceEffect,
  DOMAIN_EVENT_TYPES,
  type EventFields,
  MESSAGE_EVENT_KINDS,
  MESSAGE_EVENT_TYPES,
  type MessageEvent,
  type MessageEventKind,
  nextState,
} from '../../src/events/event-types.ts';
import { presentEvent } from '../../src/events/feed.ts';
import { MESSAGE_STATUSES, type MessageRow } from '../../src/store/messages/messages.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue, startStore } from '../support/store.ts';

describe('event types', () => {
  it('have an example that is valid for the fields', () => {
    for (const type of [...Object.values(MESSAGE_EVENT_TYPES), ...Object.values(DOMAIN_EVENT_TYPES)])
      expect(type.fields.strict().parse(type.example)).toEqual(type.example);
  });

  it('lead to these states', () => {
    const table = Object.fromEntries(
      MESSAGE_STATUSES.map((status) => [status, transitionsFrom(status, MESSAGE_EVENT_KINDS)]),
    );
    const always = { email_opened: 'same', email_clicked: 'same', email_unsubscribed: 'same' };
    const dropped = { email_suppressed: 'failed, final', email_failed: 'failed, final' };
    expect(table).toEqual({
      queued: { email_sent: 'sending', ...dropped, ...always },
      deferred: { email_sent: 'sending', ...dropped, ...always },
      sending: {
        email_sent: 'same',
        email_delivered: 'delivered, final',
        email_delayed: 'deferred',
        email_bounced: 'bounced, final',
        email_rejected: 'bounced, final',
        email_complained: 'complained, final',
        ...dropped,
        ...always,
      },
      delivered: {
        email_bounced: 'bounced, final',
        email_rejected: 'bounced, final',
        email_complained: 'complained, final',
        ...always,
      },
      bounced: { email_complained: 'complained, final', ...always },
      failed: always,
      complained: always,
      cancelled: always,
    });
  });

  it('lead to these states when they are known from a report', () => {
    const reported = MESSAGE_EVENT_KINDS.filter((kind) => MESSAGE_EVENT_TYPES[kind].reported !== undefined);
    const table = Object.fromEntries(
      MESSAGE_STATUSES.map((status) => [status, transitionsFrom(status, reported, true)]),
    );
    const sent = {
      email_delivered: 'delivered, final',
      email_delayed: 'same',
      email_bounced: 'bounced, final',
      email_complained: 'complained, final',
    };
    const { email_delivered: _, ...delivered } = sent;
    expect(table).toEqual({
      queued: {},
      sending: sent,
      deferred: sent,
      delivered,
      bounced: { email_complained: 'complained, final' },
      failed: {},
      complained: {},
      cancelled: {},
    });
  });
});

function transitionsFrom(
  status: MessageRow['status'],
  kinds: readonly MessageEventKind[],
  reported = false,
): Record<string, string> {
  return Object.fromEntries(
    kinds.flatMap((kind) => {
      const next = nextState(status, kind, reported);
      if (next === null) return [];
      return [[kind, (next.status === status ? 'same' : next.status) + (next.final ? ', final' : '')]];
    }),
  );
}

type Store = ReturnType<typeof startStore>;

/** Records events of a new message; returns its seq. */
function recordEvents(
  { tables, writer, recorder, clock }: Store,
  events: (MessageEvent | MessageEventKind)[],
  columns: Partial<MessageRow> = {},
): Promise<number> {
  return writer.run((tx) => {
    const { seq } = enqueue(tx, clock.now(), columns);
    for (const event of events) {
      const message = tables.messages.bySeq(seq) ?? expect.unreachable();
      recorder.message(tx, message, typeof event === 'string' ? exampleEvent(event) : event);
    }
    return seq;
  });
}

describe('the recorder', () => {
  const kinds = (store: Store, seq: number) => store.tables.events.ofMessage(seq).map(({ kind }) => kind);

  it('changes the state, inserts the event and empties the queue together', async () => {
    const store = startStore();
    const { tables, clock } = store;
    const seq = await recordEvents(store, ['email_sent', 'email_delivered']);
    expect(tables.messages.bySeq(seq)).toMatchObject({
      status: 'delivered',
      sent_at: clock.now(),
      final_at: clock.now(),
    });
    expect(tables.queue.get(seq)).toBeNull();
    expect(kinds(store, seq)).toEqual(['email_sent', 'email_delivered']);
  });

  it('records email_sent once for each message', async () => {
    const store = startStore();
    const seq = await recordEvents(store, [
      'email_sent',
      'email_delayed',
      'email_sent',
      'email_sent',
      'email_delivered',
    ]);
    expect(kinds(store, seq)).toEqual(['email_sent', 'email_delayed', 'email_delivered']);
  });

  it('records a DSN that arrives twice once', async () => {
    const store = startStore();
    const seq = await recordEvents(store, [
      'email_sent',
      'email_delivered',
      'email_bounced',
      'email_bounced',
    ]);
    expect(kinds(store, seq)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
  });
});

describe('suppression after events', () => {
  const suppressions = (store: Store, seq: number) => {
    const message = store.tables.messages.bySeq(seq) ?? expect.unreachable();
    return store.tables.suppressions
      .of('acct_one', message.recipient_hash)
      .map(({ reason, stream }) => `${reason} ${stream}`);
  };
  const bounce = (
    bounceType: EventFields['email_bounced']['bounceType'],
    scope: BounceEffect['scope'],
    suppress: BounceEffect['suppress'],
  ): (MessageEvent | MessageEventKind)[] => [
    'email_sent',
    exampleEvent('email_bounced', { bounceType }, { scope, suppress }),
  ];

  it('follows a proven hard bounce of the recipient only', async () => {
    const results: Record<string, unknown> = {};
    for (const [bounceType, scope, suppress] of [
      ['hard', 'recipient', 'now'],
      ['hard', 'recipient', 'second-time'],
      ['block', 'sender', 'never'],
      ['hard', 'site', 'now'],
      ['soft', 'recipient', 'never'],
    ] as const) {
      const store = startStore();
      const seq = await recordEvents(store, bounce(bounceType, scope, suppress));
      const event = store.tables.events.ofMessage(seq).at(-1);
      const { suppressed }: { suppressed?: boolean } = JSON.parse(event?.data ?? '');
      results[`${bounceType} ${scope} ${suppress}`] = [suppressed, ...suppressions(store, seq)];
    }
    expect(results).toEqual({
      'hard recipient now': [true, 'hard_bounce all'],
      'hard recipient second-time': [false],
      'block sender never': [false],
      'hard site now': [false],
      'soft recipient never': [false],
    });
  });

  it('follows the second unproven bounce on another day, not on the same', async () => {
    const store = startStore();
    const events = bounce('hard', 'recipient', 'second-time');
    await recordEvents(store, events);
    store.clock.advance(MINUTE);
    expect(suppressions(store, await recordEvents(store, events))).toEqual([]);
    store.clock.advance(DAY);
    expect(suppressions(store, await recordEvents(store, events))).toEqual(['hard_bounce all']);
  });

  const SOFT = bounce('soft', 'recipient', 'never');

  it('follows five soft bounces in fourteen days', async () => {
    const store = startStore();
    const seen: string[][] = [];
    for (let n = 0; n < 5; n++) {
      seen.push(suppressions(store, await recordEvents(store, SOFT)));
      store.clock.advance(3 * DAY);
    }
    expect(seen).toEqual([[], [], [], [], ['soft_bounces all']]);
  });

  it('does not count soft bounces before a delivery or outside the window', async () => {
    const store = startStore();
    for (let n = 0; n < 4; n++) {
      await recordEvents(store, SOFT);
      store.clock.advance(MINUTE);
    }
    await recordEvents(store, ['email_sent', 'email_delivered']);
    expect(suppressions(store, await recordEvents(store, SOFT))).toEqual([]);
    for (let n = 0; n < 8; n++) {
      store.clock.advance(4 * DAY);
      expect(suppressions(store, await recordEvents(store, SOFT))).toEqual([]);
    }
  });

  it('of all streams follows only verified complaints about transactional mail', async () => {
    const results: Record<string, string[]> = {};
    for (const [stream, source, verified] of [
      ['tx', 'arf', true],
      ['mk', 'arf', true],
      ['tx', 'arf', false],
      ['mk', 'arf', false],
      ['tx', 'report_link', undefined],
      ['mk', 'report_link', undefined],
    ] as const) {
      const store = startStore();
      const complaint = exampleEvent('email_complained', { source, verified });
      const events = ['email_sent', 'email_delivered', complaint] as const;
      const seq = await recordEvents(store, [...events], { use_case: stream });
      results[`${stream} ${source} ${verified}`] = suppressions(store, seq);
    }
    expect(results).toEqual({
      'tx arf true': ['complaint all'],
      'mk arf true': ['complaint mk'],
      'tx arf false': ['complaint mk'],
      'mk arf false': ['complaint mk'],
      'tx report_link undefined': ['complaint mk'],
      'mk report_link undefined': ['complaint mk'],
    });
  });

  it('does not follow events of simulated mail, which report that', async () => {
    const store = startStore();
    const complaint = exampleEvent('email_complained', { source: 'arf', verified: true });
    const seq = await recordEvents(store, ['email_sent', 'email_bounced', complaint], { simulated: 1 });
    expect(suppressions(store, seq)).toEqual([]);
    const events = store.tables.events.ofMessage(seq).map((row) => presentEvent(row));
    expect(events).toMatchObject([
      { event: 'email_sent' },
      { event: 'email_bounced', suppressed: false },
      { event: 'email_complained', suppressed: false },
    ]);
    expect(events[0]).not.toHaveProperty('suppressed');
  });
});
