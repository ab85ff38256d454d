import { afterAll, describe, expect, it } from 'vitest';
import type { Design } from '../../../src/mail/blocks/design.ts';
import { renderDesign } from '../../../src/mail/blocks/render.ts';
import { DESIGN } from '../../mail/blocks/designs.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
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
