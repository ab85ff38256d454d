import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { composeInSteps, messageBytes } from '../../src/mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../src/mail/content.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { Accepted } from '../../src/sending/accept.ts';
import { sendingObstacle } from '../../src/sending/checks.ts';
import type { NewSuppression } from '../../src/store/suppressions.ts';
import { refused } from '../support/refusal.ts';
import { insertDomain } from '../support/store.ts';
import { HTML, startAcceptance } from './acceptance.ts';

const ADA = 'ada@example.net';
const PLAIN = { subject: 'Your code', templateVariables: { name: 'Ada' } };
const WITHOUT_OPT_OUT = { ...PLAIN, html: '<p>1234</p>{{company_address_html}}' };

function accepted(result: Accepted | Refusal): { warnings?: string[] } {
  if (isRefusal(result)) throw new Error(`${result.code} ${result.message}`);
  return JSON.parse(result.body).data;
}

const suppression = (reason: NewSuppression['reason'], stream: NewSuppression['stream']): NewSuppression => ({
  account_id: 'acct_one',
  recipient_hash: emailIdentifier(ADA),
  stream,
  reason,
  email: ADA,
  message_seq: null,
  created_at: 1,
});

const COPY: CopyDetails = {
  kind: 'transactional',
  recipient: ADA,
  unsubscribeUrl: 'https://t.example.com/u/abc',
  reportAbuseUrl: 'https://t.example.com/r/abc',
  unsubscribeAddress: null,
  signedId: 'abc',
  feedbackAddress: null,
  feedbackId: 'tx:a:tx:postrider',
};
const composed = (content: MessageContent) =>
  messageBytes(withoutPause(composeInSteps(content, COPY))).toString();

describe('essential mail', () => {
  it('is accepted for a recipient who unsubscribed from transactional mail, and needs no unsubscribe link', async () => {
    const { send, tables, stored } = startAcceptance();
    tables.suppressions.add(suppression('unsubscribe', 'tx'));
    expect(refused(await send({})).code).toBe('RECIPIENT_UNSUBSCRIBED');
    expect(refused(await send(WITHOUT_OPT_OUT)).extras.details).toMatchObject([
      { field: 'html', name: 'unsubscribe_email_html' },
    ]);
    accepted(await send({ ...WITHOUT_OPT_OUT, essential: true }));
    expect(stored()).toMatchObject([{ essential: 1 }]);
  });

  it('requires the company address', async () => {
    const { send } = startAcceptance();
    const refusal = refused(await send({ ...PLAIN, html: '<p>1234</p>', essential: true }));
    expect(refusal.extras.details).toMatchObject([{ name: 'company_address_html' }]);
  });

  it.each<[NewSuppression['reason'], NewSuppression['stream']]>([
    ['hard_bounce', 'all'],
    ['soft_bounces', 'all'],
    ['complaint', 'tx'],
    ['manual', 'all'],
  ])('is refused after %s', async (reason, stream) => {
    const { send, tables } = startAcceptance();
    tables.suppressions.add(suppression('unsubscribe', 'tx'));
    tables.suppressions.add(suppression(reason, stream));
    expect(refused(await send({ ...WITHOUT_OPT_OUT, essential: true })).code).toBe('RECIPIENT_SUPPRESSED');
  });

  it('is sent after an opt-out and dropped after a complaint', async () => {
    const { send, tables, stored } = startAcceptance();
    accepted(await send({ ...WITHOUT_OPT_OUT, essential: true }));
    accepted(await send({}));
    const [ordinary, essential] = stored();
    if (!ordinary || !essential) throw new Error('not stored');
    tables.suppressions.add(suppression('unsubscribe', 'tx'));
    expect(sendingObstacle(tables, essential)).toBeNull();
    expect(sendingObstacle(tables, ordinary)).toMatchObject({
      fields: { reasonCode: 'RECIPIENT_UNSUBSCRIBED' },
    });
    tables.suppressions.add(suppression('complaint', 'tx'));
    expect(sendingObstacle(tables, essential)).toMatchObject({
      fields: { reasonCode: 'RECIPIENT_SUPPRESSED' },
    });
  });

  it('is refused for a key without permission', async () => {
    const { send, tables } = startAcceptance();
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    const sender = { account, useCase: 'tx', allowFrom: [], allowEssential: false } as const;
    const refusal = refused(await send({ essential: true }, { sender: { ...sender, allowFrom: [] } }));
    expect([refusal.code, refusal.status]).toEqual(['KEY_NOT_ALLOWED', 403]);
    expect(refusal.extras.details).toMatchObject([{ field: 'essential' }]);
    accepted(await send({ essential: false }, { sender: { ...sender, allowFrom: [] } }));
  });

  it('is refused when a raw value hides the company address, not the unsubscribe link', async () => {
    const { send } = startAcceptance();
    const html = '{{{name}}}<p>1234</p>{{company_address_html}}';
    accepted(await send({ ...PLAIN, html, essential: true }));
    const hidden = await send({ ...PLAIN, html, essential: true, templateVariables: { name: '<!--' } });
    expect(refused(hidden).extras.details).toMatchObject([{ name: 'company_address_html' }]);
  });
});

describe('text-only mail', () => {
  const text = 'Hello {{name}}\n\n{{company_address_html}}\n{{unsubscribe_email_html}}\n';
  const request = { ...PLAIN, html: undefined, text };

  it('is sent as text/plain only, with the variables in their text form', async () => {
    const { send, contents } = startAcceptance();
    accepted(await send(request));
    const [content] = contents();
    if (!content) throw new Error('not stored');
    expect(content.html).toBe('');
    const message = composed(content);
    expect(message).toMatch(/^Content-Type: text\/plain; charset=utf-8\r$/m);
    expect(message).not.toMatch(/multipart|text\/html|<span/);
    expect(message).toContain(
      [
        'Hello Ada',
        '',
        'Example Ltd',
        '1 Main St, Town, 12345, GB',
        'This message was sent to ada@example.net by shop@example.com. Unsubscribe <https://t.example.com/u/abc>',
      ].join('\r\n'),
    );
  });

  it.each([
    ['the aliases', '{{company_address_text}} {{unsubscribe_email_text}}'],
    ['the plain forms', '{{company_address}} {{unsubscribe_url}}'],
  ])('can use %s', async (_, variables) => {
    const { send, contents } = startAcceptance();
    accepted(await send({ ...request, text: variables }));
    expect(contents()[0]?.text).toContain('1 Main St, Town, 12345, GB');
  });

  it.each<[string, string, string[]]>([
    ['neither variable', 'Hello', ['company_address_html', 'unsubscribe_email_html']],
    ['one of them', '{{company_address_html}}', ['unsubscribe_email_html']],
    [
      'escaped ones',
      '\\{{company_address_html}} \\{{unsubscribe_email_html}}',
      ['company_address_html', 'unsubscribe_email_html'],
    ],
  ])('is refused with %s', async (_, words, names) => {
    const refusal = refused(await startAcceptance().send({ ...request, text: words }));
    expect(refusal.code).toBe('COMPLIANCE_TEMPLATE_MISSING');
    expect(refusal.extras.details).toMatchObject(names.map((name) => ({ field: 'text', name })));
  });

  it('is refused without text or with an empty one', async () => {
    const { send } = startAcceptance();
    const both = refused(await send({ ...PLAIN, html: undefined }));
    expect([both.code, both.status]).toEqual(['VALIDATION_ERROR', 400]);
    expect(both.extras.details).toEqual([{ field: 'html', message: 'is required, unless text is given' }]);
    expect(refused(await send({ ...request, text: '' })).code).toBe('VALIDATION_ERROR');
  });

  it('has no tracking, with a warning', async () => {
    const { send } = startAcceptance();
    expect(accepted(await send({ ...request, enableClickTracking: true })).warnings).toEqual([
      'enableClickTracking has no effect on a message without html',
    ]);
    expect(accepted(await send({ ...PLAIN, enableClickTracking: true })).warnings).toBeUndefined();
  });

  it('does not apply to html, where the aliases insert html', async () => {
    const { send, contents } = startAcceptance();
    accepted(await send({ ...PLAIN, html: `${HTML}{{company_address_text}}` }));
    expect(contents()[0]?.html.match(/<strong>Example Ltd/g)).toHaveLength(2);
  });
});

describe('a calendar object', () => {
  const calendar = { method: 'REQUEST', content: 'BEGIN:VCALENDAR\nMETHOD:REQUEST\nEND:VCALENDAR' };

  it('is an alternative of the text and a file', async () => {
    const { send, contents } = startAcceptance();
    accepted(await send({ ...PLAIN, calendar }));
    const [content] = contents();
    if (!content) throw new Error('not stored');
    const types = [...composed(content).matchAll(/^Content-Type: ([^;\r]+)/gm)].map(([, type]) => type);
    expect(types).toEqual([
      'multipart/mixed',
      'multipart/alternative',
      'text/plain',
      'text/html',
      'text/calendar',
      'application/ics',
    ]);
    expect(composed(content)).toContain('filename="invite.ics"');
  });

  it('counts as an attachment', async () => {
    const { send } = startAcceptance();
    const free = 2 * 1024 * 1024 - Buffer.byteLength(calendar.content) - 4;
    const file = (bytes: number) => ({
      name: 'a',
      contentType: 'application/pdf',
      content: Buffer.alloc(bytes).toString('base64'),
    });
    accepted(await send({ ...PLAIN, calendar, attachments: [file(free)] }));
    expect(refused(await send({ ...PLAIN, calendar, attachments: [file(free + 1)] })).code).toBe(
      'ATTACHMENTS_TOO_LARGE',
    );
  });

  it('that is malformed is refused with the field', async () => {
    const refusal = refused(
      await startAcceptance().send({ ...PLAIN, calendar: { ...calendar, method: 'X' } }),
    );
    expect(refusal.extras.details).toMatchObject([{ field: 'calendar.method' }]);
  });
});

describe('the list of marketing mail', () => {
  it('is its group, else its campaign, else none', async () => {
    const { send, tables, contents, clock } = startAcceptance();
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_mk', name: 'example.com', use_case: 'mk' },
      clock.now(),
    );
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    const sender = { account, useCase: 'mk', allowFrom: [], allowEssential: true } as const;
    const group = 'sgroup_1700000000000_abcdefghijkl';
    const campaign = 'campaign_1700000000000_abcdefghijkl';
    const times = { created_at: clock.now(), updated_at: clock.now() };
    tables.subscriptionGroups.insert({
      subscription_group_id: group,
      account_id: 'acct_one',
      name: 'News',
      description: null,
      is_active: 1,
      tags: '[]',
      unsubscribe_template_id: null,
      report_abuse_template_id: null,
      company_address_template_id: null,
      sign_up: null,
      is_public: null,
      archive_key: null,
      ...times,
    });
    tables.campaigns.insert({
      campaign_id: campaign,
      account_id: 'acct_one',
      name: 'Winback of the lost',
      description: null,
      prepared: null,
      status: 'draft',
      ...times,
    });
    const list = async (changes: object) => {
      const to = 'delivered@simulator.mail.test';
      accepted(await send({ to, ...changes }, { sender: { ...sender, allowFrom: [] } }));
      return contents()[0]?.list;
    };
    expect(await list({ subscriptionGroupId: group, campaignId: campaign })).toEqual({
      id: group,
      name: 'News',
    });
    expect(await list({ campaignId: campaign })).toEqual({ id: campaign, name: '' });
    expect(await list({})).toBeUndefined();
  });
});

describe('one-click unsubscribe', () => {
  const marketing = (env: ReturnType<typeof startAcceptance>) => {
    const { tables, clock, send } = env;
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_mk', name: 'example.com', use_case: 'mk' },
      clock.now(),
    );
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    return (changes: object = {}) =>
      send(
        { to: 'delivered@simulator.mail.test', ...changes },
        { sender: { account, useCase: 'mk', allowFrom: [], allowEssential: true } },
      );
  };

  it('that is impossible causes a warning at startup and for the first accepted marketing send', async () => {
    const env = startAcceptance({}, 'http://127.0.0.1:8081');
    const send = marketing(env);
    expect(env.logged).toEqual(['public.url is not https: marketing mail has no one-click unsubscribe']);
    expect(accepted(await env.send({})).warnings).toBeUndefined();
    refused(await send({ html: 'x' }));
    expect(accepted(await send()).warnings).toEqual([expect.stringContaining('public.url is not https')]);
    expect(accepted(await send()).warnings).toBeUndefined();
    expect(env.logged.slice(1)).toEqual([
      'marketing mail without one-click unsubscribe accepted: public.url is not https',
    ]);
  });

  it('over https causes no warning', async () => {
    const env = startAcceptance();
    expect(accepted(await marketing(env)()).warnings).toBeUndefined();
    expect(env.logged).toEqual([]);
  });
});
