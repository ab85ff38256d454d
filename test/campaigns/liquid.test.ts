import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import type { CampaignRow } from '../../src/store/campaigns/campaigns.ts';
import { eventually } from '../support/eventually.ts';
import { granted, refused } from '../support/refusal.ts';
import { type CampaignSetup, startCampaigns } from './setup.ts';

const FOOTER = '<p>{{ company_address_html }}{{ unsubscribe_email_html }}</p>';
const LIQUID = {
  syntax: 'liquid',
  subject: '{{ firstName | default: "friend" }}{% if customFields.plan == "gold" %}: gold{% endif %}',
  html: `<h1>{{ season }}</h1>{% for tag in customFields.tags %}<i>{{ tag }}</i>{% else %}none{% endfor %}${FOOTER}`,
  templateVariables: { season: 'May & June' },
} as const;

/** The messages of a campaign, when all members were processed. */
async function queued(setup: CampaignSetup, row: CampaignRow, count: number) {
  await eventually('all members to be processed', () => {
    const { queued: stored, skipped } = setup.progress(row.campaign_id);
    return stored + skipped.notRenderable === 2 && stored === count;
  });
  return setup.messages(row);
}

async function withMembers(): Promise<CampaignSetup> {
  const setup = await startCampaigns();
  await setup.member('ada@example.net', { firstName: 'Ada', customFields: { plan: 'gold', tags: 'a,b' } });
  await setup.member('eve@example.net', {});
  return setup;
}

describe('a campaign in Liquid', () => {
  it('renders each recipient with their data', async () => {
    const setup = await withMembers();
    const sent = granted(
      await setup.send({
        ...LIQUID,
        text: 'Hi {{ firstName }}!{{ company_address_html }}{{ unsubscribe_email_html }}',
      }),
    );
    setup.runner.start();
    const messages = await queued(setup, sent, 2);
    const [ada, eve] = messages.map(setup.content);
    expect(messages.map(({ recipient, subject }) => [recipient, subject])).toEqual([
      ['ada@example.net', 'Ada: gold'],
      ['eve@example.net', 'friend'],
    ]);
    expect(ada?.html).toContain('<h1>May &amp; June</h1><i>a,b</i><p><span');
    expect(eve?.html).toContain('<h1>May &amp; June</h1>none<p><span');
    expect(eve?.text).toMatch(/^Hi !\n[^]*Unsubscribe/);
    expect(setup.progress(sent.campaign_id)).toMatchObject({ queued: 2 });
  });

  it('has the partials of the moment in which it was accepted for all recipients', async () => {
    const setup = await withMembers();
    const partial = (html: string) => {
      const times = { created_at: setup.clock.now(), updated_at: setup.clock.now() };
      setup.db.prepare('DELETE FROM partials').run();
      setup.tables.partials.insert({
        partial_id: `partial_${html}`,
        account_id: 'acct_one',
        name: 'head',
        html,
        ...times,
      });
    };
    partial('<h2>first</h2>');
    const html = `{% render "head" %}{{ firstName }}${FOOTER}`;
    const sent = granted(await setup.send({ ...LIQUID, html, perHour: 240 }));
    setup.runner.start();
    await eventually('the first message', () => setup.progress(sent.campaign_id).queued === 1);
    partial('<h2>second</h2>');
    setup.clock.advance(15_100);
    setup.runner.wake();
    const messages = await queued(setup, sent, 2);
    for (const message of messages) expect(setup.content(message).html).toMatch(/^<h2>first<\/h2>/);
  });

  it('renders no more recipients than may receive it now', async () => {
    const setup = await withMembers();
    const sent = granted(await setup.send({ ...LIQUID, perHour: 240 }));
    const before = setup.liquidCopies();
    setup.runner.start();
    await eventually('the first message', () => setup.progress(sent.campaign_id).queued === 1);
    expect(setup.liquidCopies() - before).toBe(1);
    setup.clock.advance(15_100);
    setup.runner.wake();
    await eventually('the second message', () => setup.progress(sent.campaign_id).queued === 2);
    expect(setup.liquidCopies() - before).toBe(2);
  });

  it('skips a recipient whose content cannot be rendered, with the reason, and sends to the others', async () => {
    const setup = await withMembers();
    const html = `{% if firstName == "Ada" %}{% for i in (1..9999) %}{% for j in (1..9999) %}{% endfor %}{% endfor %}{% endif %}${FOOTER}`;
    const sent = granted(await setup.send({ ...LIQUID, html }));
    setup.runner.start();
    const [message] = await queued(setup, sent, 1);
    expect(message?.recipient).toBe('eve@example.net');
  });

  it('skips a recipient whose content does not show the footer', async () => {
    const setup = await withMembers();
    const sent = granted(
      await setup.send({ ...LIQUID, html: `{% unless firstName == "Ada" %}${FOOTER}{% endunless %}` }),
    );
    setup.runner.start();
    const [message] = await queued(setup, sent, 1);
    expect(message?.recipient).toBe('eve@example.net');
    expect(setup.progress(sent.campaign_id)).toMatchObject({ queued: 1, skipped: { notRenderable: 1 } });
  });

  it('is refused with a fault, an unknown field, a missing variable or no footer', async () => {
    const setup = await withMembers();
    const code = async (changes: object) => {
      const result = await setup.send({ ...LIQUID, ...changes });
      return isRefusal(result) ? result.code : 'sent';
    };
    expect(await code({ html: `{{ firstName | nope }}${FOOTER}` })).toBe('TEMPLATE_SYNTAX');
    expect(await code({ html: `{{ customFields.plann }}${FOOTER}` })).toBe('TEMPLATE_VARIABLE_MISSING');
    expect(await code({ html: `{{ seasom }}${FOOTER}` })).toBe('TEMPLATE_VARIABLE_MISSING');
    expect(await code({ html: '<p>Hi</p>' })).toBe('COMPLIANCE_TEMPLATE_MISSING');
    expect(await code({ subject: '{{ unsubscribe_url }}' })).toBe('VALIDATION_ERROR');
    expect(await code({ html: `{{ customFields.plan }}${FOOTER}` })).toBe('sent');
  });

  it('is refused while the account has no address to insert', async () => {
    const setup = await withMembers();
    setup.db.prepare('UPDATE accounts SET company_name = NULL, company_address = NULL').run();
    expect(refused(await setup.send(LIQUID)).code).toBe('COMPANY_ADDRESS_MISSING');
  });
});
