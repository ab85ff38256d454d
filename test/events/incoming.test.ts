import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { applyReport, type CameBack } from '../../src/events/incoming.ts';
import { MESSAGE_EVENTS, move } from '../../src/events/lifecycle.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { type IncomingReport, NO_BOUNCE } from '../../src/mail/incoming/report.ts';
import type { MessageRow, MessageStatus } from '../../src/store/messages/messages.ts';
import { enqueue, startStore } from '../support/store.ts';

type Store = ReturnType<typeof startStore>;

const ADA = 'ada@example.net';

const FAILED: IncomingReport = {
  ...NO_BOUNCE,
  recipient: ADA,
  action: 'failed',
  status: '5.1.1',
  bounceType: 'hard',
  classification: 'invalid-recipient',
  replyCode: '550',
  diagnostic: '550 5.1.1 no such user',
  remoteMta: 'mx.example.net',
  suppress: 'now',
};
const FULL: IncomingReport = {
  ...FAILED,
  status: '5.2.2',
  bounceType: 'soft',
  classification: 'mailbox-full',
  replyCode: '552',
  suppress: 'never',
};
const DELAYED: IncomingReport = {
  ...FULL,
  action: 'delayed',
  status: '4.4.1',
  classification: 'network-error',
};
const DELIVERED: IncomingReport = { ...NO_BOUNCE, recipient: ADA, action: 'delivered', diagnostic: '' };

function dsn(...reports: IncomingReport[]): CameBack {
  return { kind: 'dsn', reports, fingerprint: Buffer.from('one'), verified: true };
}

function arf(feedbackType: string): CameBack {
  const report = { ...NO_BOUNCE, recipient: '', action: 'complained', diagnostic: '', feedbackType };
  return { kind: 'arf', reports: [report], fingerprint: Buffer.from('one'), verified: true };
}

type Step = 'email_sent' | 'email_delivered' | 'email_delayed' | CameBack;

/** Plays a message's life; returns what became of it and what each report did. */
async function play(store: Store, steps: readonly Step[], wish: Partial<MessageRow> = {}) {
  const { tables, writer, recorder, clock } = store;
  const effects: string[] = [];
  const seq = await writer.run((all) => enqueue(all, clock.now(), { recipient: ADA, ...wish }).seq);
  for (const step of steps) {
    await writer.run((all) => {
      const message = all.messages.bySeq(seq);
      if (message === null) throw new Error('the message is gone');
      if (typeof step === 'string') recorder.message(all, message, step, {});
      else effects.push(applyReport(recorder, all, message, step, clock.now()));
    });
  }
  const message = tables.messages.bySeq(seq);
  if (message === null) throw new Error('the message is gone');
  const events = tables.events.ofMessage(seq);
  return {
    status: message.status,
    queued: tables.queue.get(seq) !== null,
    effects,
    kinds: events.map(({ kind }) => kind),
    last: JSON.parse(events.at(-1)?.data ?? '{}'),
    suppressed: tables.suppressions.of('acct_one', message.recipient_hash).map(({ reason }) => reason),
  };
}

describe('the moves that a report may make', () => {
  /** Beyond what our own deliveries do: see record.test.ts. */
  const MOVES: Record<string, string> = {
    'sending email_delivered': 'delivered',
    'deferred email_delivered': 'delivered',
    'sending email_delayed': 'sending',
    'deferred email_delayed': 'deferred',
    'delivered email_delayed': 'delivered',
    'sending email_bounced': 'bounced',
    'deferred email_bounced': 'bounced',
    'delivered email_bounced': 'bounced',
    'sending email_complained': 'complained',
    'deferred email_complained': 'complained',
    'delivered email_complained': 'complained',
    'bounced email_complained': 'complained',
  };
  const KINDS = ['email_delivered', 'email_delayed', 'email_bounced', 'email_complained'] as const;
  const STATUSES: MessageStatus[] = [
    'queued',
    'sending',
    'deferred',
    'delivered',
    'bounced',
    'failed',
    'complained',
  ];

  it.each(STATUSES.flatMap((status) => KINDS.map((kind) => [status, kind] as const)))(
    '%s, %s',
    (status, kind) => {
      expect(move(status, kind, true)?.to ?? null).toBe(MOVES[`${status} ${kind}`] ?? null);
    },
  );

  it('are those of our own deliveries for every other event', () => {
    for (const kind of MESSAGE_EVENTS.filter((kind) => !KINDS.some((own) => own === kind)))
      for (const status of STATUSES) expect(move(status, kind, true)).toEqual(move(status, kind));
  });
});

describe('a report of failure', () => {
  it('bounces the delivered message and tells what the report says', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', dsn(FAILED)]);
    expect(told).toMatchObject({
      status: 'bounced',
      effects: ['recorded'],
      kinds: ['email_sent', 'email_delivered', 'email_bounced'],
      suppressed: ['hard_bounce'],
    });
    expect(told.last).toEqual({
      bounceType: 'hard',
      classification: 'invalid-recipient',
      smtpCode: 550,
      enhancedCode: '5.1.1',
      diagnostic: '550 5.1.1 no such user',
      remoteMta: 'mx.example.net',
      source: 'dsn',
      verified: true,
      suppressed: true,
    });
  });

  it('is recorded once, however often it comes', async () => {
    const told = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(FAILED),
      dsn(FAILED),
      dsn(FULL),
    ]);
    expect(told.effects).toEqual(['recorded', 'known', 'known']);
    expect(told.kinds).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
  });

  it('ends the tries of a message whose delivery we never heard of', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delayed', dsn(FAILED)]);
    expect(told).toMatchObject({ status: 'bounced', queued: false, suppressed: ['hard_bounce'] });
  });

  it('is not believed of a message that was never sent', async () => {
    const told = await play(startStore(), [dsn(FAILED), arf('abuse')]);
    expect(told).toMatchObject({ status: 'queued', effects: ['none', 'none'], kinds: [], suppressed: [] });
  });

  it('takes the report on our recipient from among others', async () => {
    const members = [
      { ...FAILED, recipient: 'member@elsewhere.example' },
      { ...FULL, recipient: 'ADA@Example.NET' },
    ];
    const told = await play(startStore(), ['email_sent', 'email_delivered', dsn(...members)]);
    expect(told.last).toMatchObject({ classification: 'mailbox-full', suppressed: false });
  });

  it('takes the gravest where several are on our recipient', async () => {
    const told = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(DELIVERED, FAILED, DELAYED, { ...FAILED, action: 'odd' }),
    ]);
    expect(told.status).toBe('bounced');
  });

  it('suppresses only at the second time when the address that failed is not ours', async () => {
    const store = startStore();
    const forwarded = dsn({ ...FAILED, recipient: 'ada@her-new-place.example' });
    const steps: Step[] = ['email_sent', 'email_delivered', forwarded];
    expect(await play(store, steps)).toMatchObject({ status: 'bounced', suppressed: [] });
    store.clock.advance(DAY);
    expect((await play(store, steps)).suppressed).toEqual(['hard_bounce']);
  });

  it('knows a recipient by either form of an internationalized domain', async () => {
    const told = await play(
      startStore(),
      ['email_sent', 'email_delivered', dsn({ ...FAILED, recipient: 'ada@bücher.example' })],
      { recipient: 'ada@xn--bcher-kva.example' },
    );
    expect(told.suppressed).toEqual(['hard_bounce']);
  });

  it.each([
    ['about our sender', { scope: 'sender', bounceType: 'block', classification: 'reputation-block' }],
    ['about the message', { scope: 'message', bounceType: 'block', classification: 'spam-block' }],
    ['about the server', { scope: 'site', bounceType: 'soft', classification: 'expired' }],
  ] as const)('%s suppresses nobody', async (_, judged) => {
    const told = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn({ ...FAILED, ...judged, suppress: 'never' }),
    ]);
    expect(told).toMatchObject({ status: 'bounced', suppressed: [] });
    expect(told.last).toMatchObject({ bounceType: judged.bounceType, suppressed: false });
  });

  it('counts soft ones although each message was taken at first', async () => {
    const store = startStore();
    const seen: string[][] = [];
    for (let n = 0; n < 5; n++) {
      seen.push((await play(store, ['email_sent', 'email_delivered', dsn(FULL)])).suppressed);
      store.clock.advance(2 * DAY);
    }
    expect(seen).toEqual([[], [], [], [], ['soft_bounces']]);
  });

  it('begins to count anew after a delivery that nobody took back', async () => {
    const store = startStore();
    const full: Step[] = ['email_sent', 'email_delivered', dsn(FULL)];
    for (let n = 0; n < 4; n++) {
      await play(store, full);
      store.clock.advance(HOUR);
    }
    await play(store, ['email_sent', 'email_delivered']);
    store.clock.advance(HOUR);
    expect((await play(store, full)).suppressed).toEqual([]);
  });
});

describe('an unverified report', () => {
  const unverified = (cameBack: CameBack): CameBack => ({ ...cameBack, verified: false });
  const bounced: Step[] = ['email_sent', 'email_delivered', unverified(dsn(FAILED))];

  it('of failure bounces the message and suppresses nobody', async () => {
    const played = await play(startStore(), bounced);
    expect(played).toMatchObject({ status: 'bounced', effects: ['recorded'], suppressed: [] });
    expect(played.last).toMatchObject({ bounceType: 'hard', verified: false, suppressed: false });
  });

  it('of failure suppresses when it is repeated on another day, not on the same day', async () => {
    const store = startStore();
    await play(store, bounced);
    store.clock.advance(HOUR);
    expect((await play(store, bounced)).suppressed).toEqual([]);
    store.clock.advance(DAY);
    expect((await play(store, bounced)).suppressed).toEqual(['hard_bounce']);
  });

  it('of failure is confirmed by a live reply that proves less alone', async () => {
    const store = startStore();
    await play(store, bounced);
    store.clock.advance(DAY);
    await store.writer.run((all) => {
      const message = enqueue(all, store.clock.now(), { recipient: ADA });
      store.recorder.message(all, message, 'email_sent', {});
      const sent = all.messages.bySeq(message.seq) ?? message;
      const bounce = { bounceType: 'hard', scope: 'recipient', suppress: 'second-time' } as const;
      store.recorder.message(all, sent, 'email_bounced', { bounce });
    });
    const reasons = store.tables.suppressions
      .of('acct_one', emailIdentifier(ADA))
      .map(({ reason }) => reason);
    expect(reasons).toEqual(['hard_bounce']);
  });

  it('of a full mailbox counts once a day', async () => {
    const store = startStore();
    const full: Step[] = ['email_sent', 'email_delivered', unverified(dsn(FULL))];
    const seen: string[][] = [];
    for (let day = 0; day < 5; day++) {
      for (let n = 0; n < 6; n++) seen.push((await play(store, full)).suppressed);
      store.clock.advance(DAY);
    }
    expect(seen.map(({ length }) => length)).toEqual([...Array(24).fill(0), ...Array(6).fill(1)]);
  });

  it.each([
    ['tx', 'mk'],
    ['mk', 'mk'],
  ] as const)('of abuse about %s mail suppresses marketing only', async (useCase, stream) => {
    const store = startStore();
    const complaint = unverified(arf('abuse'));
    const played = await play(store, ['email_sent', 'email_delivered', complaint], { use_case: useCase });
    expect(played).toMatchObject({ status: 'complained', effects: ['recorded'] });
    expect(played.last).toMatchObject({ source: 'arf', verified: false, suppressed: true });
    expect(store.tables.suppressions.of('acct_one', emailIdentifier(ADA))).toMatchObject([
      { reason: 'complaint', stream },
    ]);
  });
});

describe('a report on somebody who was erased since', () => {
  it('still suppresses by the hash, and names nobody', async () => {
    const store = startStore();
    const hash = emailIdentifier(ADA);
    const erased = { recipient: hash, recipient_hash: hash };
    const told = await play(store, ['email_sent', 'email_delivered', dsn(FAILED)], erased);
    expect(told).toMatchObject({ status: 'bounced', suppressed: ['hard_bounce'] });
    expect(told.last).toMatchObject({ bounceType: 'hard', diagnostic: '' });
    expect(store.tables.suppressions.of('acct_one', hash)).toMatchObject([{ email: null }]);
  });
});

describe('a report of delay', () => {
  it('is told, and the message stays delivered', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELAYED)]);
    expect(told).toMatchObject({
      status: 'delivered',
      effects: ['recorded'],
      kinds: ['email_sent', 'email_delivered', 'email_delayed'],
      suppressed: [],
    });
    expect(told.last).toMatchObject({
      classification: 'network-error',
      enhancedCode: '4.4.1',
      source: 'dsn',
    });
  });

  it('leaves a message in the queue that waits for our own next try', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delayed', dsn(DELAYED)]);
    expect(told).toMatchObject({ status: 'deferred', queued: true });
  });

  it('is told once when it comes twice, and again when it is another', async () => {
    const other = { ...dsn(DELAYED), fingerprint: Buffer.from('two') };
    const told = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(DELAYED),
      dsn(DELAYED),
      other,
    ]);
    expect(told.effects).toEqual(['recorded', 'known', 'recorded']);
  });

  it('is told twenty times at most', async () => {
    const many = Array.from({ length: 30 }, (_, n) => ({
      ...dsn(DELAYED),
      fingerprint: Buffer.from(`${n}`),
    }));
    const told = await play(startStore(), ['email_sent', 'email_delivered', ...many]);
    expect(told.kinds.filter((kind) => kind === 'email_delayed')).toHaveLength(20);
  });

  it('is followed by the bounce that ends it', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELAYED), dsn(FAILED)]);
    expect(told.kinds).toEqual(['email_sent', 'email_delivered', 'email_delayed', 'email_bounced']);
  });
});

describe('a report of delivery', () => {
  it('is no news of a delivered message', async () => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELIVERED)]);
    expect(told).toMatchObject({ effects: ['known'], kinds: ['email_sent', 'email_delivered'] });
  });

  it.each(['delivered', 'relayed', 'expanded'])(
    'ends the tries of a message that was "%s" unheard',
    async (action) => {
      const told = await play(startStore(), ['email_sent', 'email_delayed', dsn({ ...DELIVERED, action })]);
      expect(told).toMatchObject({ status: 'delivered', queued: false });
    },
  );
});

describe('a complaint', () => {
  it.each(['abuse', 'fraud', 'virus', 'opt-out', 'other'])('of type %s is recorded once', async (type) => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', arf(type), arf(type)]);
    expect(told).toMatchObject({
      status: 'complained',
      effects: ['recorded', 'known'],
      suppressed: ['complaint'],
    });
    expect(told.last).toEqual({ source: 'arf', feedbackType: type, verified: true, suppressed: true });
  });

  it.each(['not-spam', 'auth-failure', 'dmarc'])('is not made by feedback of type %s', async (type) => {
    const told = await play(startStore(), ['email_sent', 'email_delivered', arf(type)]);
    expect(told).toMatchObject({ status: 'delivered', effects: ['none'], suppressed: [] });
  });
});

describe('any other mail', () => {
  it.each(['auto-reply', 'unknown', 'dmarc-report', 'tls-report'] as const)(
    'of kind %s changes nothing',
    async (kind) => {
      const told = await play(startStore(), ['email_sent', 'email_delivered', { ...dsn(FAILED), kind }]);
      expect(told).toMatchObject({ status: 'delivered', effects: ['none'] });
    },
  );
});
