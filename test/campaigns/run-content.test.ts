import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { contactVariables, mailboxOf } from '../../src/campaigns/fields.ts';
import { type CampaignRequest, recheckCampaign, storedMail } from '../../src/campaigns/mail.ts';
import { DAY } from '../../src/core/clock.ts';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createRetention } from '../../src/events/retention.ts';
import { composeInSteps } from '../../src/mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../src/mail/content.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { createHtmlReader } from '../../src/sending/render/html-reader.ts';
import { renderPreparedInSteps } from '../../src/sending/render/render.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { granted } from '../support/refusal.ts';
import { type CampaignSetup, COMPLIANCE, startCampaigns } from './setup.ts';

const PEOPLE: [email: string, profile: object][] = [
  ['ada@example.net', { firstName: 'Ada', lastName: 'Lovelace', customFields: { plan: 'gold', visits: 3 } }],
  ['grace@example.org', { firstName: '<b>Grace</b> & "co"', customFields: { plan: '' } }],
  ['zoë@example.net', { lastName: "O'Brien", phone: '+442079460000' }],
  ['nobody@example.com', {}],
];

/** The content that a message would have if every copy were stored separately. */
function wholeContent(setup: CampaignSetup, row: { seq: number }, message: MessageRow): MessageContent {
  const { tables, groupId } = setup;
  const send = tables.campaignSends.get(row.seq);
  const group = tables.subscriptionGroups.get('acct_one', groupId);
  if (send === null || group === null) throw new Error('there is no campaign');
  const { prepared } = granted(recheckCampaign(tables, send, createHtmlReader()));
  const mail = storedMail(tables, send);
  const member = tables.campaignSends
    .members({ groupSeq: group.seq, after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: 100 })
    .find(({ email }) => email === message.recipient);
  if (member === undefined) throw new Error(`${message.recipient} is no member`);
  const rendered = withoutPause(
    renderPreparedInSteps(
      prepared,
      { ...mail.variables, ...contactVariables(member) },
      new Set(mail.optional),
    ),
  );
  return {
    ...granted(rendered),
    from: mail.from,
    to: [mailboxOf(member, message.recipient)],
    cc: [],
    replyTo: mail.replyTo,
    headers: [],
    attachments: [],
    list: { id: groupId, name: group.name },
    messageId: `${message.message_id}@${mail.fromDomain}`,
    date: message.created_at,
  };
}

const copyOf = (message: MessageRow): CopyDetails => ({
  kind: 'marketing',
  recipient: message.recipient,
  unsubscribeUrl: 'https://track.example/u/1?a=b&c=d',
  reportAbuseUrl: 'https://track.example/r/1',
  unsubscribeAddress: null,
  signedId: 'signed',
  feedbackAddress: null,
  feedbackId: 'a:b:mk:postrider',
  tracking: {
    linkPrefix: 'https://track.example/c/',
    clickSigner: { key: createSecretKey(Buffer.alloc(32)), head: Buffer.alloc(6) },
    messageId: message.message_id,
    pixelUrl: 'https://track.example/o/1.gif',
  },
});

/** The copy with its body as text: buffers are compared byte by byte, which takes seconds. */
function composed(content: MessageContent, message: MessageRow) {
  const copy = withoutPause(composeInSteps(content, copyOf(message)));
  return { ...copy, body: copy.body.toString('latin1') };
}

const MAILS: [name: string, changes: Partial<CampaignRequest>][] = [
  ['without variables', { subject: 'News', html: `<p>News</p>${COMPLIANCE}` }],
  [
    'with every field of a contact',
    {
      subject: '{{firstName|friend}} – {{customFields.plan}} {{offer}}',
      html: `<html><body><p>{{firstName}} {{lastName}} {{email}} {{phone}} {{customFields.visits|0}}</p>
<a href="https://shop.example/?e={{email}}&amp;p={{customFields.plan}}">{{offer}}</a>{{{offer}}}${COMPLIANCE}</body></html>`,
      templateVariables: { offer: '<i>10 %</i>' },
    },
  ],
  [
    'with a separate text',
    {
      html: `<p>{{firstName}}</p>${COMPLIANCE}`,
      text: 'Dear {{firstName}} {{unsubscribe_email_text}}{{lastName}}\n{{company_address}} {{email}}',
    },
  ],
  [
    'of text alone',
    {
      html: undefined,
      text: '{{lastName}}{{company_address_text}} \t{{unsubscribe_email_text}}\n{{report_abuse_url}}',
    },
  ],
  [
    'with raw fields of contacts',
    { html: `<p>{{{firstName}}}</p>${COMPLIANCE}<p>{{{customFields.plan|none}}}</p>` },
  ],
  [
    'longer than what is deflated inline',
    {
      html: `${'<p>A row – {{firstName}} of many</p>\n'.repeat(3000)}${COMPLIANCE}`,
    },
  ],
];

/** Sends a campaign to all people. */
async function sent(changes: Partial<CampaignRequest>) {
  const setup = await startCampaigns();
  for (const [email, profile] of PEOPLE) await setup.member(email, profile);
  const row = granted(await setup.send({ replyTo: 'Help <help@news.example>', ...changes }));
  setup.runner.start();
  await expect.poll(() => setup.progress(row.campaign_id).queued).toBe(PEOPLE.length);
  return { ...setup, setup, row, messages: setup.messages(row) };
}

describe('a campaign', () => {
  it.each(MAILS)(
    '%s: every copy is the message that it would be if it were stored whole',
    async (_, changes) => {
      const { setup, row, messages, content } = await sent(changes);
      expect(messages).toHaveLength(PEOPLE.length);
      for (const message of messages) {
        const whole = wholeContent(setup, row, message);
        const merged = content(message);
        expect(merged).toEqual(whole);
        expect(composed(merged, message)).toEqual(composed(whole, message));
        expect(message.subject).toBe(whole.subject);
      }
    },
  );

  it('stores its body once, and for each copy only the part that differs', async () => {
    const { messages, tables } = await sent({ html: `${'<p>A long letter</p>'.repeat(500)}${COMPLIANCE}` });
    const contents = messages.map(({ content_id }) => tables.messages.content(content_id));
    expect(new Set(contents.map((content) => content?.shared_id)).size).toBe(1);
    for (const content of contents) {
      expect(content?.bytes.byteLength).toBeLessThan(100);
      // The whole message counts toward the bytes in flight.
      expect(content?.size).toBeGreaterThan(10_000);
    }
  });

  it('has a new body when its input changes during sending', async () => {
    const setup = await startCampaigns();
    const { db, tables, clock, runner, content } = setup;
    for (const [email, profile] of PEOPLE) await setup.member(email, profile);
    const row = granted(await setup.send({ perHour: 240 }));
    const queued = (count: number) => expect.poll(() => setup.progress(row.campaign_id).queued).toBe(count);
    runner.start();
    await queued(1);
    db.prepare('UPDATE subscription_groups SET name = ?').run('Renamed');
    for (const count of [2, 3]) {
      clock.advance(15_100);
      runner.wake();
      await queued(count);
    }
    const messages = setup.messages(row);
    expect(messages.map((message) => content(message).list?.name)).toEqual(['News', 'Renamed', 'Renamed']);
    const [before, after, last] = messages.map(
      ({ content_id }) => tables.messages.content(content_id)?.shared_id,
    );
    expect(after).not.toBe(before);
    expect(last).toBe(after);
  });
});

describe('erasing a member', () => {
  it('removes only their part', async () => {
    const { audience, content, messages, tables } = await sent({});
    const before = messages.map((message) => content(message));
    const erased = await audience.erasure.erase('acct_one', emailIdentifier('ada@example.net'));
    expect(isRefusal(erased)).toBe(false);
    await expect.poll(() => tables.messages.content(messages[0]?.content_id ?? 0)).toBeNull();
    expect(messages.slice(1).map((message) => content(message))).toEqual(before.slice(1));
  });
});

describe('retention', () => {
  it('deletes the body of a campaign with its last expired copy', async () => {
    const { tables, writer, clock, messages, deliverAll } = await sent({});
    const log = createLog({ level: 'silent', hashAddresses: true });
    const sharedId = tables.messages.content(messages[0]?.content_id ?? 0)?.shared_id ?? 0;
    const retention = createRetention({
      clock,
      log,
      tables,
      writer,
      config: { limits: { bodyDays: 7, eventDays: 90, inboundDays: 30 } },
    });
    const purge = () => retention.run();
    const [last] = messages.slice(-1);
    if (last === undefined) throw new Error('nothing was sent');
    clock.advance(8 * DAY);
    expect(await purge()).toMatchObject({ bodies: 0, sharedBodies: 0 });
    await deliverAll();
    clock.advance(8 * DAY);
    await writer.run((tx) => tx.erasures.removeContent(last.content_id));
    expect(tables.sharedContents.get(sharedId)).not.toBeNull();
    expect(await purge()).toMatchObject({ bodies: PEOPLE.length - 1, sharedBodies: 1 });
    expect(tables.sharedContents.get(sharedId)).toBeNull();
  });
});
