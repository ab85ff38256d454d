import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { applyReport } from '../../src/events/incoming.ts';
import { type IncomingReport, NO_BOUNCE } from '../../src/mail/incoming/report.ts';
import type { UseCase } from '../../src/store/domains/domains.ts';
import type { SuppressionReason, SuppressionStream } from '../../src/store/suppressions.ts';
import { startAudience } from '../audience/setup.ts';
import { exampleEvent } from '../support/events.ts';
import { enqueue } from '../support/store.ts';

/*
 * What reports that come in by mail make of a contact in the course of days: of the suppression list, of the
 * contact's status, of the campaign's counts.
 */
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
  'no domain': {
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

/** taken: delivered without further reports. abuse: reported as abuse. */
type Fate = keyof typeof REPORTS | 'taken' | 'abuse';

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
    status: 'draft',
    created_at: now,
    updated_at: now,
  });
  /** One mail more: taken by its server, and then what became of it; each report comes twice. */
  const mail = async (fate: Fate, useCase: UseCase = 'mk') => {
    const { seq, recipient_hash: hash } = await writer.run((all) =>
      enqueue(all, clock.now(), { recipient: ADA, campaign_id: CAMPAIGN, use_case: useCase }),
    );
    const message = () => tables.messages.bySeq(seq) ?? expect.unreachable();
    for (const kind of ['email_sent', 'email_delivered'] as const)
      await writer.run((all) => recorder.message(all, message(), exampleEvent(kind)));
    const report = fate === 'abuse' ? COMPLAINT : fate === 'taken' ? null : REPORTS[fate];
    const kind = fate === 'abuse' ? 'arf' : 'dsn';
    const comesBack = report === null ? [] : [report, report];
    for (const each of comesBack) {
      const fingerprint = Buffer.from('the same');
      const cameBack = { kind, reports: [each], fingerprint, verified: true } as const;
      await writer.run((all) => applyReport(recorder, all, message(), cameBack, clock.now()));
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

type Suppressed = `${SuppressionReason} ${SuppressionStream}`;

describe('several messages over time', () => {
  it.each<[string, [day: number, fate: Fate][], Suppressed[], status: string]>([
    [
      'all of it taken',
      [
        [0, 'taken'],
        [1, 'taken'],
      ],
      [],
      'active',
    ],
    ['one to an unknown user', [[0, 'unknown']], ['hard_bounce all'], 'bounced'],
    ['one that failed for its domain', [[0, 'no domain']], [], 'active'],
    [
      'two of them on one day',
      [
        [0, 'no domain'],
        [0.1, 'no domain'],
      ],
      [],
      'active',
    ],
    [
      'two of them on two days',
      [
        [0, 'no domain'],
        [1, 'no domain'],
      ],
      ['hard_bounce all'],
      'bounced',
    ],
    [
      'two of them, and a delivery between',
      [
        [0, 'no domain'],
        [1, 'taken'],
        [2, 'no domain'],
      ],
      [],
      'active',
    ],
    [
      'two of them, three months apart',
      [
        [0, 'no domain'],
        [91, 'no domain'],
      ],
      [],
      'active',
    ],
    [
      'four over quota',
      [
        [0, 'full'],
        [1, 'full'],
        [2, 'full'],
        [3, 'full'],
      ],
      [],
      'active',
    ],
    [
      'five over quota within two weeks',
      [
        [0, 'full'],
        [3, 'full'],
        [6, 'full'],
        [9, 'full'],
        [13, 'full'],
      ],
      ['soft_bounces all'],
      'bounced',
    ],
    [
      'five over quota on one day',
      [
        [0, 'full'],
        [0.1, 'full'],
        [0.2, 'full'],
        [0.3, 'full'],
        [0.4, 'full'],
      ],
      ['soft_bounces all'],
      'bounced',
    ],
    [
      'five over quota in more than two weeks',
      [
        [0, 'full'],
        [4, 'full'],
        [8, 'full'],
        [12, 'full'],
        [15, 'full'],
      ],
      [],
      'active',
    ],
    [
      'six over quota, of which the last five count',
      [
        [0, 'full'],
        [4, 'full'],
        [8, 'full'],
        [12, 'full'],
        [15, 'full'],
        [16, 'full'],
      ],
      ['soft_bounces all'],
      'bounced',
    ],
    [
      'five over quota, and a delivery between',
      [
        [0, 'full'],
        [1, 'full'],
        [2, 'full'],
        [3, 'full'],
        [4, 'taken'],
        [5, 'full'],
      ],
      [],
      'active',
    ],
    [
      'ten that were slow, late, or refused for the sender',
      [
        ...Array.from({ length: 4 }, (_, n): [number, Fate] => [n, 'listed']),
        ...Array.from({ length: 3 }, (_, n): [number, Fate] => [n + 4, 'late']),
        ...Array.from({ length: 3 }, (_, n): [number, Fate] => [n + 7, 'slow']),
      ],
      [],
      'active',
    ],
    ['a complaint', [[0, 'abuse']], ['complaint mk'], 'complained'],
    [
      'a complaint, and an unknown user after it',
      [
        [0, 'abuse'],
        [1, 'unknown'],
      ],
      ['complaint mk', 'hard_bounce all'],
      'complained',
    ],
  ])('%s', async (_, mails, suppressed, status) => {
    const env = await start();
    let day = 0;
    let list: string[] = [];
    for (const [at, fate] of mails) {
      env.clock.advance((at - day) * DAY);
      day = at;
      list = await env.mail(fate);
    }
    expect(list).toEqual(suppressed);
    expect(env.status(ADA)).toBe(status);
  });

  it('a complaint about transactional mail suppresses all mail', async () => {
    const env = await start();
    expect(await env.mail('abuse', 'tx')).toEqual(['complaint all']);
    expect(env.status(ADA)).toBe('complained');
  });

  it('counts each report once in the campaign', async () => {
    const env = await start();
    for (const fate of ['taken', 'full', 'full', 'unknown', 'abuse', 'slow'] as const) await env.mail(fate);
    expect(env.counts()).toEqual({
      sent: 6,
      delivered: 6,
      bounced: 3,
      complained: 1,
      deferred: 1,
    });
  });
});
