import { describe, expect, it } from 'vitest';
import type { SegmentFilter } from '../../src/audience/segments/filter.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { createPartials } from '../../src/templates/partials.ts';
import { createTemplates } from '../../src/templates/templates.ts';
import { CALLER, GROUP, startAudience } from '../audience/setup.ts';
import { DESIGN } from '../mail/blocks/designs.ts';
import { granted } from '../support/refusal.ts';
import { templateThreads } from '../support/template-threads.ts';

/** What the triggers of `stored_bytes` count, except for contents: each statement has the columns of one table. */
const SUMS = `
  SELECT account_id, sum(bytes) AS bytes FROM (
    SELECT account_id, 400 + coalesce(octet_length(email), 0) + coalesce(octet_length(phone), 0) + coalesce(octet_length(first_name), 0) + coalesce(octet_length(last_name), 0) + coalesce(octet_length(custom_fields), 0) AS bytes FROM contacts
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(subject), 0) + coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0) + coalesce(octet_length(variables), 0) + coalesce(octet_length(design), 0) + coalesce(octet_length(mjml), 0) AS bytes FROM templates
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(html), 0) AS bytes FROM partials
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(html_content), 0) AS bytes FROM compliance_templates
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(prepared), 0) AS bytes FROM campaigns
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(sign_up), 0) AS bytes FROM subscription_groups
    UNION ALL
    SELECT account_id, 100 + coalesce(octet_length(c.name), 0) + coalesce(octet_length(c.subject), 0) + coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) + coalesce(octet_length(c.design), 0) + coalesce(octet_length(c.mjml), 0) FROM template_versions c JOIN templates p ON p.seq = c.template_seq
    UNION ALL
    SELECT account_id, 100 + coalesce(octet_length(c.mail), 0) FROM campaign_mails c JOIN campaigns p ON p.seq = c.campaign_seq
    UNION ALL
    SELECT account_id, 100 + coalesce(octet_length(c.method), 0) + coalesce(octet_length(c.details), 0) + coalesce(octet_length(c.user_agent), 0) + coalesce(octet_length(c.evidence), 0) FROM consents c JOIN contacts p ON p.seq = c.contact_seq
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(alt), 0) FROM media
    UNION ALL
    SELECT account_id, 200 + size FROM media_contents
    UNION ALL
    SELECT account_id, 400 + coalesce(octet_length(name), 0) FROM inbound_routes
    UNION ALL
    SELECT account_id, 200 + size FROM inbound_sources
    UNION ALL
    SELECT account_id, 1000 + coalesce(octet_length(content), 0) FROM inbound_mails
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) FROM sequences
    UNION ALL
    SELECT account_id, 100 + coalesce(octet_length(c.definition), 0) FROM sequence_versions c JOIN sequences p ON p.seq = c.sequence_seq
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(filter), 0) FROM segments
    UNION ALL
    SELECT account_id, coalesce(octet_length(audience), 0) FROM campaign_sends
    UNION ALL
    SELECT account_id, 50 FROM campaign_contacts c JOIN contacts p ON p.seq = c.contact_seq
    UNION ALL
    SELECT account_id, 200 + coalesce(octet_length(c.properties), 0) FROM sequence_people c JOIN sequences p ON p.seq = c.sequence_seq
  ) GROUP BY account_id`;

async function start() {
  const setup = await startAudience();
  const { db, tables } = setup;
  const counted = () =>
    db
      .prepare(
        "SELECT account_id, bytes FROM stored_bytes WHERE typeof(account_id) = 'text' AND bytes <> 0 ORDER BY 1",
      )
      .all();
  const stored = () => db.prepare(`${SUMS} ORDER BY account_id`).all();
  return { ...setup, counted, stored, bytes: () => tables.accountLimits.storedBytes('acct_one') };
}

describe('the bytes of an account', () => {
  it('are those of its contacts, templates, campaigns and groups after any change of them', async () => {
    const setup = await start();
    const { counted, stored, bytes, db } = setup;
    const same = () => expect(counted()).toEqual(stored());
    same();
    const before = bytes();
    const ada = await setup.add('ada@example.net', { customFields: { note: 'x'.repeat(10_000) } });
    await setup.add('eve@example.net', { firstName: 'Ève' });
    same();
    expect(bytes() - before).toBeGreaterThan(10_000);
    await setup.contacts.update(
      'acct_one',
      ada.email_hash ?? '',
      { customFields: { note: 'ü' } },
      {
        ...CALLER,
        merge: false,
      },
    );
    same();
    await setup.groups.create('acct_one', { ...GROUP, description: 'y'.repeat(1000) });
    same();
    const templates = createTemplates(setup, () => null, templateThreads());
    const content = {
      name: 'T',
      type: null,
      subject: 'S',
      html: '<p>a</p>',
      text: null,
      design: null,
      variables: ['a'],
    };
    const template = granted(await templates.create('acct_one', content));
    for (let n = 0; n < 15; n++) {
      granted(
        await templates.update('acct_one', template.template_id, {
          html: `<p>${'b'.repeat(100 * n)}</p>`,
          variables: Array(n).fill('ü'),
        }),
      );
      same();
    }
    granted(await templates.update('acct_one', template.template_id, { design: DESIGN }));
    same();
    for (let n = 0; n < 15; n++) {
      const design = { ...DESIGN, preheader: 'ü'.repeat(n) };
      granted(await templates.update('acct_one', template.template_id, { design }));
      same();
    }
    const second = granted(
      await templates.create('acct_one', { ...content, html: undefined, design: DESIGN }),
    );
    same();
    granted(await templates.update('acct_one', second.template_id, { design: null }));
    same();
    for (let n = 0; n < 3; n++) {
      const mjml = `<mjml><mj-body><mj-section><mj-column><mj-text>${'ü'.repeat(n)}</mj-text></mj-column></mj-section></mj-body></mjml>`;
      granted(await templates.update('acct_one', second.template_id, { mjml }));
      same();
    }
    granted(await templates.remove('acct_one', second.template_id));
    granted(await templates.remove('acct_one', template.template_id));
    same();
    expect(db.prepare('SELECT count(*) FROM template_versions').pluck().get()).toBe(0);
    const partials = createPartials(setup, templateThreads());
    const { partial_id: partial } = granted(
      await partials.create('acct_one', { name: 'head', html: '<p>ü</p>' }),
    );
    same();
    granted(await partials.update('acct_one', partial, { name: 'header', html: '<p>a longer one</p>' }));
    same();
    granted(await partials.remove('acct_one', partial));
    same();
    const isGold: SegmentFilter = { field: 'customFields.plan', op: 'is', value: 'gold' };
    const { segment } = granted(await setup.segments.create('acct_one', { name: 'Gold', filter: isGold }));
    same();
    const filter = { not: isGold };
    granted(await setup.segments.update('acct_one', segment.segment_id, { name: 'Not gold', filter }));
    same();
    granted(await setup.segments.remove('acct_one', segment.segment_id));
    same();
    await setup.erasure.erase('acct_one', ada.email_hash ?? '');
    await setup.erasure.erase('acct_one', 'eve@example.net');
    same();
  });

  it('include the contents of its messages until they are deleted, but no content of unknown origin', async () => {
    const { tables, writer, db, clock, bytes } = await start();
    const before = bytes();
    const key = { campaignSeq: 0, digest: Buffer.alloc(32, 1), accountId: 'acct_one' };
    await writer.run((tx) => {
      const sharedId = tx.sharedContents.findOrInsert(key, packContent('z'.repeat(500)), clock.now());
      tx.messages.insertContent({ ...packContent('"own"'), sharedId }, clock.now(), 'acct_one');
      tx.sharedContents.addCopies(sharedId, 1);
      tx.messages.insertContent(packContent('{}'), clock.now());
    });
    const sum = () =>
      db
        .prepare<[], number>(
          'SELECT (SELECT total(100 + octet_length(body)) FROM contents WHERE account IS NOT NULL) + (SELECT total(100 + octet_length(body)) FROM shared_contents)',
        )
        .pluck()
        .get();
    expect(bytes() - before).toBe(sum());
    db.exec('UPDATE contents SET body = \'"another"\' WHERE account IS NOT NULL');
    expect(bytes() - before).toBe(sum());
    db.exec('DELETE FROM contents; DELETE FROM shared_contents');
    expect(bytes()).toBe(before);
    expect(tables.accountLimits.storedBytes('acct_two')).toBe(0);
  });
});

it('counts suppressions', async () => {
  const { suppress, lift, tables } = await start();
  const count = () => tables.accountLimits.count('suppressions', 'acct_one');
  await suppress('a@example.net', 'hard_bounce');
  await suppress('a@example.net', 'manual');
  expect(count()).toBe(2);
  await lift('a@example.net');
  expect(count()).toBe(0);
});
