import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import type { SendRequest } from '../../src/sending/request.ts';
import { refused } from '../support/refusal.ts';
import { accepted, startAcceptance } from './acceptance.ts';

const FOOTER = '<p>{{ company_address_html }} {{ unsubscribe_email_html }}</p>';

function start() {
  const setup = startAcceptance();
  const send = (changes: Partial<SendRequest>) =>
    setup.send({
      syntax: 'liquid',
      subject: '{% if items.size > 1 %}{{ items.size }} things{% else %}One thing{% endif %}, {{ name }}',
      html: `{% for item in items %}<li>{{ item }}</li>{% endfor %}${FOOTER}`,
      templateVariables: { name: 'A & B', items: ['<x>', 'y'] },
      ...changes,
    });
  const content = () => {
    const [first] = setup.contents();
    if (first === undefined) throw new Error('nothing was stored');
    return first;
  };
  return { ...setup, send, content };
}

describe('a send in Liquid', () => {
  it('renders subject, html and text, with the footer', async () => {
    const { send, content } = start();
    accepted(
      await send({
        text: '{% for item in items %}- {{ item }}\n{% endfor %}{{ unsubscribe_email_html }}{{ company_address_html }}',
      }),
    );
    expect(content().subject).toBe('2 things, A & B');
    expect(content().html).toMatch(/^<li>&lt;x&gt;<\/li><li>y<\/li><p><span[^]*Unsubscribe/);
    expect(content().text).toMatch(/^- <x>\n- y\n[^]*\n[^]/);
    // No mark of a variable is left.
    expect(JSON.stringify(content())).not.toContain('_html');
  });

  it('inserts braces in values as they are', async () => {
    const { send, content } = start();
    accepted(
      await send({ templateVariables: { name: '{{ name }} {% if %} {{unsubscribe_url}}', items: [] } }),
    );
    expect(content().subject).toBe('One thing, {{ name }} {% if %} {{unsubscribe_url}}');
  });

  it('requires compliance variables that the finished html shows', async () => {
    const { send } = start();
    const hidden = [
      '<p>no footer</p>',
      `{% if false %}${FOOTER}{% endif %}`,
      `<!-- ${FOOTER} -->`,
      `<div style="display:{{ name }}">${FOOTER}</div>`,
      `{{ name | raw }}${FOOTER}`,
      '<p>{{ company_address_html | strip_html }} {{ unsubscribe_email_html }}</p>',
    ];
    for (const [index, html] of hidden.entries()) {
      const name = index === 3 ? 'none' : '<div hidden>';
      const result = await send({ html, templateVariables: { name, items: [] } });
      expect(isRefusal(result) && result.code, html).toMatch(/COMPLIANCE_TEMPLATE_MISSING|VALIDATION_ERROR/);
    }
    const shown = await send({ html: `{% if true %}${FOOTER}{% endif %}` });
    expect(isRefusal(shown)).toBe(false);
  });

  it('names the place of a fault', async () => {
    const { send } = start();
    const refusal = refused(await send({ html: `<p>\n{{ name | shout }}</p>${FOOTER}` }));
    expect(refusal).toMatchObject({ code: 'TEMPLATE_SYNTAX' });
    expect(refusal.extras.details).toEqual([
      { field: 'html', message: 'line 2, column 1: undefined filter: shout' },
    ]);
  });

  it('refuses variables without a value as the simple syntax does', async () => {
    const { send } = start();
    const refusal = refused(await send({ html: `{{ nobody.name }}${FOOTER}` }));
    expect(refusal.code).toBe('TEMPLATE_VARIABLE_MISSING');
    expect(refusal.message).toContain('{{nobody}} in html has no value in templateVariables');
    expect(refused(await send({ templateVariables: { name: 'x\r\nBcc: y', items: [] } })).code).toBe(
      'VALIDATION_ERROR',
    );
    expect(refused(await send({ subject: '{{ unsubscribe_url }}' })).code).toBe('VALIDATION_ERROR');
  });

  it('checks the domain before it reports faults of the template', async () => {
    const { send } = start();
    expect(refused(await send({ from: 'a@unknown.example', html: '{% if %}' })).code).toBe(
      'DOMAIN_NOT_REGISTERED',
    );
  });

  it('is not what the simple syntax renders', async () => {
    const { send, content } = start();
    accepted(await send({ syntax: 'simple', subject: 'Hi {{name|friend}}', html: `{% x %}${FOOTER}` }));
    expect(content().subject).toBe('Hi A & B');
    expect(content().html).toMatch(/^\{% x %\}/);
  });

  it('inserts the partials of the account, in html only', async () => {
    const { send, content, tables, clock } = start();
    const now = clock.now();
    const partial = { account_id: 'acct_one', created_at: now, updated_at: now };
    tables.partials.insert({ ...partial, partial_id: 'partial_1', name: 'foot', html: `<hr>${FOOTER}` });
    tables.partials.insert({ ...partial, partial_id: 'partial_2', name: 'unused', html: '{% if %}' });
    accepted(await send({ html: '<p>{{ name }}</p>{% render "foot" %}' }));
    expect(content().html).toMatch(/^<p>A &amp; B<\/p><hr><p><span[^]*Unsubscribe/);
    const refusal = refused(await send({ text: '{% render "foot" %}' }));
    expect(refusal.extras.details).toMatchObject([
      {
        field: 'text',
        message: expect.stringContaining('there is no partial "foot"; partials are for html'),
      },
    ]);
  });

  it('cannot choose the syntax of a template', async () => {
    const { send } = start();
    const refusal = refused(await send({ templateId: 'template_x', subject: undefined, html: undefined }));
    expect(refusal.extras.details).toMatchObject([{ field: 'syntax' }]);
  });
});
