import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { applyReport } from '../../src/events/incoming.ts';
import { type IncomingReport, NO_BOUNCE } from '../../src/mail/incoming/report.ts';
import type { Stream } from '../../src/store/domains/domains.ts';
import { startAudience } from '../audience/setup.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue } from '../support/store.ts';

/* The effects of received reports over several days: on the suppression list, the contact's status, the campaign's counts. */
const ADA = 'ada@example.net';
const CAMPAIGN = 'campaign_one';

const FAILED: IncomingReport = { ...NO_BOUNCE, recipient: ADA, action: 'failed', diagnostic: 'no' };
const REPORTS = {
  full: { ...FAILED, status: '5.2.2', bounceType: 'soft', classification: 'mailbox-full' },
  unknown: {
    ...FAILED,
    status: '5.1.1',
    bounceType: 'hard',
    classification: 'invalid-recipient',
    suppress: 'now',
  },
  domain: {
    ...FAILED,
    status: '5.1.2',
    bounceType: 'hard',
    classification: 'invalid-domain',
    suppress: 'second-time',
  },
  listed: {
    ...FAILED,
    status: '5.7.1',
    bounceType: 'block',
    classification: 'reputation-block',
    scope: 'sender',
  },
  late: { ...FAILED, status: '5.4.7', bounceType: 'soft', classification: 'expired', scope: 'site' },
  slow: { ...FAILED, action: 'delayed', status: '4.4.1', classification: 'network-error' },
} satisfies Record<string, IncomingReport>;

const COMPLAINT = {
  ...NO_BOUNCE,
  recipient: '',
  action: 'complained',
  diagnostic: '',
  feedbackType: 'abuse',
};

/** What follows a delivery: a report, nothing ('delivered'), or a complaint ('abuse'). */
type Sequel = keyof typeof REPORTS | 'delivered' | 'abuse';

async function start() {
  const env = await startAudience();
  const { tables, writer, recorder, clock } = env;
  await env.add(ADA);
  const now = clock.now();
  tables.campaigns.insert({
    campaign_id: CAMPAIGN,
    account_id: 'acct_one',
    name: 'Spring',
    description: null,
    prepared: null,
    status: 'draft',
    created_at: now,
    updated_at: now,
  });
  /** Delivers a message, and applies its report twice; returns the recipient's suppressions. */
  const mail = async (sequel: Sequel, useCase: Stream = 'mk') => {
    const { seq, recipient_hash: hash } = await writer.run((tx) =>
      enqueue(tx, clock.now(), { recipient: ADA, campaign_id: CAMPAIGN, use_case: useCase }),
    );
    const message = () => tables.messages.bySeq(seq) ?? expect.unreachable();
    for (const kind of ['email_sent', 'email_delivered'] as const)
      await writer.run((tx) => recorder.message(tx, message(), exampleEvent(kind)));
    if (sequel !== 'delivered') {
      const report = {
        kind: sequel === 'abuse' ? 'arf' : 'dsn',
        reports: [sequel === 'abuse' ? COMPLAINT : REPORTS[sequel]],
        fingerprint: Buffer.from('the same'),
        verified: true,
      } as const;
      for (let copy = 0; copy < 2; copy++)
        await writer.run((tx) => applyReport(recorder, tx, message(), report, clock.now()));
    }
    return tables.suppressions.of('acct_one', hash).map(({ reason, stream }) => `${reason} ${stream}`);
  };
  const counts = () =>
    Object.fromEntries(
      Object.entries(
        tables.campaignCounts.totals({ campaignId: CAMPAIGN, from: 0, to: Number.MAX_SAFE_INTEGER }),
      ).filter(([, count]) => count > 0),
    );
  return { ...env, mail, counts };
}

/** Messages as `day:sequel`, then the contact's status and its suppressions. */
const CASES: Record<string, [mails: string, status: string, ...suppressed: string[]]> = {
  'only deliveries': ['0:delivered 1:delivered', 'active'],
  'one unknown user': ['0:unknown', 'bounced', 'hard_bounce all'],
  'one unknown domain': ['0:domain', 'active'],
  'two unknown domains on one day': ['0:domain 0.1:domain', 'active'],
  'two unknown domains on two days': ['0:domain 1:domain', 'bounced', 'hard_bounce all'],
  'a delivery between two unknown domains': ['0:domain 1:delivered 2:domain', 'active'],
  'two unknown domains, three months apart': ['0:domain 91:domain', 'active'],
  'four over quota': ['0:full 1:full 2:full 3:full', 'active'],
  'five over quota in two weeks': ['0:full 3:full 6:full 9:full 13:full', 'bounced', 'soft_bounces all'],
  'five over quota on one day': ['0:full 0.1:full 0.2:full 0.3:full 0.4:full', 'bounced', 'soft_bounces all'],
  'five over quota in more than two weeks': ['0:full 4:full 8:full 12:full 15:full', 'active'],
  'six over quota, the last five in two weeks': [
    '0:full 4:full 8:full 12:full 15:full 16:full',
    'bounced',
    'soft_bounces all',
  ],
  'a delivery between five over quota': ['0:full 1:full 2:full 3:full 4:delivered 5:full', 'active'],
  'ten that were delayed, expired, or rejected for the sender': [
    '0:listed 1:listed 2:listed 3:listed 4:late 5:late 6:late 7:slow 8:slow 9:slow',
    'active',
  ],
  'a complaint': ['0:abuse', 'complained', 'complaint mk'],
  'an unknown user after a complaint': ['0:abuse 1:unknown', 'complained', 'complaint mk', 'hard_bounce all'],
};

function isSequel(text: string): text is Sequel {
  return text === 'delivered' || text === 'abuse' || Object.hasOwn(REPORTS, text);
}

describe('several messages over time', () => {
  it('suppress the contact by these rules', async () => {
    const results: Record<string, unknown> = {};
    for (const [name, [mails]] of Object.entries(CASES)) {
      const env = await start();
      let today = 0;
      let suppressed: string[] = [];
      for (const each of mails.split(' ')) {
        const [day, sequel = ''] = each.split(':');
        if (!isSequel(sequel)) expect.unreachable();
        env.clock.advance((Number(day) - today) * DAY);
        today = Number(day);
        suppressed = await env.mail(sequel);
      }
      results[name] = [mails, env.status(ADA), ...suppressed];
    }
    expect(results).toEqual(CASES);
  });

  it('a complaint about transactional mail suppresses all mail', async () => {
    const env = await start();
    expect(await env.mail('abuse', 'tx')).toEqual(['complaint all']);
    expect(env.status(ADA)).toBe('complained');
  });

  it('counts each report once in the campaign', async () => {
    const env = await start();
    for (const sequel of ['delivered', 'full', 'full', 'unknown', 'abuse', 'slow'] as const)
      await env.mail(sequel);
    expect(env.counts()).toEqual({
      sent: 6,
      delivered: 6,
      bounced: 3,
      hardBounced: 1,
      complained: 1,
      deferred: 1,
    });
  });
});
