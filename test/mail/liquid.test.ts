import { describe, expect, it } from 'vitest';
import { type LiquidPartials, parseLiquid, partialNames, renderLiquid } from '../../src/mail/liquid.ts';
import { markOf, SERVICE_VARIABLES, type TemplateKind } from '../../src/mail/template.ts';
import { joinPart } from '../../src/templates/liquid.ts';

interface Options {
  kind?: TemplateKind;
  partials?: LiquidPartials;
  optional?: string[];
}

/** The rendered text, or why there is none. */
function render(source: string, variables: Record<string, unknown> = {}, options: Options = {}) {
  const { kind = 'html', partials = {}, optional = [] } = options;
  const part = parseLiquid(source, kind, partials);
  if (!('nodes' in part)) return part;
  const rendered = renderLiquid(part, variables, { limitMs: 10_000, optional, service: SERVICE_VARIABLES });
  return 'values' in rendered ? joinPart(part.texts, rendered.values) : rendered;
}

function names(source: string, partials: LiquidPartials = {}): string[] {
  const part = parseLiquid(source, 'html', partials);
  if (!('nodes' in part)) throw new Error(part.message);
  return part.names;
}

const layout = (html: string): LiquidPartials => ({ main: html });

describe('Liquid', () => {
  it('has conditions, loops and filters', () => {
    const source =
      '{% if vip %}VIP{% elsif name == "Ada" %}Ada{% else %}-{% endif %}{% for item in items %} {{ forloop.index }}:{{ item.title | upcase }}{% endfor %} {{ at | date: "%d.%m.%Y" }} {{ q | url_encode }} {{ none | default: "x" }}';
    expect(
      render(
        source,
        { name: 'Ada', items: [{ title: 'a' }, { title: 'b' }], at: '2026-05-01', q: 'a b&c' },
        {
          optional: [],
        },
      ),
    ).toBe('Ada 1:A 2:B 01.05.2026 a+b%26c x');
  });

  it('takes empty texts, zero and false for false in conditions', () => {
    expect(render('{% if name %}a{% else %}b{% endif %}', { name: '' })).toBe('b');
    expect(render('{{ name | default: "friend" }}', { name: '' })).toBe('friend');
  });

  it('escapes values in html once, and only there', () => {
    const variables = { name: '<b>"A" & B</b>' };
    const escaped = '&lt;b&gt;&quot;A&quot; &amp; B&lt;/b&gt;';
    expect(render('{{ name }}', variables)).toBe(escaped);
    expect(render('{{ name | escape }}', variables)).toBe(escaped);
    expect(render('{{ name | raw }}', variables)).toBe(variables.name);
    expect(render('{{ name }}', variables, { kind: 'text' })).toBe(variables.name);
    expect(render('{{ name }}', variables, { kind: 'subject' })).toBe(variables.name);
    expect(render('{% capture x %}<i>{{ name }}</i>{% endcapture %}{{ x }}', variables)).toBe(
      `<i>${escaped}</i>`,
    );
    expect(render('{{ lines | newline_to_br }}', { lines: '<a>\nb' })).toBe('&lt;a&gt;<br>\nb');
    expect(render('{{ name | escape_once }}', { name: '&lt;<' })).toBe('&lt;&lt;');
    expect(render('{{ name | append: "<" }}', { name: '>' })).toBe('&gt;&lt;');
  });

  it.each([
    ['{{ name }}', {}, 'name'],
    ['{{ name | upcase }}', { name: null }, 'name'],
    ['{{ a.b.c }}', { a: { b: {} } }, 'a.b.c'],
    ['{{ a.b.c }}', {}, 'a'],
    ['{% for x in list %}{{ x }}{% endfor %}', {}, 'list'],
    ['{% for x in list %}{{ x }}{% endfor %}', { list: [1, null] }, 'x'],
  ])('names a variable without a value: %s', (source, variables, name) => {
    expect(render(source, variables)).toEqual({ problem: { name, reason: 'missing' } });
  });

  it('inserts nothing for optional variables', () => {
    const optional = ['customFields.plan', 'event.order.id'];
    expect(render('[{{ customFields.plan }}{{ event.order.id }}]', { customFields: {} }, { optional })).toBe(
      '[]',
    );
  });

  it('refuses values that are no text', () => {
    expect(render('{{ a }}', { a: {} })).toEqual({ problem: { name: 'a', reason: 'not-text' } });
    expect(render('{{ a }}', { a: [1] })).toEqual({ problem: { name: 'a', reason: 'not-text' } });
    expect(render('{{ a | raw }}', { a: {} })).toEqual({ problem: { name: 'a | raw', reason: 'not-text' } });
    expect(render('{{ a | join: ", " }}', { a: [1, true] })).toBe('1, true');
    expect(render('{{ a }}', { a: 'x\ny' }, { kind: 'subject' })).toEqual({
      problem: { name: 'a', reason: 'line-break' },
    });
  });

  it.each([
    ['one\n{{ name | shout }}', 2, 1, 'undefined filter: shout'],
    ['one\n two {% iff name %}', 2, 6, 'tag "iff" not found'],
    ['{% if name %}', 1, 1, 'tag {% if name %} not closed'],
    ['a\n\n{{ name', 3, 1, 'output "{{ name" not closed'],
    ['{% include "x" %}', 1, 1, 'there is no partial "x"; partials are for html'],
    ['{% echo name %}', 1, 1, 'tag "echo" not found'],
    ['{{ name | json }}', 1, 1, 'undefined filter: json'],
    [
      '{% assign unsubscribe_url = "x" %}',
      1,
      11,
      'unsubscribe_url is set by the service and cannot be assigned',
    ],
  ])('names line and column of a fault: %j', (source, line, column, message) => {
    expect(render(source)).toEqual({ message, line, column, partial: null, isLimit: false });
  });

  it('marks the variables of the service, which no value can forge', () => {
    const mark = markOf('unsubscribe_url');
    expect(render('<a href="{{ unsubscribe_url }}">{% if true %}{{ unsubscribe_url }}{% endif %}')).toBe(
      `<a href="${mark}">${mark}`,
    );
    expect(render('{{ name }}', { name: mark })).toEqual({ problem: { name: 'name', reason: 'nul' } });
    expect(render('{{ name | url_decode }}', { name: '%00unsubscribe_url%00' })).toMatchObject({
      problem: { reason: 'nul' },
    });
    expect(render('{{ "\\u0000unsubscribe_url\\u0000" | raw }}')).toMatchObject({
      problem: { reason: 'nul' },
    });
    expect(render('{{ unsubscribe_url | append: "" }}')).toMatchObject({ problem: { reason: 'nul' } });
    expect(render('{{ unsubscribe_url }}', { unsubscribe_url: 'x' })).toBe(mark);
  });

  it('keeps the text at the top level separate from the values', () => {
    const part = parseLiquid('<p>{{ a }}</p>{{ unsubscribe_url }}{% if b %}x{% endif %}!', 'html', {});
    expect(part).toMatchObject({ texts: ['<p>', `</p>${markOf('unsubscribe_url')}`, '!'] });
  });

  it('lists the variables that a template and its partials use', () => {
    const partials = { foot: '{{ shop.name }}{{ year }}' };
    const source =
      '{% assign x = a.b %}{{ x }}{% for i in list %}{{ i.c }}{{ customFields.plan }}{% endfor %}{{ unsubscribe_url }}{% render "foot", year: 1 %}';
    expect(names(source, partials)).toEqual(['a.b', 'list', 'customFields.plan', 'shop.name']);
  });

  it('renders partials and layouts of its own, and no other', () => {
    const partials = layout('<main>{% block body %}none{% endblock %}</main>');
    expect(
      render('{% layout "main" %}{% block body %}{{ name }}{% endblock %}', { name: '<' }, { partials }),
    ).toBe('<main>&lt;</main>');
    expect(render('{% render "main" %}', {}, { partials: layout('<b>{{ name }}</b>') })).toMatchObject({
      problem: { name: 'name', reason: 'missing' },
    });
    for (const name of ['/etc/passwd', '../../package.json', 'other', '__proto__', 'constructor'])
      expect(render(`{% render "${name}" %}`, {}, { partials })).toMatchObject({
        message: `there is no partial "${name}"; partials are for html`,
      });
    expect(render('{% render "main" %}', {}, { partials, kind: 'text' })).toMatchObject({
      message: 'there is no partial "main"; partials are for html',
    });
    expect(render('{% render "main" %}', {}, { partials: layout('a\n{{ b | c }}') })).toMatchObject({
      message: 'undefined filter: c',
      line: 2,
      partial: 'main',
    });
  });

  it('includes a partial with the variables of the template', () => {
    const partials = layout('{{ name }}{% assign seen = "yes" %}');
    expect(render('{% include "main" %}{{ seen }}', { name: 'Ada' }, { partials })).toBe('Adayes');
  });

  it('refuses a name of a partial that is not a literal', () => {
    for (const tag of ['render name', 'include name', 'layout name', 'render "a{{ name }}"', 'render ""'])
      expect(render(`{% ${tag} %}`, { name: 'main' }, { partials: layout('x') })).toMatchObject({
        message: 'requires the name of a partial in quotes',
      });
    expect(render('{% layout none %}x', {})).toBe('x');
  });

  it('finds the partials that html names', () => {
    const html = `{% render 'a' %}{%- include "b-1", x: 1 -%}{%layout 'c_2'%}{% render d %}{{ "render 'e'" }}{% render "a" %}`;
    expect(partialNames(html)).toEqual(['a', 'b-1', 'c_2']);
  });

  it.each(['__proto__', 'constructor'])('renders a partial with the name %s', (name) => {
    const partials = Object.fromEntries([[name, 'x']]);
    expect(render(`{% render "${name}" %}{% include "${name}" %}`, {}, { partials })).toBe('xx');
  });

  it('renders in UTC and in no locale of the machine', () => {
    expect(render('{{ 0 | date }} {{ 1767225599 | date: "%B %H:%M %Z" }}')).toMatch(
      /^1970-01-01 December 23:59/,
    );
  });
});
