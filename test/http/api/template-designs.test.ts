import { afterAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { Design } from '../../../src/mail/blocks/design.ts';
import { renderDesign } from '../../../src/mail/blocks/render.ts';
import { DESIGN } from '../../mail/blocks/designs.ts';
import { PLATFORM, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess({ 'public.url': 'http://127.0.0.1:0' });
afterAll(() => daemon.stop());

const HTML = '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>';
const PATH = '/web-setup/templates';
const OTHER: Design = { ...DESIGN, theme: { ...DESIGN.theme, accent: '#0b6e4f' } };

interface Answer {
  template: { templateId: string; html: string; design?: Design };
  warnings?: string[];
}

async function start() {
  const api = await daemon.account('A');
  const { data } = await api.post<Answer>(PATH, { name: 'News', subject: 'News', design: DESIGN });
  return { api, created: data, path: `${PATH}/${data.template.templateId}` };
}

describe('a template with a design', () => {
  it('has the html that is made from it, and returns both', async () => {
    const { api, created, path } = await start();
    expect(created.warnings).toBeUndefined();
    expect(created.template).toMatchObject({ html: renderDesign(DESIGN), design: DESIGN });
    expect((await api.get<Answer>(path)).data.template).toEqual(created.template);
    expect((await api.get<{ templates: object[] }>(PATH)).data.templates).toEqual([created.template]);
  });

  it('follows a changed design', async () => {
    const { api, path } = await start();
    const { data } = await api.put<Answer>(path, { design: OTHER });
    expect(data.template).toMatchObject({ html: renderDesign(OTHER), design: OTHER });
    expect((await api.put<Answer>(path, { name: 'Renamed' })).data.template.design).toEqual(OTHER);
  });

  it('loses its design when its html is replaced, and says so', async () => {
    const { api, path } = await start();
    const { data } = await api.put<Answer>(path, { html: HTML });
    expect(data.warnings).toEqual([expect.stringContaining('the design of the template is deleted')]);
    expect(data.template.html).toBe(HTML);
    expect(data.template).not.toHaveProperty('design');
    const again = await api.put<Answer>(path, { html: `${HTML} ` });
    expect(again.data.warnings).toBeUndefined();
    const { data: version } = await api.get<{ design: Design }>(`${path}/versions/1`);
    expect(version.design).toEqual(DESIGN);
  });

  it('keeps its html without the design', async () => {
    const { api, path } = await start();
    const { data } = await api.put<Answer>(path, { design: null });
    expect(data.warnings).toBeUndefined();
    expect(data.template.html).toBe(renderDesign(DESIGN));
    expect(data.template).not.toHaveProperty('design');
  });

  it('can be sent back as it was read, with or without changes of the design', async () => {
    const { api, created, path } = await start();
    const { html } = created.template;
    expect((await api.put<Answer>(path, { name: 'A', html, design: DESIGN })).data.template.design).toEqual(
      DESIGN,
    );
    expect((await api.put<Answer>(path, { html, design: OTHER })).data.template.html).toBe(
      renderDesign(OTHER),
    );
    const current = renderDesign(OTHER);
    expect((await api.put<Answer>(path, { html: current })).data.template.design).toEqual(OTHER);
  });

  it('is refused with other html', async () => {
    const { api, path } = await start();
    const both = { html: HTML, design: OTHER };
    for (const answer of [
      await api.call('POST', PATH, { body: { name: 'B', ...both } }),
      await api.call('PUT', path, { body: both }),
      await api.call('POST', `${PATH}/preview`, { body: both }),
    ])
      expect([answer.status, answer.error.details?.[0]?.field]).toEqual([400, 'html']);
    expect((await api.get<Answer>(path)).data.template.design).toEqual(DESIGN);
  });

  it('is refused with a path for each hostile value, and leaves no trace', async () => {
    const { api, path } = await start();
    const design = structuredClone(DESIGN);
    Object.assign(design.blocks[2] ?? {}, { href: 'javascript:alert(1)' });
    const { status, error } = await api.call('PUT', path, { body: { design } });
    expect([status, error.code, error.details?.[0]?.field]).toEqual([
      400,
      'VALIDATION_ERROR',
      'design.blocks[2].href',
    ]);
    expect((await api.get<Answer>(path)).data.template.design).toEqual(DESIGN);
    expect((await api.get<{ count: number }>(`${path}/versions`)).data.count).toBe(0);
  });

  it('is previewed without being stored', async () => {
    const { api } = await start();
    await api.call('PUT', '/web-setup/account', {
      body: {
        companyName: 'Shop Ltd',
        companyAddress: { line1: '1 High Street', city: 'Leeds', postalCode: 'LS1 1AA', country: 'GB' },
      },
    });
    const { data } = await api.post<{
      html: string;
      text: string;
      missing: string[];
      required: string[];
      bytes: number;
    }>(`${PATH}/preview`, { subject: 'News', design: DESIGN, templateVariables: { firstName: '<Ada>' } });
    expect(data).toMatchObject({ missing: [], required: [] });
    expect(data.html).toContain('Welcome, &lt;Ada&gt;</h1>');
    expect(data.text).toContain('Welcome, <Ada>');
    expect(data.text).toContain('Shop Ltd');
    expect(data.bytes).toBeLessThan(20_000);
    expect((await api.get<{ count: number }>(PATH)).data.count).toBe(1);
  });
});

describe('the starters', () => {
  interface Starters {
    starters: { starterId: string; name: string; type: string; subject: string; design: Design }[];
    count: number;
  }

  it('are listed in the language that is asked for, with the name of the company', async () => {
    const api = await daemon.account('A');
    await api.call('PUT', '/web-setup/account', { body: { companyName: 'Tea & Co' } });
    const list = async (query: string) => (await api.get<Starters>(`${PATH}/starters${query}`)).data;
    const english = await list('');
    expect(english.count).toBe(8);
    expect(english.starters[0]).toMatchObject({ starterId: 'welcome', subject: 'Welcome to Tea & Co' });
    expect(JSON.stringify(english.starters[0]?.design.blocks[0])).toContain('"text":"Tea & Co"');
    expect((await list('?language=de-AT')).starters[0]?.subject).toBe('Willkommen bei Tea & Co');
    expect((await list('?language=fr')).starters[0]?.subject).toBe('Bienvenue chez Tea & Co');
    expect(await list('?language=ja')).toEqual(english);
  });

  it('become templates without warnings', async () => {
    const api = await daemon.account('A');
    const { data } = await api.get<Starters>(`${PATH}/starters?language=de`);
    for (const { name, type, subject, design } of data.starters) {
      const created = await api.post<Answer>(PATH, { name, type, subject, design });
      expect([created.status, created.data.warnings]).toEqual([201, undefined]);
    }
  });
});

it('the html of a design is the same in the template, in the message and in its web view', async () => {
  const { api, created, path } = await start();
  const { html } = created.template;
  const again = await api.put<Answer>(path, { design: created.template.design });
  expect(again.data.template.html).toBe(html);
  const [group] = daemon.tables.domainGroups.list(api.accountId);
  const domain = { account_id: api.accountId, domain_id: 'domain_1', name: 'shop.test' };
  const times = { next_check_at: Date.now() + DAY };
  insertDomain(daemon.tables, { ...domain, ...times, group_id: group?.group_id ?? '' }, Date.now());
  const names = [...html.matchAll(/\{\{([A-Za-z][\w.]*)/g)].map(([, name = '']) => name);
  const own = names.filter((name) => !/_(?:html|url)$/.test(name) && !name.includes('.'));
  const templateVariables = Object.fromEntries(own.map((name) => [name, 'value']));
  const marker = '{{view_url}}';
  const { data } = await api.post<Answer>(PATH, {
    name: 'With a link',
    subject: 'News',
    html: html.replace('</body>', `<a href="${marker}">View</a></body>`),
  });
  const sent = await api.send({
    from: 'shop@shop.test',
    to: `delivered@simulator.${PLATFORM}`,
    templateId: data.template.templateId,
    templateVariables,
  });
  const message = `/web-setup/messages/${sent.data.messageId}/content`;
  const content = (await api.get<{ html: string }>(message)).data.html;
  const [, link = ''] = /href="([^"]*\/v\/[^"]*)">View/.exec(content) ?? [];
  const view = await (await fetch(link)).text();
  expect(view).toBe(content);
  expect(await (await fetch(link)).text()).toBe(view);
  // Everything but the values is what the design was rendered to.
  const literals = data.template.html.split(/\{\{[^{}]*\}\}/);
  let at = 0;
  for (const [index, literal] of literals.entries()) {
    const found = view.indexOf(literal, at);
    expect(found, literal).toBeGreaterThanOrEqual(at);
    if (index === 0) expect(found).toBe(0);
    at = found + literal.length;
  }
  expect(view.endsWith(literals.at(-1) ?? '')).toBe(true);
});
