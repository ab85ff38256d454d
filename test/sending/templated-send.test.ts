import { describe, expect, it } from 'vitest';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import { createComplianceTemplates } from '../../src/templates/compliance-templates.ts';
import { createTemplates, type TemplateFields } from '../../src/templates/templates.ts';
import { granted, refused } from '../support/refusal.ts';
import { contentOf, insertAccount, insertDomain } from '../support/store.ts';
import { templateThreads } from '../support/template-threads.ts';
import { accepted, HTML, startAcceptance } from './acceptance.ts';

const NAMED: Partial<SendRequest> = { subject: undefined, html: undefined };
const TEMPLATE: TemplateFields = {
  name: 'Order',
  type: null,
  subject: 'Order {{order.number}}',
  html: HTML,
  text: null,
  design: null,
  variables: [],
};

function start() {
  const setup = startAcceptance();
  const { tables, clock, stored } = setup;
  insertAccount(tables, 'acct_two', clock.now());
  const templates = createTemplates(setup, () => null, templateThreads());
  const complianceTemplates = createComplianceTemplates(setup, () => null);
  const sent = () => {
    const message = stored()[0];
    if (message === undefined) throw new Error('nothing was stored');
    return contentOf(tables, message);
  };
  return { ...setup, templates, complianceTemplates, sent };
}

describe('a send that names a template', () => {
  it('contains the template with the variables of the send', async () => {
    const { templates, send, sent } = start();
    const { template_id } = granted(
      await templates.create('acct_one', { ...TEMPLATE, text: 'Hello {{name}}' }),
    );
    accepted(await send({ ...NAMED, templateId: template_id }));
    expect(sent()).toMatchObject({ subject: 'Order 7', text: 'Hello <Ada>' });
    expect(sent().html).toContain('<p>Hello &lt;Ada&gt;</p>');
  });

  it('can replace the subject', async () => {
    const { templates, send, sent } = start();
    const { template_id } = granted(await templates.create('acct_one', TEMPLATE));
    accepted(await send({ ...NAMED, subject: 'For you, {{name}}', templateId: template_id }));
    expect(sent().subject).toBe('For you, <Ada>');
  });

  it('replays its response after the template was changed', async () => {
    const { templates, send, stored } = start();
    const { template_id } = granted(await templates.create('acct_one', TEMPLATE));
    const first = accepted(
      await send(
        { ...NAMED, templateId: template_id },
        { idempotency: { endpoint: 'transactional/send', key: 'k' } },
      ),
    );
    await templates.remove('acct_one', template_id);
    const again = await send(
      { ...NAMED, templateId: template_id },
      { idempotency: { endpoint: 'transactional/send', key: 'k' } },
    );
    expect(again).toEqual({ kind: 'replayed', status: 200, body: first.body });
    expect(stored()).toHaveLength(1);
  });

  it.each<[string, Partial<TemplateFields>, Partial<SendRequest>, string, string]>([
    ['html in addition', {}, { html: HTML }, 'VALIDATION_ERROR', 'html'],
    ['a text in addition', {}, { text: 'Hello' }, 'VALIDATION_ERROR', 'text'],
    ['no subject anywhere', { subject: null }, {}, 'VALIDATION_ERROR', 'subject'],
    ['one for the other stream', { type: 'marketing' }, {}, 'VALIDATION_ERROR', 'templateId'],
    ['one without compliance variables', { html: '<p>Hi</p>' }, {}, 'COMPLIANCE_TEMPLATE_MISSING', 'html'],
    ['a variable without a value', { html: `${HTML}{{who}}` }, {}, 'TEMPLATE_VARIABLE_MISSING', 'html'],
  ])('is refused for %s', async (_, template, changes, code, field) => {
    const { templates, send, stored } = start();
    const { template_id } = granted(await templates.create('acct_one', { ...TEMPLATE, ...template }));
    const refusal = refused(await send({ ...NAMED, ...changes, templateId: template_id }));
    expect(refusal.code).toBe(code);
    expect(refusal.extras.details?.map((detail) => detail.field)).toContain(field);
    expect(stored()).toEqual([]);
  });

  it('gets the same refusal for an unknown template, a deleted one, and one of another account', async () => {
    const { templates, send } = start();
    const theirs = granted(await templates.create('acct_two', TEMPLATE)).template_id;
    const deleted = granted(await templates.create('acct_one', TEMPLATE)).template_id;
    await templates.remove('acct_one', deleted);
    for (const templateId of ['template_1_unknown', deleted, theirs]) {
      const { code, message } = refused(await send({ ...NAMED, templateId }));
      expect([code, message]).toEqual(['TEMPLATE_NOT_FOUND', `There is no template ${templateId}`]);
    }
  });

  it('is refused for the template before the domain, and for the domain before the html', async () => {
    const { templates, send } = start();
    const { template_id } = granted(await templates.create('acct_one', { ...TEMPLATE, html: '<p>Hi</p>' }));
    const from = 'a@elsewhere.test';
    expect(refused(await send({ ...NAMED, from, templateId: 'template_x' })).code).toBe('TEMPLATE_NOT_FOUND');
    expect(refused(await send({ ...NAMED, from, templateId: template_id })).code).toBe(
      'DOMAIN_NOT_REGISTERED',
    );
  });
});

describe('a send without a template', () => {
  it.each([
    ['subject', 'is required'],
    ['html', 'is required, unless text is given'],
  ] as const)('needs its own %s', async (field, message) => {
    const { send } = start();
    const refusal = refused(await send({ [field]: undefined }));
    expect(refusal.code).toBe('VALIDATION_ERROR');
    expect(refusal.extras.details).toEqual([{ field, message }]);
  });
});

describe('the value of compliance variables', () => {
  const UNSUBSCRIBE = (mark: string) => `<a href="{{unsubscribe_url}}">${mark}</a>`;
  const FROM_ONE = { from: 'a@example.com' };
  const FROM_OTHER = { from: 'a@other.test' };

  async function marks(
    inputs: { mark: string; domain?: string; isDefault?: boolean; accountId?: string }[],
  ): Promise<Record<string, boolean>[]> {
    const { complianceTemplates, send, sent, tables, clock } = start();
    insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_o', name: 'other.test' }, clock.now());
    for (const { mark, domain, isDefault, accountId } of inputs) {
      const created = await complianceTemplates.create(accountId ?? 'acct_one', {
        name: mark,
        type: 'unsubscribe',
        domain: domain ?? null,
        htmlContent: UNSUBSCRIBE(mark),
        ...(isDefault === undefined ? {} : { isDefault }),
      });
      if (isRefusal(created)) throw new Error(created.message);
    }
    const seen: Record<string, boolean>[] = [];
    for (const sender of [FROM_ONE, FROM_OTHER]) {
      accepted(await send(sender));
      const { html } = sent();
      const known = ['account', 'one', 'draft', 'Unsubscribe'];
      seen.push(
        Object.fromEntries(known.filter((mark) => html.includes(`>${mark}</a>`)).map((mark) => [mark, true])),
      );
    }
    return seen;
  }

  it('is the built-in text by default', async () => {
    expect(await marks([])).toEqual([{ Unsubscribe: true }, { Unsubscribe: true }]);
  });

  it('is the account’s default', async () => {
    expect(await marks([{ mark: 'account' }])).toEqual([{ account: true }, { account: true }]);
  });

  it('is the domain’s default before the account’s', async () => {
    const expected = [{ one: true }, { account: true }];
    expect(await marks([{ mark: 'account' }, { mark: 'one', domain: 'example.com' }])).toEqual(expected);
    expect(await marks([{ mark: 'one', domain: 'example.com' }, { mark: 'account' }])).toEqual(expected);
  });

  it('is never a template that is not a default or belongs to another account', async () => {
    const inputs = [
      { mark: 'draft', isDefault: false },
      { mark: 'one', domain: 'example.com', accountId: 'acct_two' },
    ];
    expect(await marks(inputs)).toEqual([{ Unsubscribe: true }, { Unsubscribe: true }]);
  });

  it('contains values of the account and the copy', async () => {
    const { complianceTemplates, send, sent } = start();
    await complianceTemplates.create('acct_one', {
      name: 'Footer',
      type: 'company_address',
      domain: null,
      htmlContent: '<b>{{company_name}}</b>, {{company_address}}, {{sender_email}}, {{recipient_email}}',
    });
    accepted(await send());
    expect(sent().html).toContain(
      '<b>Example Ltd</b>, 1 Main St, Town, 12345, GB, shop@example.com, \u0000e\u0000',
    );
  });
});

describe('compliance templates', () => {
  const INPUT = {
    name: 'One',
    type: 'unsubscribe',
    domain: null,
    htmlContent: '{{unsubscribe_url}}',
  } as const;
  const defaults = (setup: ReturnType<typeof start>) =>
    setup.tables.complianceTemplates
      .list({ accountId: 'acct_one', beforeSeq: null, limit: 50 })
      .rows.filter(({ is_default }) => is_default === 1)
      .map(({ name, type, domain }) => `${name} ${type} ${domain ?? '*'}`)
      .sort();
  const id = (created: { template_id: string } | Refusal) => {
    if (isRefusal(created)) throw new Error(created.message);
    return created.template_id;
  };

  it('have one default for each type and domain: the first, then the latest', async () => {
    const setup = start();
    const { complianceTemplates: all } = setup;
    const one = id(await all.create('acct_one', INPUT));
    const two = id(await all.create('acct_one', { ...INPUT, name: 'Two' }));
    id(await all.create('acct_one', { ...INPUT, name: 'Three', domain: 'example.com' }));
    id(
      await all.create('acct_one', {
        ...INPUT,
        name: 'Four',
        type: 'report_abuse',
        htmlContent: '{{report_abuse_url}}',
      }),
    );
    const others = ['Four report_abuse *', 'Three unsubscribe example.com'];
    expect(defaults(setup)).toEqual([...others, 'One unsubscribe *'].sort());
    await all.update('acct_one', two, { isDefault: true });
    expect(defaults(setup)).toEqual([...others, 'Two unsubscribe *'].sort());
    await all.update('acct_one', one, { isDefault: true });
    await all.update('acct_one', one, { domain: 'example.com' });
    expect(defaults(setup)).toEqual(['Four report_abuse *', 'One unsubscribe example.com']);
    await all.update('acct_one', one, { isDefault: false });
    await all.remove('acct_one', two);
    expect(defaults(setup)).toEqual(['Four report_abuse *']);
  });

  it.each([
    ['an unknown variable', { htmlContent: '{{unsubscribe_url}} {{first_name}}' }],
    ['no variable of its type', { type: 'report_abuse' as const }],
    ['a link that is not displayed', { htmlContent: '<!-- {{unsubscribe_url}} -->' }],
  ])('are refused with %s when created and when updated', async (_, changes) => {
    const setup = start();
    const { complianceTemplates: all } = setup;
    const created = await all.create('acct_one', INPUT);
    for (const result of [
      await all.create('acct_one', { ...INPUT, ...changes }),
      await all.update('acct_one', id(created), changes),
    ]) {
      if (!isRefusal(result)) throw new Error('accepted');
      expect(result.code).toBe('VALIDATION_ERROR');
      expect(result.extras.details?.every(({ field }) => field === 'htmlContent')).toBe(true);
    }
    expect(all.get('acct_one', id(created))).toEqual(created);
  });
});
