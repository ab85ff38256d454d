import { describe, expect, it } from 'vitest';
import {
  type PersonalDataPosition,
  parsePosition,
  positionText,
  readPersonalData,
} from '../../src/audience/personal-data.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { EXPORT_SECTIONS } from '../../src/store/data-policies.ts';
import { exampleEvent } from '../support/events.ts';
import { granted } from '../support/refusal.ts';
import { enqueue } from '../support/store.ts';
import { CALLER, codeOf, startAudience } from './setup.ts';

const ADA = 'ada@example.net';
const ADA_ID = emailIdentifier(ADA);

async function start() {
  const setup = await startAudience();
  const { reader, clock } = setup;
  const page = (
    identifier: string,
    after: PersonalDataPosition | null,
    limit: number,
    accountId = 'acct_one',
  ) => readPersonalData(reader, { accountId, identifier, after, limit }, clock.now());
  return {
    ...setup,
    page,
    /** All pages of a person. */
    all: async (identifier: string, limit: number) => {
      const first = granted(await page(identifier, null, limit));
      const pages = [first];
      for (let { next } = first; next !== null; ) {
        // As the API passes it.
        const more = granted(await page(identifier, parsePosition(positionText(next)), limit));
        expect(more.messages.length + more.events.length).toBeLessThanOrEqual(limit);
        pages.push(more);
        next = more.next;
      }
      return {
        data: first.data,
        messages: pages.flatMap(({ messages }) => messages),
        events: pages.flatMap(({ events }) => events),
      };
    },
  };
}

describe('the data about a person', () => {
  it('has every section, each row once whatever the size of the pages', async () => {
    const { add, all, suppress, subscriptions, groupId, writer, clock, recorder } = await start();
    const contact = await add(ADA, {
      phone: '+442079460000',
      firstName: 'Ada',
      customFields: { plan: 'gold' },
    });
    const input = { contactIdentifier: ADA_ID, isActive: true };
    granted(await subscriptions.add('acct_one', groupId, input, CALLER));
    await suppress(ADA, 'manual', 'tx');
    await writer.run((tx) => {
      for (let n = 0; n < 5; n++) {
        recorder.message(tx, enqueue(tx, clock.now(), { recipient: ADA }), exampleEvent('email_sent'));
        for (const contactIdentifier of [ADA_ID, contact.phone_hash ?? ''])
          recorder.optedOut(tx, {
            accountId: 'acct_one',
            domainId: null,
            fields: { method: 'page', contactIdentifier },
          });
      }
    });
    const whole = await all(ADA_ID, 200);
    expect(Object.keys(whole.data)).toEqual([
      'contactIdentifier',
      'exportedAt',
      ...EXPORT_SECTIONS.filter((name) => name !== 'messages' && name !== 'events'),
    ]);
    expect(whole.data).toMatchObject({
      contact: { email: ADA, phone: '+442079460000', customFields: { plan: 'gold' } },
      memberships: [{ subscriptionGroupId: groupId, isActive: true }],
      consents: [{ action: 'given' }],
      suppressions: [{ reason: 'manual', stream: 'tx' }],
    });
    expect(whole.messages).toHaveLength(5);
    expect(whole.messages[0]).toMatchObject({ recipient: ADA, timeline: [{ event: 'email_sent' }] });
    expect(whole.events).toHaveLength(10);
    for (const limit of [1, 2, 5, 7]) expect(await all(ADA_ID, limit)).toEqual(whole);
  });

  it('is also that of a recipient who is no contact, and of no other account', async () => {
    const { page, writer, clock } = await start();
    expect(codeOf(await page(ADA_ID, null, 50))).toBe('CONTACT_NOT_FOUND');
    await writer.run((tx) => enqueue(tx, clock.now(), { recipient: ADA }));
    const { data, messages } = granted(await page(ADA_ID, null, 50));
    expect(data['contact']).toBeNull();
    expect(messages).toHaveLength(1);
    expect(codeOf(await page(ADA_ID, null, 50, 'acct_two'))).toBe('CONTACT_NOT_FOUND');
  });
});
