import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const HTML = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const GOOD = { name: 'Order', subject: 'Order {{number}}', html: HTML };

interface Answer {
  template: { templateId: string; [field: string]: unknown };
  warnings?: string[];
}
interface Page {
  templates: { name: string; templateId: string }[];
  count: number;
  nextKey?: string;
}

describe('a template', () => {
  it('is stored unchanged, in any script, with any markup', async () => {
    const api = await daemon.account('A');
    const input = {
      name: "Robert'); DROP TABLE templates;--",
      type: 'marketing',
      subject: '🎁 عرض خاص \u202e{{name}}\u202c',
      html: `${HTML}<p>日本語 𝒳 \u0001 ‮</p>`,
      text: 'Zeile 1\r\nZeile 2\t{{name}}',
    };
    const { status, data } = await api.post<Answer>('/web-setup/templates', input);
    expect([status, data]).toMatchObject([201, { template: input }]);
    const { data: read } = await api.get<Answer>(`/web-setup/templates/${data.template.templateId}`);
    expect(read).toEqual({ template: data.template });
  });

  it('lacks the fields that were not given', async () => {
    const api = await daemon.account('A');
    const { data } = await api.post<Answer>('/web-setup/templates', { name: 'Bare', html: HTML });
    for (const field of ['type', 'subject', 'text']) expect(data.template).not.toHaveProperty(field);
    expect(data.template['variables']).toEqual([]);
  });

  it('keeps the variables that were given, as names or with their types', async () => {
    const api = await daemon.account('A');
    const variables = [{ name: 'firstName', type: 'string', required: true }, { name: 'total' }, 'Straße'];
    const { status, data } = await api.post<Answer>('/web-setup/templates', { ...GOOD, variables });
    expect([status, data.warnings, data.template['variables']]).toEqual([201, undefined, variables]);
    const path = `/web-setup/templates/${data.template.templateId}`;
    const renamed = await api.put<Answer>(path, { name: 'Renamed' });
    expect(renamed.data.template['variables']).toEqual(variables);
    const changed = await api.put<Answer>(path, { variables: ['plan'] });
    expect([changed.status, changed.data.template['variables']]).toEqual([200, ['plan']]);
    expect((await api.get<Answer>(path)).data.template['variables']).toEqual(['plan']);
    expect((await api.get<Page>('/web-setup/templates')).data.templates).toMatchObject([
      { variables: ['plan'] },
    ]);
    expect((await api.put<Answer>(path, { variables: null })).data.template['variables']).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['that are no list', 'firstName', 'variables'],
    ['that are too many', Array(101).fill('a'), 'variables'],
    ['with an empty name', ['a', ''], 'variables.1'],
    ['with a name that is too long', ['x'.repeat(101)], 'variables.0'],
    ['without a name', [{ type: 'string' }], 'variables.0'],
    ['with a type that is too long', [{ name: 'a', type: 'x'.repeat(51) }], 'variables.0'],
    ['that are required by a word', [{ name: 'a', required: 'yes' }], 'variables.0'],
    ['that are numbers', [7], 'variables.0'],
  ])('refuses variables %s', async (_, variables, field) => {
    const api = await daemon.account('A');
    const { status, error } = await api.post('/web-setup/templates', { ...GOOD, variables });
    expect([status, error.details?.[0]?.field]).toEqual([400, expect.stringMatching(`^${field}`)]);
  });

  it('keeps what it was before its last ten changes', async () => {
    const api = await daemon.account('A');
    const { data } = await api.post<Answer>('/web-setup/templates', GOOD);
    const path = `/web-setup/templates/${data.template.templateId}`;
    expect((await api.get<{ count: number }>(`${path}/versions`)).data.count).toBe(0);
    await api.put(path, { name: GOOD.name });
    expect((await api.get<{ count: number }>(`${path}/versions`)).data.count).toBe(0);
    for (let n = 1; n <= 12; n++) await api.put(path, { subject: `Order ${n}` });
    const listed = await api.get<{ versions: { version: number; subject: string }[] }>(`${path}/versions`);
    expect(listed.data.versions.map(({ version }) => version)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    expect(listed.data.versions[0]).toMatchObject({ subject: 'Order 11', name: GOOD.name });
    const { data: version } = await api.get<object>(`${path}/versions/3`);
    expect(version).toEqual({
      version: 3,
      syntax: 'simple',
      name: GOOD.name,
      subject: 'Order 2',
      html: HTML,
      savedAt: expect.any(String),
    });
    const dropped = await api.get(`${path}/versions/2`);
    expect([dropped.status, dropped.error.code]).toEqual([404, 'TEMPLATE_NOT_FOUND']);
    const other = await daemon.account('B');
    expect((await other.get(`${path}/versions`)).status).toBe(404);
    expect((await other.get(`${path}/versions/3`)).status).toBe(404);
    await api.call('DELETE', path);
    expect((await api.get(`${path}/versions`)).status).toBe(404);
  });

  it('may be text only, with warnings about its text', async () => {
    const api = await daemon.account('A');
    const text = '{{company_address_text}} {{unsubscribe_email_text}}';
    const { status, data } = await api.post<Answer>('/web-setup/templates', { name: 'Code', text });
    expect([status, data]).toMatchObject([201, { template: { html: '', text } }]);
    expect(data.warnings).toBeUndefined();
    const path = `/web-setup/templates/${data.template.templateId}`;
    expect((await api.put<Answer>(path, { text: 'Hello' })).data.warnings).toEqual([
      expect.stringContaining('text does not show {{company_address_html}}'),
      expect.stringContaining('text does not show {{unsubscribe_email_html}}'),
    ]);
    expect((await api.call('PUT', path, { body: { text: null } })).error.details?.[0]?.field).toBe('html');
    const { error } = await api.call('POST', '/web-setup/templates', { body: { name: 'Empty' } });
    expect(error.details?.[0]?.message).toBe('is required, unless text or design is given');
  });

  it('updates the given fields, and clears those that are null', async () => {
    const api = await daemon.account('A');
    const { data } = await api.post<Answer>('/web-setup/templates', { ...GOOD, type: 'transactional' });
    const path = `/web-setup/templates/${data.template.templateId}`;
    const { data: changed } = await api.put<Answer>(path, { subject: null, type: null });
    expect(changed.template).toEqual({
      ...data.template,
      subject: undefined,
      type: undefined,
      updatedAt: expect.any(String),
    });
    const { status, error } = await api.call('PUT', path, { body: { html: null } });
    expect([status, error.details?.[0]?.field]).toEqual([400, 'html']);
  });

  it.each([
    ['no name', { name: ' ' }, 'name'],
    ['a name of two lines', { name: 'a\nb' }, 'name'],
    ['a name of 201 characters', { name: 'a'.repeat(201) }, 'name'],
    ['an unknown type', { type: 'both' }, 'type'],
    ['a subject of two lines', { subject: 'a\r\nBcc: x@example.net' }, 'subject'],
    ['a subject of 999 characters', { subject: 'a'.repeat(999) }, 'subject'],
    ['a link in the subject', { subject: 'Leave: {{unsubscribe_url}}' }, 'subject'],
    ['a NUL in the html', { html: `${HTML}\u0000` }, 'html'],
    ['an unpaired surrogate in the text', { text: 'a\ud83d' }, 'text'],
    ['no html', { html: '' }, 'html'],
  ])('is refused for %s', async (_, changes, field) => {
    const api = await daemon.account('A');
    const { status, error } = await api.post('/web-setup/templates', { ...GOOD, ...changes });
    expect([status, error.code, error.details?.map((detail) => detail.field)]).toEqual([
      400,
      'VALIDATION_ERROR',
      [field],
    ]);
    expect((await api.get<Page>('/web-setup/templates')).data.count).toBe(0);
  });

  it('is refused over the limit of a body', async () => {
    const api = await daemon.account('A');
    const { status, error } = await api.post('/web-setup/templates', {
      ...GOOD,
      html: HTML + 'x'.repeat(270_000),
    });
    expect([status, error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});

describe('warnings', () => {
  const warningsOf = async (input: object) => {
    const api = await daemon.account('A');
    return (await api.post<Answer>('/web-setup/templates', { ...GOOD, ...input })).data.warnings;
  };

  it('are absent if there are none', async () => {
    expect(await warningsOf({})).toBeUndefined();
  });

  it('name reasons of refused sends, likely mistakes, and unknown fields', async () => {
    const warnings = await warningsOf({
      html: '<p>{{first name}} {{company_address_html}} <!-- {{unsubscribe_email_html}} --></p>',
      subject: 'Order {{#if x}}',
      texts: 'x',
    });
    expect(warnings).toEqual([
      'unknown field "texts" was ignored; did you mean "text"?',
      'html does not show {{unsubscribe_email_html}}: a send with this template will be refused',
      expect.stringContaining('{{#if x}} in subject is not a variable, but the syntax of another'),
      '{{first name}} in html is not a variable and is sent unchanged',
    ]);
  });

  it('are in responses to updates as well', async () => {
    const api = await daemon.account('A');
    const { data } = await api.post<Answer>('/web-setup/templates', GOOD);
    const path = `/web-setup/templates/${data.template.templateId}`;
    const { data: changed } = await api.put<Answer>(path, { html: '<p>Hi</p>' });
    expect(changed.warnings).toHaveLength(2);
  });
});

describe('the list', () => {
  async function pages(api: Awaited<ReturnType<typeof daemon.account>>, limit: number): Promise<string[][]> {
    const read: string[][] = [];
    for (let key = ''; ; ) {
      const { data } = await api.get<Page>(`/web-setup/templates?limit=${limit}${key}`);
      expect(data.count).toBe(data.templates.length);
      read.push(data.templates.map(({ name }) => name));
      if (data.nextKey === undefined) return read;
      key = `&lastKey=${data.nextKey}`;
    }
  }

  it('is paged, newest first, with each template once', async () => {
    const api = await daemon.account('A');
    for (const name of ['1', '2', '3', '4', '5']) await api.post('/web-setup/templates', { ...GOOD, name });
    expect(await pages(api, 2)).toEqual([['5', '4'], ['3', '2'], ['1']]);
    expect(await pages(api, 5)).toEqual([['5', '4', '3', '2', '1']]);
  });

  it('has shorter pages for large templates', async () => {
    const api = await daemon.account('A');
    const html = HTML + 'x'.repeat(250_000);
    for (let n = 1; n <= 18; n++) await api.post('/web-setup/templates', { name: String(n), html });
    const read = await pages(api, 200);
    expect(read.map((page) => page.length)).toEqual([17, 1]);
    expect(read.flat()).toEqual(Array.from({ length: 18 }, (_, n) => String(18 - n)));
  });

  it('rejects a key of another list', async () => {
    const api = await daemon.account('A');
    for (const name of ['1', '2']) await api.post('/web-setup/campaigns', { name });
    const { data } = await api.get<Page>('/web-setup/campaigns?limit=1');
    const { status, error } = await api.get(`/web-setup/templates?lastKey=${data.nextKey}`);
    expect([status, error.details?.[0]?.field]).toEqual([400, 'lastKey']);
  });
});
