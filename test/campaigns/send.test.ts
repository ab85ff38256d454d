import { describe, expect, it } from 'vitest';
import type { CampaignRequest } from '../../src/campaigns/mail.ts';
import { DAY, HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import { isRefusal, refuse } from '../../src/core/refusal.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import type { CampaignStatus } from '../../src/store/campaigns/campaigns.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { insertDomain } from '../support/store.ts';
import { COMPLIANCE, refusal, startCampaigns } from './setup.ts';

const ADA = 'ada@example.net';
const customFields = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `{{customFields.f${from + n}}}`).join('');

describe('a campaign that cannot be sent', () => {
  it.each<[why: string, changes: Partial<CampaignRequest>, code: string, named: string[]]>([
    ['an unknown group', { subscriptionGroupId: 'sgroup_1' }, 'SUBSCRIPTION_GROUP_NOT_FOUND', []],
    [
      'an unknown template',
      { subject: undefined, html: undefined, templateId: 'template_1' },
      'TEMPLATE_NOT_FOUND',
      [],
    ],
    ['a domain of another account', { from: 'a@other.example' }, 'DOMAIN_NOT_REGISTERED', ['from']],
    ['a domain for transactional mail', { from: 'a@example.com' }, 'USE_CASE_MISMATCH', ['from']],
    ['a domain not yet verified', { from: 'a@pending.example' }, 'DOMAIN_NOT_VERIFIED', ['from']],
    [
      'html without compliance',
      { html: '<p>Hello</p>' },
      'COMPLIANCE_TEMPLATE_MISSING',
      ['company_address_html', 'unsubscribe_email_html'],
    ],
    ['no sender', { from: 'nobody' }, 'VALIDATION_ERROR', ['from']],
    ['no subject', { subject: undefined }, 'VALIDATION_ERROR', ['subject']],
    ['a time too far away', { scheduledAt: '2027-01-01T00:00:00Z' }, 'VALIDATION_ERROR', ['scheduledAt']],
    ['a time that has passed', { scheduledAt: '2020-01-01T00:00:00Z' }, 'VALIDATION_ERROR', ['scheduledAt']],
    ['a day without a time', { scheduledAt: '2026-01-20' }, 'VALIDATION_ERROR', ['scheduledAt']],
    [
      'values for contact fields',
      { templateVariables: { email: 'x', customFields: {}, month: 'May' } },
      'VALIDATION_ERROR',
      ['templateVariables.email', 'templateVariables.customFields'],
    ],
    [
      'variables of the service',
      { templateVariables: { company_address: 'x' } },
      'VALIDATION_ERROR',
      ['templateVariables.company_address'],
    ],
    [
      'a number that cannot be represented',
      { subject: '{{n}}', templateVariables: { n: 2 ** 64 } },
      'VALIDATION_ERROR',
      ['templateVariables.n'],
    ],
    ['an unknown variable', { subject: '{{fristName}}' }, 'TEMPLATE_VARIABLE_MISSING', ['fristName']],
    [
      'a custom field that no contact has',
      { text: '{{customFields.city}}' },
      'TEMPLATE_VARIABLE_MISSING',
      ['customFields.city'],
    ],
    [
      'more custom fields than a campaign can use',
      { text: 'x', html: `${COMPLIANCE}${customFields(0, 201)}` },
      'VALIDATION_ERROR',
      ['html'],
    ],
    [
      'more custom fields in all parts together',
      { text: customFields(101, 201), html: `${COMPLIANCE}${customFields(0, 101)}` },
      'VALIDATION_ERROR',
      ['text'],
    ],
    [
      'a property of a field that is a string',
      { text: '{{email.local}}' },
      'TEMPLATE_VARIABLE_MISSING',
      ['email.local'],
    ],
    ['all custom fields together', { text: '{{customFields|none}}' }, 'VALIDATION_ERROR', ['customFields']],
    [
      'a custom field with a character that names cannot have',
      { text: '{{ customFields.first-name | friend }}' },
      'TEMPLATE_VARIABLE_MISSING',
      ['customFields.first-name'],
    ],
    [
      'a value whose name has a character that names cannot have',
      { subject: '{{ first name }}', templateVariables: { 'first name': 'Ada' } },
      'TEMPLATE_VARIABLE_MISSING',
      ['first name'],
    ],
    [
      'a line break for the subject',
      { subject: '{{a}}', templateVariables: { a: '1\n2' } },
      'VALIDATION_ERROR',
      ['a'],
    ],
  ])('because of %s', async (_, changes, code, named) => {
    const { member, send, tables, clock, campaigns } = await startCampaigns();
    const row = {
      account_id: 'acct_one',
      domain_id: 'domain_p',
      name: 'pending.example',
      use_case: 'mk',
      status: 'PENDING',
    } as const;
    insertDomain(tables, row, clock.now());
    await member(ADA, { customFields: { plan: 'gold' } });
    expect(refusal(await send(changes))).toEqual([code, named]);
    const { rows } = await campaigns.list({ accountId: 'acct_one', beforeSeq: null, limit: 9 });
    expect(rows[0]?.status).toBe('draft');
    expect(tables.campaignSends.open()).toEqual([]);
  });

  it('because it does not exist or belongs to another account', async () => {
    const { send } = await startCampaigns();
    expect(refusal(await send({}, { id: 'campaign_1' }))).toEqual(['CAMPAIGN_NOT_FOUND', []]);
  });

  it('because the key cannot use the domain, the group is inactive, or the daemon is under pressure', async () => {
    const { send, audience, groupId, setPressure } = await startCampaigns();
    expect(refusal(await send({}, { allowFrom: ['other.example'] }))[0]).toBe('KEY_NOT_ALLOWED');
    granted(await audience.groups.update('acct_one', groupId, { isActive: false }));
    expect(refusal(await send())[0]).toBe('INVALID_STATE');
    setPressure(refuse('UNAVAILABLE', 'full'));
    expect(refusal(await send())[0]).toBe('UNAVAILABLE');
  });

  it('because the company address is missing', async () => {
    const { send, tables } = await startCampaigns();
    const account = tables.accounts.get('acct_one');
    if (account === null) throw new Error('no account');
    tables.accounts.update({ ...account, company_address: null });
    expect(refusal(await send())[0]).toBe('COMPANY_ADDRESS_MISSING');
  });

  it('a second time, whatever its status', async () => {
    const { send, sending, draft } = await startCampaigns();
    const id = await draft();
    granted(await send({}, { id }));
    const again = await send({}, { id });
    expect(again).toMatchObject({
      code: 'INVALID_STATE',
      message: 'The campaign is sending and can be sent only once: create a new one to send again',
    });
    granted(await sending.cancel('acct_one', id));
    expect(refusal(await send({}, { id }))[0]).toBe('INVALID_STATE');
  });
});

describe('a campaign that is sent', () => {
  it('goes to each member once, with the member’s fields, addressed to no one else', async () => {
    const { member, send, runner, until, messages, content, deliverAll, progress, groupId } =
      await startCampaigns();
    await member(ADA, {
      firstName: 'Ada',
      lastName: 'Lovelace',
      customFields: { plan: 'gold', a: { b: 1 } },
    });
    await member('grace@example.org', { phone: '+442071838750', customFields: { plan: '<b>' } });
    const row = granted(
      await send({
        from: 'News <news@news.example>',
        replyTo: 'help@news.example',
        subject: '{{firstName|friend}}: {{offer}}',
        html: `{{customFields.plan}}, {{customFields.a.b}}, {{email}}, {{phone}}${COMPLIANCE}`,
        text: '{{lastName}}/{{customFields.plan}}',
        templateVariables: { offer: '20 %' },
        enableClickTracking: true,
      }),
    );
    runner.start();
    await until(row.campaign_id, 'sending');
    await deliverAllOf(row.campaign_id, 2);
    const sent = messages(row);
    expect(
      sent.map(
        ({ recipient, subject, job_id, subscription_group_id, use_case, track_clicks, track_opens }) => ({
          recipient,
          subject,
          job_id,
          subscription_group_id,
          use_case,
          track_clicks,
          track_opens,
        }),
      ),
    ).toEqual(
      [
        [ADA, 'Ada: 20 %'],
        ['grace@example.org', 'friend: 20 %'],
      ].map(([recipient, subject]) => ({
        recipient,
        subject,
        job_id: progress(row.campaign_id).jobId,
        subscription_group_id: groupId,
        use_case: 'mk',
        track_clicks: 1,
        track_opens: 0,
      })),
    );
    const [ada, grace] = sent.map((message) => content(message));
    expect(ada).toMatchObject({
      to: [{ name: 'Ada Lovelace', address: ADA }],
      replyTo: { name: '', address: 'help@news.example' },
      text: 'Lovelace/gold',
    });
    expect(ada?.html).toMatch(/^gold, 1, ada@example\.net, </);
    expect(grace).toMatchObject({ to: [{ name: '', address: 'grace@example.org' }], text: '/<b>' });
    expect(grace?.html).toMatch(/^&lt;b&gt;, , grace@example\.org, \+442071838750</);
    await until(row.campaign_id, 'sent');
    expect(progress(row.campaign_id)).toMatchObject({
      members: 2,
      queued: 2,
      finishedAt: expect.any(String),
    });

    async function deliverAllOf(id: string, count: number): Promise<void> {
      await eventually(`${count} messages to be queued`, () => progress(id).queued >= count);
      await deliverAll();
    }
  });

  it('skips members whose raw fields would hide the compliance footer', async () => {
    const { member, send, runner, until, messages, progress, deliverAll } = await startCampaigns();
    await member(ADA, { customFields: { greeting: '<b>Hello</b>' } });
    await member('hidden@example.net', { customFields: { greeting: '<!--' } });
    const row = granted(await send({ html: `{{{customFields.greeting}}}${COMPLIANCE}` }));
    runner.start();
    await until(row.campaign_id, 'sending');
    await eventually('a message to be queued', () => messages(row).length > 0);
    await deliverAll();
    await until(row.campaign_id, 'sent');
    expect(messages(row).map(({ recipient }) => recipient)).toEqual([ADA]);
    expect(progress(row.campaign_id)).toMatchObject({ queued: 1, skipped: { notRenderable: 1 } });
  });

  it('refuses long html with raw variables, and variables that are large', async () => {
    const { send } = await startCampaigns();
    const html = `{{{email}}}${'x'.repeat(256 * 1024)}${COMPLIANCE}`;
    const refusals = [await send({ html }), await send({ templateVariables: { a: 'x'.repeat(64 * 1024) } })];
    expect(refusals.map((refusal) => isRefusal(refusal) && refusal.extras.details?.[0]?.field)).toEqual([
      'html',
      'templateVariables',
    ]);
  });

  it('skips members who are not eligible, have no address, or have fields that cannot be rendered', async () => {
    const setup = await startCampaigns();
    const { member, send, runner, until, messages, progress, tables, writer, groupId, onSuppressionChange } =
      setup;
    const group = tables.subscriptionGroups.get('acct_one', groupId);
    if (group === null) throw new Error('no group');
    await member(ADA, { customFields: { tags: 'one' } });
    const left = await member('left@example.net');
    await writer.run((tx) => {
      const row = tx.subscriptions.get(group.seq, left.seq);
      if (row !== null) tx.subscriptions.update({ ...row, is_active: 0 });
    });
    const bounced = await member('bounced@example.net');
    await writer.run((tx) => {
      tx.suppressions.add({
        account_id: 'acct_one',
        recipient_hash: bounced.email_hash ?? '',
        stream: 'all',
        reason: 'hard_bounce',
        email: null,
        message_seq: null,
        created_at: 1,
      });
      onSuppressionChange(tx, 'acct_one', bounced.email_hash ?? '');
    });
    const silent = await member('silent@example.net');
    await writer.run((tx) => tx.contacts.setConsent(silent.seq, null, 1));
    await member('list@example.net', { customFields: { tags: ['one', 'two'] } });
    const caller = { by: 'key', ipAddress: null, userAgent: null };
    const phone = granted(
      await setup.audience.contacts.create('acct_one', { phone: '+442071838750' }, caller),
    );
    await setup.join(phone.seq, groupId);
    const row = granted(await send({ html: `{{customFields.tags}}${COMPLIANCE}` }));
    runner.start();
    await until(row.campaign_id, 'sending');
    await eventually('a message to be queued', () => messages(row).length > 0);
    await setup.deliverAll();
    await until(row.campaign_id, 'sent');
    expect(messages(row).map(({ recipient }) => recipient)).toEqual([ADA]);
    expect(progress(row.campaign_id)).toMatchObject({
      // Active members only.
      members: 5,
      queued: 1,
      skipped: { withoutEmail: 1, notEligible: 2, notRenderable: 1 },
    });
    expect(tables.campaignCounts.totals({ campaignId: row.campaign_id, from: 0, to: 9e15 })).toMatchObject({
      queued: 1,
      sent: 1,
      delivered: 1,
    });
  });

  it('counts members who left the group or were erased before their turn as not eligible', async () => {
    const setup = await startCampaigns();
    const { tables, writer, runner, progress, audience } = setup;
    const names = Array.from({ length: 6 }, (_, n) => `user${n}@example.net`);
    const contacts = [];
    for (const name of names) contacts.push(await setup.member(name));
    const row = granted(await setup.send({ perHour: 1 }));
    runner.start();
    await eventually('a message to be queued', () => progress(row.campaign_id).queued === 1);
    expect(progress(row.campaign_id)).toMatchObject({ members: 6, queued: 1 });
    granted(await audience.erasure.erase('acct_one', emailIdentifier('user2@example.net')));
    const group = tables.subscriptionGroups.get('acct_one', setup.groupId);
    const left = tables.subscriptions.get(group?.seq ?? 0, contacts[3]?.seq ?? 0);
    await writer.run((tx) => {
      if (left !== null) tx.subscriptions.update({ ...left, is_active: 0 });
      const recipient_hash = emailIdentifier('user4@example.net');
      const suppression = { account_id: 'acct_one', recipient_hash, stream: 'mk', reason: 'manual' } as const;
      tx.suppressions.add({ ...suppression, email: null, message_seq: null, created_at: 1 });
    });
    await finish(3);
    expect(progress(row.campaign_id)).toMatchObject({
      members: 6,
      queued: 3,
      skipped: { withoutEmail: 0, notEligible: 3, notRenderable: 0 },
    });

    async function finish(messages: number): Promise<void> {
      for (let sent = 1; sent < messages; sent++) {
        setup.clock.advance(HOUR);
        runner.wake();
        await eventually('the next message', () => progress(row.campaign_id).queued > sent);
      }
      await setup.deliverAll();
      await setup.until(row.campaign_id, 'sent');
    }
  });

  it('counts members who returned to the group before their turn', async () => {
    const setup = await startCampaigns();
    const { tables, writer, runner, progress } = setup;
    const group = tables.subscriptionGroups.get('acct_one', setup.groupId);
    await setup.member('first@example.net');
    const back = await setup.member('back@example.net');
    await setup.member('last@example.net');
    const membership = tables.subscriptions.get(group?.seq ?? 0, back.seq);
    const setActive = (is_active: 0 | 1) =>
      writer.run((tx) => {
        if (membership !== null) tx.subscriptions.update({ ...membership, is_active });
      });
    await setActive(0);
    const row = granted(await setup.send({ perHour: 1 }));
    runner.start();
    await eventually('a message to be queued', () => progress(row.campaign_id).queued === 1);
    expect(progress(row.campaign_id).members).toBe(2);
    await setActive(1);
    for (let sent = 1; sent < 3; sent++) {
      setup.clock.advance(HOUR);
      runner.wake();
      await eventually('the next message', () => progress(row.campaign_id).queued > sent);
    }
    await setup.deliverAll();
    await setup.until(row.campaign_id, 'sent');
    expect(progress(row.campaign_id)).toMatchObject({ members: 3, queued: 3 });
  });

  it('uses the template as it was when it was sent', async () => {
    const { member, send, runner, messages, tables, ids, clock, writer } = await startCampaigns();
    await member(ADA);
    const template = {
      template_id: ids.make('template'),
      account_id: 'acct_one',
      name: 'T',
      type: 'marketing' as const,
      subject: 'Before',
      html: COMPLIANCE,
      text: null,
      variables: null,
      design: null,
      syntax: 'simple' as const,
      mjml: null,
      created_at: 1,
      updated_at: 1,
    };
    const seq = tables.templates.insert(template);
    const row = granted(
      await send({
        subject: undefined,
        html: undefined,
        templateId: template.template_id,
        scheduledAt: iso(clock.now() + HOUR),
      }),
    );
    await writer.run((tx) => tx.templates.update({ ...template, seq, subject: 'After' }));
    clock.advance(HOUR);
    runner.start();
    await eventually('a message to be queued', () => messages(row).length > 0);
    expect(messages(row)[0]?.subject).toBe('Before');
  });

  it('to an empty group is sent immediately', async () => {
    const { send, runner, until, progress } = await startCampaigns();
    const row = granted(await send());
    runner.start();
    await until(row.campaign_id, 'sent');
    expect(progress(row.campaign_id)).toMatchObject({ members: 0, queued: 0 });
  });

  it('starts immediately when its time has just passed', async () => {
    const { send, clock } = await startCampaigns();
    expect(granted(await send({ scheduledAt: iso(clock.now() - 15 * MINUTE) })).status).toBe('sending');
    expect(refusal(await send({ scheduledAt: iso(clock.now() - 15 * MINUTE - 1) }))).toEqual([
      'VALIDATION_ERROR',
      ['scheduledAt'],
    ]);
  });

  it('starts at its time with the members of that time', async () => {
    const { send, runner, until, clock, member, messages, progress, severalRounds } = await startCampaigns();
    const row = granted(await send({ scheduledAt: iso(clock.now() + DAY), subject: 'Hello' }));
    expect(row.status).toBe('scheduled');
    await member(ADA);
    runner.start();
    clock.advance(DAY - 1);
    await severalRounds();
    expect([messages(row), progress(row.campaign_id).members]).toEqual([[], null]);
    clock.advance(1);
    runner.wake();
    await until(row.campaign_id, 'sending');
    await eventually('a message to be queued', () => messages(row).length > 0);
    expect(messages(row).map(({ recipient }) => recipient)).toEqual([ADA]);
  });
});

describe('actions that are allowed for a campaign that is', () => {
  const VERBS = ['pause', 'resume', 'cancel'] as const;

  it.each<[CampaignStatus, (CampaignStatus | null)[]]>([
    ['draft', [null, null, null]],
    ['scheduled', ['paused', null, 'cancelled']],
    ['sending', ['paused', null, 'cancelled']],
    ['paused', [null, 'sending', 'cancelled']],
    // None of its messages is queued.
    ['sent', [null, null, null]],
    ['cancelled', [null, null, null]],
  ])('%s', async (status, expected) => {
    for (const [index, verb] of VERBS.entries()) {
      const { send, draft, tables, sending, campaign } = await startCampaigns();
      const id = await draft();
      if (status !== 'draft') granted(await send({}, { id }));
      tables.campaigns.setStatus(campaign(id).seq, status, 1);
      const answer = await sending[verb]('acct_one', id, { by: 'key_one' });
      expect([verb, isRefusal(answer) ? answer.code : answer.status]).toEqual([
        verb,
        expected[index] ?? 'INVALID_STATE',
      ]);
      expect(campaign(id).status).toBe(expected[index] ?? status);
    }
  });

  it('of another account: refused like an unknown one', async () => {
    const { send, draft, sending } = await startCampaigns();
    const id = await draft();
    granted(await send({}, { id }));
    for (const verb of VERBS) {
      expect(await sending[verb]('acct_two', id, { by: 'key_two' })).toMatchObject({
        code: 'CAMPAIGN_NOT_FOUND',
        message: `There is no campaign ${id}`,
      });
    }
  });

  it('paused before its time: scheduled again when it is resumed', async () => {
    const { send, sending, clock, draft } = await startCampaigns();
    const id = await draft();
    granted(await send({ scheduledAt: iso(clock.now() + HOUR) }, { id }));
    granted(await sending.pause('acct_one', id));
    expect(granted(await sending.resume('acct_one', id, { by: 'key_one' })).status).toBe('scheduled');
    granted(await sending.pause('acct_one', id));
    clock.advance(HOUR + MINUTE);
    expect(granted(await sending.resume('acct_one', id, { by: 'key_one' })).status).toBe('sending');
  });
});
