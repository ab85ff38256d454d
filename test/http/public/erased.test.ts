import { describe, expect, it } from 'vitest';
import { createAudience } from '../../../src/audience/service.ts';
import { DAY } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import type { SentMail } from '../../../src/mail/sent-mail.ts';
import { granted } from '../../support/refusal.ts';
import { BROWSER, FORM, ONE_CLICK, type PublicRig, startPublic } from './rig.ts';

/* The links of a mail still work after its recipient was erased. */

const ADA = 'ada@example.net';
const SHOP = 'https://shop.example';
const CAMPAIGN = 'campaign_1';

/** A delivered mail of a campaign to Ada, a contact. */
async function startWithAda() {
  const rig = await startPublic();
  const { tables, writer } = rig;
  const audience = createAudience(
    { ...rig, log: createLog({ level: 'silent', hashAddresses: true }) },
    { recorder: rig.recorder, mayAdd: rig.limits.mayAdd, responsesKeptMs: DAY },
  );
  granted(
    await audience.contacts.create(
      'acct_one',
      { email: ADA },
      { by: 'key', ipAddress: null, userAgent: null },
    ),
  );
  await writer.run((tx) => {
    tx.campaigns.insert({
      campaign_id: CAMPAIGN,
      account_id: 'acct_one',
      name: 'Spring',
      description: null,
      prepared: null,
      status: 'sent',
      created_at: 1,
      updated_at: 1,
    });
  });
  const { message, mail } = rig.sent({ recipient: ADA, use_case: 'mk', campaign_id: CAMPAIGN });
  await rig.deliver(message);
  return {
    ...rig,
    message,
    mail,
    purged: { ...mail, messageId: 'msg_1500000000000_abcdefghijkl' },
    erase: async () => granted(await audience.erasure.erase('acct_one', mail.recipientHash)),
    visit: async () => {
      await rig.call(`/o/${rig.tokens.of('acct_one').openUrl(message.message_id)}.gif`);
      for (const url of [`${SHOP}/sale?u=${ADA}`, `${SHOP}/ada%40example.net`])
        await rig.call(rig.clickUrl(message.message_id, url));
      await rig.settle();
    },
    links: () => tables.campaignCounts.links(CAMPAIGN, 10),
  };
}

const oneClick = ({ call, tokens }: PublicRig, mail: SentMail) =>
  call(`/u/${tokens.of('acct_one').unsubscribeUrl(mail)}`, ONE_CLICK);
const report = ({ call, tokens }: PublicRig, mail: SentMail) =>
  call(`/r/${tokens.of('acct_one').reportUrl(mail)}`, {
    method: 'POST',
    headers: FORM,
    body: 'reason=fraud',
  });

describe('events of a mail after the erasure of its recipient', () => {
  it('contain neither the client nor the address', async () => {
    const rig = await startWithAda();
    await rig.erase();
    await oneClick(rig, rig.mail);
    await report(rig, rig.mail);
    await rig.visit();
    const person = { recipient: rig.mail.recipientHash, contactIdentifier: rig.mail.recipientHash };
    expect(rig.events()).toMatchObject([
      { event: 'email_unsubscribed', method: 'one_click', ...person },
      { event: 'email_complained', reportReason: 'fraud', suppressed: true, ...person },
      { event: 'email_opened', isFirst: true, ...person },
      { event: 'email_clicked', url: SHOP, isFirst: true, ...person },
      { event: 'email_clicked', url: SHOP, isFirst: false, ...person },
    ]);
    for (const event of rig.events()) {
      expect(Object.keys(event)).not.toContain('ip');
      expect(Object.keys(event)).not.toContain('userAgent');
    }
    expect(JSON.stringify(rig.events())).not.toMatch(/ada/);
  });

  it('are counted in the campaign without their links', async () => {
    const rig = await startWithAda();
    await rig.erase();
    await rig.visit();
    expect(rig.links()).toEqual([]);
    expect(rig.tables.campaignCounts.totals({ campaignId: CAMPAIGN, from: 0, to: 9e15 })).toMatchObject({
      opened: 1,
      clicked: 2,
      uniqueClicked: 1,
    });
  });

  it('contain no client when the message was purged', async () => {
    const rig = await startWithAda();
    await rig.erase();
    await oneClick(rig, rig.purged);
    await report(rig, rig.purged);
    expect(rig.events().map(({ event }) => event)).toEqual(['email_unsubscribed', 'email_complained']);
    expect(JSON.stringify(rig.events())).not.toMatch(/127\.0\.0\.1|Mozilla/);
  });
});

describe('events of a mail to a contact', () => {
  it('contain the client and the link', async () => {
    const rig = await startWithAda();
    await oneClick(rig, rig.purged);
    await rig.visit();
    const client = { ip: '127.0.0.1', userAgent: BROWSER };
    expect(rig.events()).toMatchObject([
      { event: 'email_unsubscribed', ...client },
      { event: 'email_opened', ...client },
      { event: 'email_clicked', url: `${SHOP}/sale?u=${ADA}`, ...client },
      { event: 'email_clicked', url: `${SHOP}/ada%40example.net`, ...client },
    ]);
    expect(rig.links()).toHaveLength(2);
  });
});
