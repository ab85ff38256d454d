import { expect, it } from 'vitest';
import { messageHistory, messagePage, presentMessage } from '../../src/events/message-view.ts';
import type { MessageStatus } from '../../src/store/messages/messages.ts';
import { enqueue, heldClock, startStore } from '../support/store.ts';

/** A message with events: kind and fields. */
function messageWith(status: MessageStatus, events: [kind: string, fields: object][]) {
  const { tables, clock } = startStore(heldClock());
  const { seq, message_id: id } = enqueue(tables, clock.now(), { account_id: 'acct_one' });
  for (const [index, [kind, fields]] of events.entries())
    tables.events.insert({
      event_id: `evt_${index}`,
      account_id: 'acct_one',
      kind,
      at: clock.now(),
      message_seq: seq,
      domain_id: null,
      data: JSON.stringify(fields),
    });
  tables.messages.setState(seq, status, clock.now(), null, null);
  return { tables, id };
}

const GREYLISTED: [string, object] = ['email_delayed', { classification: 'greylisted', smtpCode: 451 }];
const BOUNCED: [string, object] = ['email_bounced', { classification: 'invalid-recipient', source: 'smtp' }];

it.each<[string, string | undefined, MessageStatus, [string, object][]]>([
  ['the classification of the last reply', 'invalid-recipient', 'bounced', [GREYLISTED, BOUNCED]],
  [
    'that of a rejected content',
    'spam-block',
    'bounced',
    [['email_rejected', { classification: 'spam-block' }]],
  ],
  ['that of a deferral', 'greylisted', 'deferred', [['email_sent', {}], GREYLISTED]],
  ['why it was dropped', 'expired', 'failed', [GREYLISTED, ['email_failed', { reason: 'expired' }]]],
  [
    'why its recipient was refused',
    'RECIPIENT_SUPPRESSED',
    'failed',
    [['email_suppressed', { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'hard_bounce' }]],
  ],
  ['nothing once it is delivered', undefined, 'delivered', [GREYLISTED, ['email_delivered', {}]]],
  ['nothing without an event', undefined, 'failed', []],
])('a message states %s, in lists and alone', (_, reason, status, events) => {
  const { tables, id } = messageWith(status, events);
  const { rows, reasons } = messagePage.run(tables, { accountId: 'acct_one', limit: 10 });
  expect(rows.map((row, index) => presentMessage(row, reasons[index])['reason'])).toEqual([reason]);
  const history = messageHistory.run(tables, id);
  expect(history && presentMessage(history.message, history.reason)['reason']).toBe(reason);
});
