import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { LIFECYCLE, MESSAGE_EVENTS, move } from '../../src/events/lifecycle.ts';
import type { EventData } from '../../src/events/record.ts';
import type { MessageRow, MessageStatus } from '../../src/store/messages/messages.ts';
import { enqueue, startStore } from '../support/store.ts';

const HARD: EventData = { bounce: { bounceType: 'hard', scope: 'recipient', suppress: 'now' } };

describe('the life of a message', () => {
  const statuses: MessageStatus[] = [
    'queued',
    'sending',
    'deferred',
    'delivered',
    'bounced',
    'failed',
    'complained',
  ];
  /** Every move that may happen; whatever is not here must not. */
  const moves: Record<string, string> = {
    'queued email_sent': 'sending',
    'queued email_suppressed': 'failed',
    'queued email_failed': 'failed',
    'deferred email_sent': 'sending',
    'deferred email_suppressed': 'failed',
    'deferred email_failed': 'failed',
    'sending email_sent': 'sending',
    'sending email_delivered': 'delivered',
    'sending email_delayed': 'deferred',
    'sending email_bounced': 'bounced',
    'sending email_rejected': 'bounced',
    'sending email_suppressed': 'failed',
    'sending email_failed': 'failed',
    'sending email_complained': 'complained',
    'delivered email_bounced': 'bounced',
    'delivered email_rejected': 'bounced',
    'delivered email_complained': 'complained',
    'bounced email_complained': 'complained',
  };
  const looks = ['email_opened', 'email_clicked', 'email_unsubscribed'];

  it.each(statuses.flatMap((status) => MESSAGE_EVENTS.map((kind) => [status, kind] as const)))(
    '%s, %s',
    (status, kind) => {
      const expected = looks.includes(kind) ? status : (moves[`${status} ${kind}`] ?? null);
      expect(move(status, kind)?.to ?? null).toBe(expected);
    },
  );

  it('ends the queue row exactly when no attempt follows', () => {
    const final = MESSAGE_EVENTS.filter((kind) => LIFECYCLE[kind].final);
    expect(final).toEqual([
      'email_delivered',
      'email_bounced',
      'email_suppressed',
      'email_rejected',
      'email_failed',
      'email_complained',
    ]);
  });
});

function play(
  setting: ReturnType<typeof startStore>,
  steps: [kind: Parameters<typeof setting.recorder.message>[2], data?: EventData][],
  wish: Partial<MessageRow> = {},
) {
  const { tables, writer, recorder, clock } = setting;
  return writer.run((all) => {
    const { seq } = enqueue(all, clock.now(), wish);
    for (const [kind, data] of steps) {
      const message = tables.messages.bySeq(seq);
      if (message === null) throw new Error('the message is gone');
      recorder.message(all, message, kind, data ?? {});
    }
    return seq;
  });
}

describe('the record', () => {
  it('moves the state, writes the event and empties the queue together', async () => {
    const setting = startStore();
    const { tables } = setting;
    const seq = await play(setting, [['email_sent'], ['email_delivered', { fields: { smtpCode: 250 } }]]);
    expect(tables.messages.bySeq(seq)).toMatchObject({
      status: 'delivered',
      sent_at: setting.clock.now(),
      final_at: setting.clock.now(),
    });
    expect(tables.queue.get(seq)).toBeNull();
    expect(tables.events.ofMessage(seq).map(({ kind }) => kind)).toEqual(['email_sent', 'email_delivered']);
  });

  it('says email_sent once, however often the message is taken', async () => {
    const setting = startStore();
    const seq = await play(setting, [
      ['email_sent'],
      ['email_delayed'],
      ['email_sent'],
      ['email_sent'],
      ['email_delivered'],
    ]);
    expect(setting.tables.events.ofMessage(seq).map(({ kind }) => kind)).toEqual([
      'email_sent',
      'email_delayed',
      'email_delivered',
    ]);
  });

  it('records a DSN that comes twice once', async () => {
    const setting = startStore();
    const seq = await play(setting, [
      ['email_sent'],
      ['email_delivered'],
      ['email_bounced', HARD],
      ['email_bounced', HARD],
    ]);
    expect(setting.tables.events.ofMessage(seq).map(({ kind }) => kind)).toEqual([
      'email_sent',
      'email_delivered',
      'email_bounced',
    ]);
  });
});

describe('what follows from a bounce', () => {
  const suppressed = (setting: ReturnType<typeof startStore>, seq: number) => {
    const message = setting.tables.messages.bySeq(seq);
    return setting.tables.suppressions
      .of('acct_one', message?.recipient_hash ?? '')
      .map(({ reason, stream }) => `${reason} ${stream}`);
  };
  const bounced = (bounce: EventData['bounce']) => ({ bounce }) as EventData;

  it.each<[string, EventData['bounce'], string[]]>([
    [
      'a proven hard bounce of the recipient',
      { bounceType: 'hard', scope: 'recipient', suppress: 'now' },
      ['hard_bounce all'],
    ],
    [
      'a hard bounce that one reply does not prove',
      { bounceType: 'hard', scope: 'recipient', suppress: 'second-time' },
      [],
    ],
    ['a block of the sender', { bounceType: 'block', scope: 'sender', suppress: 'never' }, []],
    ['a hard bounce about the site', { bounceType: 'hard', scope: 'site', suppress: 'now' }, []],
    ['one soft bounce', { bounceType: 'soft', scope: 'recipient', suppress: 'never' }, []],
  ])('%s', async (_, bounce, expected) => {
    const setting = startStore();
    const seq = await play(setting, [['email_sent'], ['email_bounced', bounced(bounce)]]);
    expect(suppressed(setting, seq)).toEqual(expected);
    const event = setting.tables.events.ofMessage(seq).at(-1);
    expect(JSON.parse(event?.data ?? '')).toMatchObject({ suppressed: expected.length > 0 });
  });

  it('suppresses on the second unproven bounce of another day, not of the same', async () => {
    const setting = startStore();
    const steps: Parameters<typeof play>[1] = [
      ['email_sent'],
      ['email_bounced', bounced({ bounceType: 'hard', scope: 'recipient', suppress: 'second-time' })],
    ];
    await play(setting, steps);
    setting.clock.advance(MINUTE);
    expect(suppressed(setting, await play(setting, steps))).toEqual([]);
    setting.clock.advance(DAY);
    expect(suppressed(setting, await play(setting, steps))).toEqual(['hard_bounce all']);
  });

  const SOFT: Parameters<typeof play>[1] = [
    ['email_sent'],
    ['email_bounced', bounced({ bounceType: 'soft', scope: 'recipient', suppress: 'never' })],
  ];

  it('suppresses after five soft bounces in fourteen days', async () => {
    const setting = startStore();
    const seen: string[][] = [];
    for (let n = 0; n < 5; n++) {
      seen.push(suppressed(setting, await play(setting, SOFT)));
      setting.clock.advance(3 * DAY);
    }
    expect(seen).toEqual([[], [], [], [], ['soft_bounces all']]);
  });

  it('forgets soft bounces at a delivery, and those that are old', async () => {
    const setting = startStore();
    for (let n = 0; n < 4; n++) {
      await play(setting, SOFT);
      setting.clock.advance(MINUTE);
    }
    await play(setting, [['email_sent'], ['email_delivered']]);
    expect(suppressed(setting, await play(setting, SOFT))).toEqual([]);
    for (let n = 0; n < 8; n++) {
      setting.clock.advance(4 * DAY);
      expect(suppressed(setting, await play(setting, SOFT))).toEqual([]);
    }
  });

  it.each([
    ['tx', 'arf', true, ['complaint all']],
    ['mk', 'arf', true, ['complaint mk']],
    ['tx', 'arf', false, ['complaint mk']],
    ['mk', 'arf', false, ['complaint mk']],
    ['tx', 'report_link', undefined, ['complaint mk']],
    ['mk', 'report_link', undefined, ['complaint mk']],
  ] as const)(
    'a complaint about %s mail by %s, verified: %s',
    async (useCase, source, verified, expected) => {
      const setting = startStore();
      const complaint = { fields: { source, feedbackType: 'abuse', verified } };
      const seq = await play(
        setting,
        [['email_sent'], ['email_delivered'], ['email_complained', complaint]],
        {
          use_case: useCase,
        },
      );
      expect(suppressed(setting, seq)).toEqual(expected);
    },
  );

  it('leaves nothing behind for simulated mail', async () => {
    const setting = startStore();
    const seq = await play(setting, [['email_sent'], ['email_bounced', HARD], ['email_complained']], {
      simulated: 1,
    });
    expect(suppressed(setting, seq)).toEqual([]);
  });
});
