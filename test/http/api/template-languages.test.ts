import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const FOOTER = '<p>{{ company_address_html }} {{ unsubscribe_email_html }}</p>';
const MJML = `<mjml><mj-body><mj-section><mj-column>
<mj-text>Hello {{ name | default: "you" }} {% if a < b %}x{% endif %}</mj-text>
<mj-text>{{ company_address_html }}{{ unsubscribe_email_html }}</mj-text>
</mj-column></mj-section></mj-body></mjml>`;

interface Answer {
  template: { templateId: string; html: string; [field: string]: unknown };
  warnings?: string[];
}

describe('a template in Liquid', () => {
  it('is checked when it is stored', async () => {
    const api = await daemon.account('A');
    const html = `<p>\n  {{ name | shout }}</p>${FOOTER}`;
    const refused = await api.post('/web-setup/templates', { name: 'T', syntax: 'liquid', html });
    expect(refused).toMatchObject({
      status: 422,
      error: {
        code: 'TEMPLATE_SYNTAX',
        details: [{ field: 'html', message: 'line 2, column 3: undefined filter: shout' }],
      },
    });
    const { data } = await api.post<Answer>('/web-setup/templates', {
      name: 'T',
      syntax: 'liquid',
      html: FOOTER,
    });
    expect(data).toMatchObject({ template: { syntax: 'liquid', format: 'html' } });
    const path = `/web-setup/templates/${data.template.templateId}`;
    expect(await api.put(path, { subject: '{% if %}' })).toMatchObject({
      status: 422,
      error: { code: 'TEMPLATE_SYNTAX', details: [{ field: 'subject' }] },
    });
  });

  it('is shown in a preview, with the variables that have no value', async () => {
    const api = await daemon.account('A');
    const { data } = await api.post('/web-setup/templates/preview', {
      syntax: 'liquid',
      subject: '{{ items | size }} things',
      html: `{% for item in items %}<li>{{ item }}</li>{% endfor %}{{ nobody }}${FOOTER}`,
      templateVariables: { items: ['<a>', 'b'] },
    });
    expect(data).toMatchObject({ subject: '2 things', missing: ['nobody'], required: [], leftovers: [] });
    expect(data).toMatchObject({ html: expect.stringMatching(/^<li>&lt;a&gt;<\/li><li>b<\/li><p>/) });
  });
});

it('is refused for a design, whose variables are of the simple syntax', async () => {
  const api = await daemon.account('A');
  const design = {
    version: 1,
    theme: { accent: '#1f5c4d', background: '#ffffff', text: '#222222', width: 600, font: 'system' },
    blocks: [
      {
        id: 'a',
        type: 'heading',
        level: 1,
        content: [{ type: 'variable', attrs: { name: 'firstName', default: 'there' } }],
      },
      { id: 'b', type: 'footer' },
    ],
  };
  const refused = {
    status: 400,
    error: {
      code: 'VALIDATION_ERROR',
      details: [{ field: 'syntax', message: 'must be simple for a template with a design' }],
    },
  };
  expect(await api.post('/web-setup/templates', { name: 'D', syntax: 'liquid', design })).toMatchObject(
    refused,
  );
  const { status, data } = await api.post<Answer>('/web-setup/templates', { name: 'D', design });
  expect(status).toBe(201);
  const path = `/web-setup/templates/${data.template.templateId}`;
  expect(await api.put(path, { syntax: 'liquid' })).toMatchObject(refused);
  expect((await api.get<Answer>(path)).data.template).toMatchObject({ syntax: 'simple' });
});

describe('a template in MJML', () => {
  it('is compiled, and keeps its source', async () => {
    const api = await daemon.account('A');
    const input = { name: 'M', syntax: 'liquid', format: 'mjml', mjml: MJML };
    const { status, data } = await api.post<Answer>('/web-setup/templates', input);
    expect([status, data.template]).toMatchObject([201, input]);
    expect(data.template.html).toContain('Hello {{ name | default: "you" }} {% if a < b %}x{% endif %}');
    const path = `/web-setup/templates/${data.template.templateId}`;
    const changed = await api.put<Answer>(path, { mjml: MJML.replace('Hello', 'Dear') });
    expect(changed.data.template.html).toContain('Dear {{ name');
    const replaced = await api.put<Answer>(path, { html: FOOTER });
    expect(replaced.data.template).toMatchObject({ format: 'html', html: FOOTER });
    expect(replaced.data.warnings?.[0]).toContain('mjml');
  });

  it('is refused with the line and the element', async () => {
    const api = await daemon.account('A');
    const mjml = '<mjml>\n<mj-body>\n<mj-texty></mj-texty></mj-body></mjml>';
    expect(await api.post('/web-setup/templates', { name: 'M', mjml })).toMatchObject({
      status: 422,
      error: {
        code: 'TEMPLATE_SYNTAX',
        details: [{ field: 'mjml', message: 'line 3: mj-texty is not an element of MJML' }],
      },
    });
    expect(await api.post('/web-setup/templates', { name: 'M', mjml: MJML, html: FOOTER })).toMatchObject({
      status: 400,
    });
    expect(await api.post('/web-setup/templates', { name: 'M', format: 'mjml', html: FOOTER })).toMatchObject(
      {
        status: 400,
      },
    );
  });
});
