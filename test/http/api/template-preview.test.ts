import { afterAll, describe, expect, it } from 'vitest';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const PATH = '/web-setup/templates/preview';
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';

interface Preview {
  subject: string;
  html: string;
  text: string;
  bytes: number;
  missing: string[];
  required: string[];
  leftovers: string[];
  previewText: string;
  checks: { id: string; level: string; message: string; where?: string[] }[];
}

describe('a preview', () => {
  it('inserts values and the footer of the account, and names what has no value', async () => {
    const api = await daemon.account('Shop & Co');
    const { status, data } = await api.post<Preview>(PATH, {
      subject: 'Hello {{firstName}} {{order.id}}',
      html: `<p>{{ firstName }} {{missing}} {{__proto__}} {{first name}}</p>${FOOTER}`,
      to: 'ann@example.com',
      templateVariables: { firstName: '<b>Ann</b>', order: { id: 7 } },
    });
    expect(status).toBe(200);
    expect(data).toMatchObject({
      subject: 'Hello <b>Ann</b> 7',
      missing: ['missing', '__proto__'],
      required: [],
      leftovers: ['{{first name}}'],
    });
    expect(data.html).toContain('<p>&lt;b&gt;Ann&lt;/b&gt; {{missing}} {{__proto__}} {{first name}}</p>');
    expect(data.text).toContain('Shop & Co');
    expect(data.text).toContain('ann@example.com');
    expect(data.bytes).toBe(Buffer.byteLength(data.html));
  });

  it('refuses numbers that cannot be represented, which a send refuses too', async () => {
    const api = await daemon.account('Numbers');
    const refused = await api.call('POST', PATH, {
      rawBody: '{"html":"{{a.b}}","templateVariables":{"a":{"b":12345678901234567890},"c":[1e400],"d":0.1}}',
      headers: { 'Content-Type': 'application/json' },
    });
    expect([refused.status, refused.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    const message = 'must be a number that can be stored exactly; send it as a string';
    expect(refused.error.details).toEqual([
      { field: 'templateVariables.a.b', message },
      { field: 'templateVariables.c[0]', message },
    ]);
  });

  it('shows a stored template as a contact, with fields of the request in place of the stored ones', async () => {
    const api = await daemon.account('Shop');
    const { data: created } = await api.post<{ contact: { contactIdentifier: string } }>(
      '/web-setup/contacts',
      {
        email: 'ann@example.com',
        firstName: 'Ann',
        consentMethod: 'web_form',
        customFields: { city: 'Paris' },
      },
    );
    const { data: stored } = await api.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Offer',
      subject: 'For {{firstName}}',
      html: `<p>{{firstName}} {{lastName}} in {{customFields.city}}</p>${FOOTER}`,
      text: 'Own text for {{firstName}}',
    });
    const { templateId } = stored.template;
    const { contactIdentifier } = created.contact;
    const as = { templateId, contactIdentifier };
    expect((await api.post<Preview>(PATH, as)).data).toMatchObject({
      subject: 'For Ann',
      html: expect.stringContaining('<p>Ann  in Paris</p>'),
      text: 'Own text for Ann',
      missing: [],
    });
    const changed = await api.post<Preview>(PATH, { ...as, subject: 'Other', text: null });
    expect(changed.data).toMatchObject({
      subject: 'Other',
      text: expect.stringContaining('Ann in Paris'),
    });
    // Nobody's values are those of nobody.
    expect((await api.post<Preview>(PATH, { templateId })).data.missing).toEqual([
      'firstName',
      'lastName',
      'customFields.city',
    ]);
    const other = await daemon.account('Other');
    expect((await other.call('POST', PATH, { body: { templateId } })).error.code).toBe('TEMPLATE_NOT_FOUND');
    expect((await other.call('POST', PATH, { body: { contactIdentifier } })).error.code).toBe(
      'CONTACT_NOT_FOUND',
    );
  });

  it('names the compliance variables that are not shown, also of text only', async () => {
    const api = await daemon.account('Shop');
    const preview = async (body: object) => (await api.post<Preview>(PATH, body)).data;
    const required = ['company_address_html', 'unsubscribe_email_html'];
    expect(await preview({ html: `<!-- ${FOOTER} -->` })).toMatchObject({ required });
    expect(await preview({ text: 'Hello' })).toMatchObject({ required, text: 'Hello' });
    expect(await preview({ text: '{{company_address}} {{unsubscribe_url}}' })).toMatchObject({
      required: [],
    });
  });

  it('checks the content, and shows the line of an inbox', async () => {
    const api = await daemon.account('Shop');
    const { data } = await api.post<Preview>(PATH, {
      subject: 'Hello {{firstName}}',
      html: `<p>Hi {{firstName}}</p><a href="shop.html">{{code}}</a>${FOOTER}`,
    });
    expect(data.previewText).toMatch(/^Hi \{\{firstName\}\} \{\{code\}\}/);
    expect(data.checks.filter(({ level }) => level === 'bad')).toEqual([
      expect.objectContaining({ id: 'values', where: ['{{code}}'] }),
      expect.objectContaining({
        id: 'links',
        message: 'Links that lead nowhere (1): shop.html. Enter addresses that begin with https://.',
      }),
    ]);
  });

  it('refuses content above the limit, and ends with values that would exceed it', async () => {
    const api = await daemon.account('Shop');
    const long = { html: 'x'.repeat(1024 * 1024 + 1) };
    expect((await api.post(PATH, long)).status).toBe(400);
    const repeated = {
      html: '{{value}}'.repeat(9000),
      templateVariables: { value: 'x'.repeat(1000) },
    };
    expect((await api.post<Preview>(PATH, repeated)).data.bytes).toBe(0);
  });

  it('opens links on request only, none of a private network or with a value', async () => {
    const api = await daemon.account('Links');
    const content = {
      html: `<a href="http://127.0.0.1/">a</a><a href="https://shop.test/{{orderId}}">b</a>${FOOTER}`,
      templateVariables: { orderId: '7' },
    };
    const opened = async (more: object) =>
      (await api.post<Preview>(PATH, { ...content, ...more })).data.checks
        .filter(({ id }) => /^links.+/.test(id) && id !== 'linksEncrypted')
        .map(({ id, level, where }) => [id, level, where]);
    expect(await opened({})).toEqual([]);
    expect(await opened({ checkLinks: true })).toEqual([
      ['linksGone', 'bad', ['http://127.0.0.1/ (DNS)']],
      ['linksSkipped', 'ok', undefined],
    ]);
  });
});
