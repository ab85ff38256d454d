import { afterAll, describe, expect, it } from 'vitest';
import { MAX_PARTIALS } from '../../../src/templates/partials.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';

// Starts the whole daemon, which is slow on a busy machine.
const daemon = await startInProcess();
afterAll(() => daemon.stop());

const PARTIALS = '/web-setup/partials';
const TEMPLATES = '/web-setup/templates';
const FOOTER = '<p>{{ company_address_html }} {{ unsubscribe_email_html }}</p>';

interface Partial {
  partialId: string;
  name: string;
  html: string;
}

async function start() {
  const api = await daemon.account('A');
  const create = async (name: string, html: string) => {
    const { status, data } = await api.post<{ partial: Partial }>(PARTIALS, { name, html });
    expect(status, name).toBe(201);
    return data.partial;
  };
  const preview = (html: string, values: object = {}) =>
    api.post<{ html: string; missing: string[] }>(`${TEMPLATES}/preview`, {
      syntax: 'liquid',
      html,
      templateVariables: values,
    });
  const refused = async (method: string, path: string, body?: object) => {
    const { status, error } = await api.call(method, path, body === undefined ? {} : { body });
    return { status, ...error };
  };
  return { api, create, preview, refused };
}

describe('a partial over HTTP', () => {
  it('is created, listed, updated and deleted', async () => {
    const { api, create, refused } = await start();
    const partial = await create('head', '<h1>{{ shop }}</h1>');
    const head = {
      partialId: expect.stringMatching(/^partial_\d{13}_[0-9a-z]{12}$/),
      name: 'head',
      bytes: 19,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    };
    expect(partial).toEqual({ ...head, html: '<h1>{{ shop }}</h1>' });
    expect((await api.get(`${PARTIALS}?search=HEA`)).data).toEqual({ partials: [head], count: 1 });
    const path = `${PARTIALS}/${partial.partialId}`;
    expect((await api.put(path, { name: 'top', html: '<b>ü</b>' })).data).toMatchObject({
      partial: { name: 'top', html: '<b>ü</b>', bytes: 9 },
    });
    expect((await api.get(path)).data).toMatchObject({ partial: { name: 'top', html: '<b>ü</b>' } });
    expect((await api.call('DELETE', path)).status).toBe(200);
    expect(await refused('GET', path)).toMatchObject({ status: 404, code: 'PARTIAL_NOT_FOUND' });
  });

  it('is not that of another account', async () => {
    const { create } = await start();
    const { partialId } = await create('secret', 'x');
    const other = await start();
    const path = `${PARTIALS}/${partialId}`;
    for (const [method, body] of [['GET'], ['PUT', { html: 'y' }], ['DELETE']] as const)
      expect(await other.refused(method, path, body)).toMatchObject({ code: 'PARTIAL_NOT_FOUND' });
    expect((await other.preview('{% render "secret" %}')).error.code).toBe('TEMPLATE_SYNTAX');
  });

  it('has a name that is unique, and consists of letters, digits, "-" and "_"', async () => {
    const { create, refused } = await start();
    const other = await create('b', 'x');
    await create('a', 'x');
    for (const name of ['a', '', 'a b', 'a.b', 'ä', '../a', 'x'.repeat(101)])
      expect(await refused('POST', PARTIALS, { name, html: 'x' }), name).toMatchObject({
        status: 400,
        details: [{ field: 'name' }],
      });
    expect(await refused('PUT', `${PARTIALS}/${other.partialId}`, { name: 'a' })).toMatchObject({
      status: 400,
      details: [{ field: 'name' }],
    });
    expect(await refused('POST', PARTIALS, { name: 'c', html: 'x'.repeat(131_073) })).toMatchObject({
      status: 400,
      details: [{ field: 'html' }],
    });
  });

  it('is refused above the limit of the account', async () => {
    const { create, refused } = await start();
    for (let n = 0; n < MAX_PARTIALS; n++) await create(`p${n}`, 'x');
    expect(await refused('POST', PARTIALS, { name: 'more', html: 'x' })).toMatchObject({
      status: 409,
      code: 'LIMIT_REACHED',
      details: [{ name: 'partials' }],
    });
  });

  it('is refused with the place of a fault', async () => {
    const { create, refused } = await start();
    expect(await refused('POST', PARTIALS, { name: 'a', html: '<p>\n{{ x | shout }}' })).toMatchObject({
      status: 422,
      code: 'TEMPLATE_SYNTAX',
      details: [{ field: 'html', message: 'line 2, column 1: undefined filter: shout' }],
    });
    const { partialId } = await create('a', 'x');
    expect(await refused('PUT', `${PARTIALS}/${partialId}`, { html: '{% if %}' })).toMatchObject({
      code: 'TEMPLATE_SYNTAX',
    });
  });
});

describe('the partials of a template', () => {
  it('are inserted, also by partials and layouts', async () => {
    const { create, preview } = await start();
    await create('item', '<li>{{ title }}</li>');
    await create('list', '{% for one in items %}{% render "item", title: one %}{% endfor %}');
    await create('main', `<main>{% block body %}{% endblock %}</main>${FOOTER}`);
    const html = "{% layout 'main' %}{% block body %}{% include 'list' %}{{ nobody }}{% endblock %}";
    const { data } = await preview(html, { items: ['<a>', 'b'] });
    expect(data.html).toMatch(/^<main><li>&lt;a&gt;<\/li><li>b<\/li><\/main><p><span/);
    expect(data).toMatchObject({ missing: ['nobody'], required: [] });
  });

  it('are checked when it is stored, and satisfy the requirements of compliance', async () => {
    const { api, create, refused } = await start();
    const html = '<p>Hi</p>{% render "foot" %}';
    expect(await refused('POST', TEMPLATES, { name: 'T', syntax: 'liquid', html })).toMatchObject({
      code: 'TEMPLATE_SYNTAX',
      details: [
        { field: 'html', message: expect.stringMatching(/line 1, column 10: there is no partial "foot"/) },
      ],
    });
    await create('foot', FOOTER);
    const { data } = await api.post<{ warnings?: string[] }>(TEMPLATES, {
      name: 'T',
      syntax: 'liquid',
      html,
    });
    expect(data.warnings ?? []).toEqual([]);
  });

  it('are found in a compiled template', async () => {
    const { api, create } = await start();
    await create('foot', FOOTER);
    const mjml =
      '<mjml><mj-body><mj-section><mj-column><mj-text>{% render "foot" %}</mj-text></mj-column></mj-section></mj-body></mjml>';
    const { data } = await api.post<{ template: { templateId: string } }>(TEMPLATES, {
      name: 'T',
      syntax: 'liquid',
      mjml,
    });
    const shown = await api.post<{ html: string }>(`${TEMPLATES}/preview`, {
      templateId: data.template.templateId,
    });
    expect(shown.data.html).toContain('unsubscribe');
  });

  it('cannot be deleted or renamed while something uses them', async () => {
    const { api, create, refused } = await start();
    const { partialId } = await create('foot', FOOTER);
    const path = `${PARTIALS}/${partialId}`;
    const template = async (html: string, syntax = 'liquid') =>
      (await api.post<{ template: { templateId: string } }>(TEMPLATES, { name: 'Order', syntax, html })).data
        .template.templateId;
    // Neither uses it.
    await template('<p class="foot">foot</p>{% comment %}foot{% endcomment %}');
    await template('{% render "foot" %}', 'simple');
    const used = await template('{% render "foot" %}');
    const outer = await create('outer', '{% include "foot" %}');
    for (const [method, body] of [['DELETE'], ['PUT', { name: 'other' }]] as const) {
      const refusal = await refused(method, path, body);
      expect(refusal).toMatchObject({ status: 409, code: 'PARTIAL_IN_USE' });
      expect(refusal.message).toContain('is used by template "Order", partial "outer": remove it there');
      expect(refusal.details).toMatchObject([{ name: used }, { name: outer.partialId }]);
    }
    expect((await api.put(path, { html: `<hr>${FOOTER}` })).status).toBe(200);
    await api.call('DELETE', `${TEMPLATES}/${used}`);
    await api.call('DELETE', `${PARTIALS}/${outer.partialId}`);
    expect((await api.call('DELETE', path)).status).toBe(200);
  });

  it('cannot contain each other', async () => {
    const { api, create, refused, preview } = await start();
    const a = await create('a', 'x');
    await create('b', '{% render "a" %}');
    await create('c', '{% render "b" %}');
    expect(await refused('PUT', `${PARTIALS}/${a.partialId}`, { html: '{% include "c" %}' })).toMatchObject({
      status: 422,
      details: [{ message: 'partials contain each other: a > c > b > a' }],
    });
    expect(await refused('POST', PARTIALS, { name: 'd', html: '{% layout "d" %}' })).toMatchObject({
      details: [{ message: 'partials contain each other: d > d' }],
    });
    // As after an import of an account.
    const row = daemon.tables.partials.get(api.accountId, a.partialId);
    if (row === null) throw new Error('no partial');
    daemon.tables.partials.update({ ...row, html: '{% render "c" %}' });
    expect((await preview('{% render "b" %}')).error.message).toContain('partials contain each other');
  });

  it('are nested at most ten deep, and have at most a mebi of characters together', async () => {
    const { create, refused, preview } = await start();
    for (let n = 0; n < 10; n++) await create(`p${n}`, n === 0 ? 'end' : `{% render "p${n - 1}" %}`);
    expect((await preview('{% render "p9" %}')).data.html).toBe('end');
    expect(await refused('POST', PARTIALS, { name: 'p10', html: '{% render "p9" %}' })).toMatchObject({
      details: [{ message: 'nests partials more than 10 deep' }],
    });
    for (let n = 0; n < 8; n++) await create(`large${n}`, '-'.repeat(131_072));
    const html = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => `{% render "large${n}" %}`).join('');
    expect((await preview(html)).error.message).toContain('must have at most 1048576 characters');
  });

  it('are looked up as often as an account can have partials', async () => {
    const { preview } = await start();
    const names = (count: number) =>
      Array.from({ length: count }, (_, n) => `{% comment %}{% render "n${n}" %}{% endcomment %}`).join('');
    expect((await preview(names(MAX_PARTIALS))).status).toBe(200);
    expect((await preview(names(MAX_PARTIALS + 1))).error.message).toContain('names more than 200 partials');
  });
});
