import { describe, expect, it } from 'vitest';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { arf, dsn } from './mails.ts';
import { RETURN, startMx } from './setup.ts';

/** A listener whose account sent a message before it came from another installation. */
async function start() {
  const setup = await startMx();
  const { tables, writer, ids, clock } = setup;
  const message = {
    message_id: ids.make('msg'),
    account_id: 'acct_one',
    recipient_hash: emailIdentifier('ada@example.net'),
    use_case: 'mk',
    campaign_id: null,
    subscription_group_id: 'sgroup_1700000000000_abcdefghijkl',
    created_at: clock.now(),
  } as const;
  await writer.run((tx) => tx.movedMessages.insert(message));
  const client = await setup.client();
  const tokens = setup.tokens.of('acct_one');
  return {
    ...setup,
    message,
    mail: (token: 'returnPath' | 'feedback' | 'unsubscribe', text: string) =>
      client.mail('', `${tokens[token](message.message_id)}@${RETURN}`, text),
    reasons: () =>
      tables.suppressions
        .of('acct_one', message.recipient_hash)
        .map(({ reason, stream }) => `${reason} ${stream}`),
    feed: () =>
      tables.events
        .feed({ accountId: 'acct_one', afterSeq: 0, limit: 100 })
        .rows.map(({ kind, data }) => ({ kind, ...JSON.parse(data) })),
  };
}

describe('a report about a message that another installation sent', () => {
  it('suppresses after a bounce, once, without the address', async () => {
    const { mail, reasons, feed, message } = await start();
    for (let copy = 0; copy < 2; copy++)
      expect(await mail('returnPath', dsn({ recipient: 'ada@example.net' }))).toMatch(/^250 /);
    expect(reasons()).toEqual(['hard_bounce all']);
    expect(feed()).toEqual([
      expect.objectContaining({
        kind: 'email_bounced',
        bounceType: 'hard',
        contactIdentifier: message.recipient_hash,
        subscriptionGroupId: message.subscription_group_id,
        useCase: 'mk',
        diagnostic: '',
        suppressed: true,
        verified: true,
      }),
    ]);
  });

  it('does not suppress after one bounce that is about another address', async () => {
    const { mail, reasons } = await start();
    await mail('returnPath', dsn({ recipient: 'someone@example.org' }));
    expect(reasons()).toEqual([]);
  });

  it('ends marketing mail after a complaint', async () => {
    const { mail, reasons, feed } = await start();
    for (let copy = 0; copy < 2; copy++) expect(await mail('feedback', arf())).toMatch(/^250 /);
    expect(reasons()).toEqual(['complaint mk']);
    expect(feed()).toMatchObject([{ kind: 'email_complained', verified: false }]);
  });

  it('is an opt-out when it is sent to the unsubscribe address', async () => {
    const { mail, optedOut, message } = await start();
    await mail('unsubscribe', 'From: ada@example.net\r\nSubject: unsubscribe\r\n\r\n');
    expect(optedOut).toEqual([message.message_id]);
  });

  it('is no opt-out when it is sent there by a mail server', async () => {
    const { mail, optedOut } = await start();
    await mail('unsubscribe', 'From: MAILER-DAEMON@example.net\r\n\r\nNicht zustellbar\r\n');
    expect(optedOut).toEqual([]);
  });

  it('changes nothing when it is a delay', async () => {
    const { mail, reasons, feed } = await start();
    expect(await mail('returnPath', dsn({ action: 'delayed', status: '4.4.1' }))).toMatch(/^250 /);
    expect([reasons(), feed()]).toEqual([[], []]);
  });
});
