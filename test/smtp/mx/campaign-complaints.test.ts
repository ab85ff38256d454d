import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { feedbackIdOf } from '../../../src/mail/feedback-id.ts';
import { SIGNING_RECORD, signMail } from '../../support/signed-mail.ts';
import { arf } from './mails.ts';
import { createTestResolver, HOST, RETURN, startMx } from './setup.ts';

/* Complaints of feedback loops count for the campaign of the message, also if only its Feedback-ID says which one it is. */
const NOW = Date.UTC(2026, 0, 15, 12);
const CAMPAIGN = 'campaign_one';

async function start() {
  const resolver = createTestResolver({
    's1._domainkey.yahoo.com': SIGNING_RECORD,
    's1._domainkey.evil.example': SIGNING_RECORD,
  });
  const setup = await startMx({ deps: { resolver } });
  const { tables, writer, tokens } = setup;
  await writer.run((tx) =>
    tx.campaigns.insert({
      campaign_id: CAMPAIGN,
      account_id: 'acct_one',
      name: 'Spring',
      description: null,
      prepared: null,
      status: 'draft',
      created_at: NOW,
      updated_at: NOW,
    }),
  );
  return {
    ...setup,
    /** Sends a complaint and returns the reply. */
    complain: async (to: string, returned: string, domain = 'yahoo.com', feedbackType = 'abuse') =>
      (await setup.client()).mail(
        '',
        to,
        signMail(arf(feedbackType, returned), `feedback@arf.mail.${domain}`, domain, NOW),
      ),
    /** What counts: of the campaign, of its providers, of the account's reputation. */
    counted: () => ({
      campaign: tables.campaignCounts.totals({ campaignId: CAMPAIGN, from: 0, to: NOW + DAY }).complained,
      providers: tables.campaignCounts
        .providers(CAMPAIGN)
        .flatMap(({ provider, complained }) => (complained > 0 ? [`${provider} ${complained}`] : [])),
      account: tables.reputationCounts
        .ofDay(NOW - (NOW % DAY), 'acct_one')
        .flatMap(({ provider, complained }) => (complained > 0 ? [`${provider} ${complained}`] : [])),
    }),
    signedId: (messageId: string) => `X-Postrider-Id: ${tokens.of('acct_one').signedId(messageId)}`,
  };
}

const feedbackId = (changed: Partial<Parameters<typeof feedbackIdOf>[0]> = {}, hostname = HOST) => {
  const source = {
    campaignId: CAMPAIGN,
    subscriptionGroupId: null,
    accountId: 'acct_one',
    stream: 'tx',
  } as const;
  return `Feedback-ID: ${feedbackIdOf({ ...source, ...changed }, hostname)}`;
};
const NOTHING = { campaign: 0, providers: [], account: [] };

describe('a complaint', () => {
  it('about a message counts once for its campaign', async () => {
    const setup = await start();
    const message = await setup.delivered({ campaign_id: CAMPAIGN, recipient: 'ada@yahoo.com' });
    const returned = setup.signedId(message.message_id);
    expect(await setup.complain(`fbl@${HOST}`, returned)).toMatch(/^250 /);
    expect(await setup.complain(`fbl@${HOST}`, returned)).toMatch(/^250 /);
    expect(setup.counted()).toEqual({ campaign: 1, providers: ['Yahoo 1'], account: ['Yahoo 1'] });
  });

  it('of a feedback loop with a Feedback-ID only counts once for the campaign', async () => {
    const setup = await start();
    for (const to of [`fbl@${HOST}`, `abuse@${HOST}`])
      expect(await setup.complain(to, feedbackId())).toMatch(/^250 /);
    expect(setup.counted()).toEqual({ campaign: 1, providers: ['Yahoo 1'], account: ['Yahoo 1'] });
    const { rows: events } = setup.tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 });
    expect(events.map(({ kind, data }) => [kind, JSON.parse(data)])).toEqual([
      [
        'email_complained',
        {
          useCase: 'tx',
          campaignId: CAMPAIGN,
          source: 'arf',
          feedbackType: 'abuse',
          verified: true,
          suppressed: false,
        },
      ],
    ]);
  });

  it('about a message that was deleted counts, and suppresses the recipient that it names', async () => {
    const setup = await start();
    const to = `${setup.tokens.of('acct_one').feedback(setup.ids.make('msg'))}@${RETURN}`;
    const returned = `${feedbackId()}\r\nX-HmXmrOriginalRecipient: Ada@example.net`;
    const report = arf('abuse', returned).replace(
      'Version: 1',
      'Version: 1\r\nOriginal-Rcpt-To: <Ada@Example.net>',
    );
    const mail = signMail(report, 'feedback@arf.mail.yahoo.com', 'yahoo.com', NOW);
    expect(await (await setup.client()).mail('', to, mail)).toMatch(/^250 /);
    expect(setup.counted()).toMatchObject({ campaign: 1 });
    const [row] = setup.tables.suppressions.list({ accountId: 'acct_one', beforeSeq: null, limit: 10 }).rows;
    expect(row).toMatchObject({ reason: 'complaint', stream: 'all', email: null });
  });

  it.each<[string, Parameters<Awaited<ReturnType<typeof start>>['complain']>]>([
    ['that nobody vouches for', [`fbl@${HOST}`, feedbackId(), 'evil.example']],
    ['about another installation', [`fbl@${HOST}`, feedbackId({}, 'mail.elsewhere.example')]],
    ['about an unknown account', [`fbl@${HOST}`, feedbackId({ accountId: 'acct_other' })]],
    ['about an unknown campaign', [`fbl@${HOST}`, feedbackId({ campaignId: 'campaign_two' })]],
    ['that is none', [`fbl@${HOST}`, feedbackId(), 'yahoo.com', 'not-spam']],
    ['without any id', [`fbl@${HOST}`, 'Subject: Hello']],
  ])('%s counts nowhere and is kept', async (_, complaint) => {
    const setup = await start();
    expect(await setup.complain(...complaint)).toMatch(/^250 /);
    expect(setup.counted()).toEqual(NOTHING);
    expect(setup.kept()).toHaveLength(1);
  });
});
