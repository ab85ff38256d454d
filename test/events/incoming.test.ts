import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import { applyReport, type MessageReport } from '../../src/events/incoming.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { type IncomingReport, NO_BOUNCE } from '../../src/mail/incoming/report.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { exampleEvent } from '../support/events.ts';
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

function dsn(...reports: IncomingReport[]): MessageReport {
  return { kind: 'dsn', reports, fingerprint: Buffer.from('one'), verified: true };
}

function arf(feedbackType: string): MessageReport {
  const report = { ...NO_BOUNCE, recipient: '', action: 'complained', diagnostic: '', feedbackType };
  return { kind: 'arf', reports: [report], fingerprint: Buffer.from('one'), verified: true };
}

type Step = 'email_sent' | 'email_delivered' | 'email_delayed' | MessageReport;

/** Records events and applies reports to a new message; returns its state and the result of each report. */
async function play(store: Store, steps: readonly Step[], columns: Partial<MessageRow> = {}) {
  const { tables, writer, recorder, clock } = store;
  const results: string[] = [];
  const seq = await writer.run((tx) => enqueue(tx, clock.now(), { recipient: ADA, ...columns }).seq);
  for (const step of steps) {
    await writer.run((tx) => {
      const message = tx.messages.bySeq(seq);
      if (message === null) throw new Error('the message is gone');
      if (typeof step === 'string') recorder.message(tx, message, exampleEvent(step));
      else results.push(applyReport(recorder, tx, message, step, clock.now()));
    });
  }
  const message = tables.messages.bySeq(seq);
  if (message === null) throw new Error('the message is gone');
  const events = tables.events.ofMessage(seq);
  return {
    status: message.status,
    queued: tables.queue.get(seq) !== null,
    results,
    kinds: events.map(({ kind }) => kind),
    last: JSON.parse(events.at(-1)?.data ?? '{}'),
    suppressed: tables.suppressions.of('acct_one', message.recipient_hash).map(({ reason }) => reason),
  };
}

describe('applying a failure report', () => {
  it('bounces the delivered message with the fields of the report', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', dsn(FAILED)]);
    expect(played).toMatchObject({
      status: 'bounced',
      results: ['recorded'],
      kinds: ['email_sent', 'email_delivered', 'email_bounced'],
      suppressed: ['hard_bounce'],
    });
    expect(played.last).toEqual({
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

  it('records copies of a report once', async () => {
    const played = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(FAILED),
      dsn(FAILED),
      dsn(FULL),
    ]);
    expect(played.results).toEqual(['recorded', 'known', 'known']);
    expect(played.kinds).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
  });

  it('removes a deferred message from the queue', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delayed', dsn(FAILED)]);
    expect(played).toMatchObject({ status: 'bounced', queued: false, suppressed: ['hard_bounce'] });
  });

  it('ignores reports about a message that was never sent', async () => {
    const played = await play(startStore(), [dsn(FAILED), arf('abuse')]);
    expect(played).toMatchObject({ status: 'queued', results: ['none', 'none'], kinds: [], suppressed: [] });
  });

  it('prefers the report about our recipient to others', async () => {
    const members = [
      { ...FAILED, recipient: 'member@elsewhere.example' },
      { ...FULL, recipient: 'ADA@Example.NET' },
    ];
    const played = await play(startStore(), ['email_sent', 'email_delivered', dsn(...members)]);
    expect(played.last).toMatchObject({ classification: 'mailbox-full', suppressed: false });
  });

  it('applies the most severe of several reports about our recipient', async () => {
    const played = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(DELIVERED, FAILED, DELAYED, { ...FAILED, action: 'odd' }),
    ]);
    expect(played.status).toBe('bounced');
  });

  it('suppresses at the second report when another address failed', async () => {
    const store = startStore();
    const forwarded = dsn({ ...FAILED, recipient: 'ada@her-new-place.example' });
    const steps: Step[] = ['email_sent', 'email_delivered', forwarded];
    expect(await play(store, steps)).toMatchObject({ status: 'bounced', suppressed: [] });
    store.clock.advance(DAY);
    expect((await play(store, steps)).suppressed).toEqual(['hard_bounce']);
  });

  it('matches the recipient by either form of an internationalized domain', async () => {
    const played = await play(
      startStore(),
      ['email_sent', 'email_delivered', dsn({ ...FAILED, recipient: 'ada@bücher.example' })],
      { recipient: 'ada@xn--bcher-kva.example' },
    );
    expect(played.suppressed).toEqual(['hard_bounce']);
  });

  it.each([
    ['about our sender', { scope: 'sender', bounceType: 'block', classification: 'reputation-block' }],
    ['about the message', { scope: 'message', bounceType: 'block', classification: 'spam-block' }],
    ['about the server', { scope: 'site', bounceType: 'soft', classification: 'expired' }],
  ] as const)('does not suppress for a report %s', async (_, classified) => {
    const played = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn({ ...FAILED, ...classified, suppress: 'never' }),
    ]);
    expect(played).toMatchObject({ status: 'bounced', suppressed: [] });
    expect(played.last).toMatchObject({ bounceType: classified.bounceType, suppressed: false });
  });

  it('counts soft bounces although each message was delivered before', async () => {
    const store = startStore();
    const seen: string[][] = [];
    for (let n = 0; n < 5; n++) {
      seen.push((await play(store, ['email_sent', 'email_delivered', dsn(FULL)])).suppressed);
      store.clock.advance(2 * DAY);
    }
    expect(seen).toEqual([[], [], [], [], ['soft_bounces']]);
  });

  it('counts from zero after a delivery without a bounce', async () => {
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
  const unverified = (report: MessageReport): MessageReport => ({ ...report, verified: false });
  const bounced: Step[] = ['email_sent', 'email_delivered', unverified(dsn(FAILED))];

  it('bounces the message and does not suppress', async () => {
    const played = await play(startStore(), bounced);
    expect(played).toMatchObject({ status: 'bounced', results: ['recorded'], suppressed: [] });
    expect(played.last).toMatchObject({ bounceType: 'hard', verified: false, suppressed: false });
  });

  it('suppresses when it is repeated on another day, not on the same day', async () => {
    const store = startStore();
    await play(store, bounced);
    store.clock.advance(HOUR);
    expect((await play(store, bounced)).suppressed).toEqual([]);
    store.clock.advance(DAY);
    expect((await play(store, bounced)).suppressed).toEqual(['hard_bounce']);
  });

  it('is confirmed by a live reply on another day that proves nothing alone', async () => {
    const store = startStore();
    await play(store, bounced);
    store.clock.advance(DAY);
    await store.writer.run((tx) => {
      const message = enqueue(tx, store.clock.now(), { recipient: ADA });
      store.recorder.message(tx, message, exampleEvent('email_sent'));
      const sent = tx.messages.bySeq(message.seq) ?? message;
      const effect = { scope: 'recipient', suppress: 'second-time' } as const;
      store.recorder.message(tx, sent, exampleEvent('email_bounced', {}, effect));
    });
    const reasons = store.tables.suppressions
      .of('acct_one', emailIdentifier(ADA))
      .map(({ reason }) => reason);
    expect(reasons).toEqual(['hard_bounce']);
  });

  it('counts soft bounces once a day', async () => {
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
  ] as const)('suppresses only marketing mail after a complaint about %s mail', async (useCase, stream) => {
    const store = startStore();
    const complaint = unverified(arf('abuse'));
    const played = await play(store, ['email_sent', 'email_delivered', complaint], { use_case: useCase });
    expect(played).toMatchObject({ status: 'complained', results: ['recorded'] });
    expect(played.last).toMatchObject({ source: 'arf', verified: false, suppressed: true });
    expect(store.tables.suppressions.of('acct_one', emailIdentifier(ADA))).toMatchObject([
      { reason: 'complaint', stream },
    ]);
  });
});

describe('a report about an erased person', () => {
  it('suppresses by the hash and stores no address', async () => {
    const store = startStore();
    const hash = emailIdentifier(ADA);
    const erased = { recipient: hash, recipient_hash: hash };
    const played = await play(store, ['email_sent', 'email_delivered', dsn(FAILED)], erased);
    expect(played).toMatchObject({ status: 'bounced', suppressed: ['hard_bounce'] });
    expect(played.last).toMatchObject({ bounceType: 'hard', diagnostic: '' });
    expect(store.tables.suppressions.of('acct_one', hash)).toMatchObject([{ email: null }]);
  });
});

describe('applying a delay report', () => {
  it('records the delay; the message stays delivered', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELAYED)]);
    expect(played).toMatchObject({
      status: 'delivered',
      results: ['recorded'],
      kinds: ['email_sent', 'email_delivered', 'email_delayed'],
      suppressed: [],
    });
    expect(played.last).toMatchObject({
      classification: 'network-error',
      enhancedCode: '4.4.1',
      source: 'dsn',
    });
  });

  it('does not remove a deferred message from the queue', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delayed', dsn(DELAYED)]);
    expect(played).toMatchObject({ status: 'deferred', queued: true });
  });

  it('records copies of a report once, and a different report again', async () => {
    const other = { ...dsn(DELAYED), fingerprint: Buffer.from('two') };
    const played = await play(startStore(), [
      'email_sent',
      'email_delivered',
      dsn(DELAYED),
      dsn(DELAYED),
      other,
    ]);
    expect(played.results).toEqual(['recorded', 'known', 'recorded']);
  });

  it('records at most twenty delays of a message', async () => {
    const many = Array.from({ length: 30 }, (_, n) => ({
      ...dsn(DELAYED),
      fingerprint: Buffer.from(`${n}`),
    }));
    const played = await play(startStore(), ['email_sent', 'email_delivered', ...many]);
    expect(played.kinds.filter((kind) => kind === 'email_delayed')).toHaveLength(20);
  });

  it('records the bounce that follows', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELAYED), dsn(FAILED)]);
    expect(played.kinds).toEqual(['email_sent', 'email_delivered', 'email_delayed', 'email_bounced']);
  });
});

describe('applying a delivery report', () => {
  it('changes nothing for a delivered message', async () => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', dsn(DELIVERED)]);
    expect(played).toMatchObject({ results: ['known'], kinds: ['email_sent', 'email_delivered'] });
  });

  it.each(['delivered', 'relayed', 'expanded'])(
    'delivers a deferred message that was "%s"',
    async (action) => {
      const played = await play(startStore(), ['email_sent', 'email_delayed', dsn({ ...DELIVERED, action })]);
      expect(played).toMatchObject({ status: 'delivered', queued: false });
    },
  );
});

describe('applying a complaint', () => {
  it.each(['abuse', 'fraud', 'virus', 'opt-out', 'other'])('records type %s once', async (type) => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', arf(type), arf(type)]);
    expect(played).toMatchObject({
      status: 'complained',
      results: ['recorded', 'known'],
      suppressed: ['complaint'],
    });
    expect(played.last).toEqual({ source: 'arf', feedbackType: type, verified: true, suppressed: true });
  });

  it.each(['not-spam', 'auth-failure', 'dmarc'])('ignores feedback of type %s', async (type) => {
    const played = await play(startStore(), ['email_sent', 'email_delivered', arf(type)]);
    expect(played).toMatchObject({ status: 'delivered', results: ['none'], suppressed: [] });
  });
});

describe('applying other mail', () => {
  it.each(['auto-reply', 'unknown', 'dmarc-report', 'tls-report'] as const)(
    'changes nothing for kind %s',
    async (kind) => {
      const played = await play(startStore(), ['email_sent', 'email_delivered', { ...dsn(FAILED), kind }]);
      expect(played).toMatchObject({ status: 'delivered', results: ['none'] });
    },
  );
});
