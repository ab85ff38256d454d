import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeHtml } from '../../src/mail/html/escape.ts';
import {
  isServiceVariable,
  MAX_PROBLEMS,
  MAX_SLOTS,
  parseTemplate,
  parseTemplateInSteps,
  renderTemplate,
  SERVICE_VARIABLES,
  type TemplateKind,
} from '../../src/mail/template.ts';

const variables = {
  name: 'Ann',
  html: `<b>"R&D's"</b>`,
  zero: 0,
  no: false,
  empty: '',
  nothing: null,
  list: ['a'],
  user: { name: 'Bob', address: { city: 'Ulm' } },
  twoLines: 'a\r\nBcc: x',
  lf: 'a\nb',
  nul: 'a\u0000u\u0000',
};

const render = (source: string, kind: TemplateKind = 'text', service = {}) =>
  renderTemplate(parseTemplate(source), kind, variables, service);

describe('a template', () => {
  it.each([
    // source, rendered as text
    ['', ''],
    ['nothing to fill in', 'nothing to fill in'],
    ['{{name}}', 'Ann'],
    ['Hello {{ name }}!', 'Hello Ann!'],
    ['{{\n  name\t}}', 'Ann'],
    ['{{name}}{{name}}', 'AnnAnn'],
    ['{{{name}}}', 'Ann'],
    ['{{zero}} {{no}} [{{empty}}]', '0 false []'],
    ['{{user.name}} in {{ user.address.city }}', 'Bob in Ulm'],
    ['{{unknown|friend}}', 'friend'],
    ['{{ unknown | dear friend }}', 'dear friend'],
    ['{{nothing|friend}}', 'friend'],
    ['{{empty|friend}}', 'friend'],
    ['{{name|friend}}', 'Ann'],
    ['{{zero|some}}', '0'],
    ['[{{unknown|}}]', '[]'],
    ['{{{unknown|friend}}}', 'friend'],
    ['\\{{name}}', '{{name}}'],
    ['\\{{{name}}}', '{{{name}}}'],
    ['\\{{name}} {{name}} \\{{name}}', '{{name}} Ann {{name}}'],
    ['C:\\{{name}}', 'C:{{name}}'],
    ['{{{{name}}}}', '{Ann}'],
    ['a{{{name}}', 'a{Ann'],
    ['{{name}}}', 'Ann}'],
    ['{{{name}} }', '{Ann }'],
  ])('renders %j as %j', (source, expected) => {
    expect(render(source)).toBe(expected);
  });

  it.each([
    '{{}}',
    '{{ }}',
    '{{name',
    '{{name}',
    '{ {name}}',
    '{{1name}}',
    '{{-name}}',
    '{{first name}}',
    '{{first-name}}',
    '{{#if name}}',
    '{{/if}}',
    '{{> footer}}',
    '{{name|a{b}}',
    '{{name|a\nb}}',
    '@media screen{a{color:red}}',
    '{{größe}}',
  ])('does not change %j', (source) => {
    expect(render(source)).toBe(source);
  });

  it('lists the names that it uses, each once', () => {
    expect(parseTemplate('{{b}} {{a.x}} {{{b}}} \\{{c}} {{a.x|d}}').names).toEqual(['b', 'a.x']);
  });

  it('lists probable mistakes, but no style sheet', () => {
    const { leftovers, foreign } = parseTemplate('{{first name}} {{ }} {{#each x}} a{{b:c} {{name}}');
    expect(leftovers).toEqual(['{{first name}}']);
    expect(foreign.map(({ text }) => text)).toEqual(['{{#each x}}']);
  });

  it('lists each probable mistake once', () => {
    expect(parseTemplate('{{first-name}} {{a-b}} {{first-name}}').leftovers).toEqual([
      '{{first-name}}',
      '{{a-b}}',
    ]);
  });

  it('has the offsets of its slots', () => {
    const source = 'Dear {{{ name }}} \\{{x}} {{user.name|you}}';
    const slices = parseTemplate(source).slots.map(({ start, end }) => source.slice(start, end));
    expect(slices).toEqual(['{{{ name }}}', '{{user.name|you}}']);
  });
});

describe('escaping', () => {
  it.each<[string, TemplateKind, string]>([
    ['{{html}}', 'html', '&lt;b&gt;&quot;R&amp;D&#39;s&quot;&lt;/b&gt;'],
    ['{{{html}}}', 'html', `<b>"R&D's"</b>`],
    ['{{html}}', 'text', `<b>"R&D's"</b>`],
    ['{{html}}', 'subject', `<b>"R&D's"</b>`],
    ['{{unknown|R&D}}', 'html', 'R&amp;D'],
    ['{{{unknown|R&D}}}', 'html', 'R&D'],
    ['<p title="{{name}}">&amp;</p>', 'html', '<p title="Ann">&amp;</p>'],
  ])('renders %s in %s as %s', (source, kind, expected) => {
    expect(render(source, kind)).toBe(expected);
  });

  it('escapes all characters that end an element or a quoted attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeHtml(text)).not.toMatch(/[<>"']/);
      }),
    );
  });
});

describe('variables that cannot be inserted', () => {
  it.each([
    ['{{unknown}}', 'text', [['unknown', 'missing']]],
    ['{{nothing}}', 'text', [['nothing', 'missing']]],
    [
      '{{user.unknown}} {{name.length}}',
      'text',
      [
        ['user.unknown', 'missing'],
        ['name.length', 'missing'],
      ],
    ],
    [
      '{{user}} {{list}} {{list|x}}',
      'html',
      [
        ['user', 'not-text'],
        ['list', 'not-text'],
      ],
    ],
    [
      '{{list.0}} {{list.length}}',
      'html',
      [
        ['list.0', 'missing'],
        ['list.length', 'missing'],
      ],
    ],
    [
      '{{user.}} {{user..name}}',
      'text',
      [
        ['user.', 'missing'],
        ['user..name', 'missing'],
      ],
    ],
    ['{{constructor}}', 'html', [['constructor', 'missing']]],
    [
      '{{__proto__}} {{user.__proto__.x}}',
      'html',
      [
        ['__proto__', 'missing'],
        ['user.__proto__.x', 'missing'],
      ],
    ],
    [
      '{{user.toString}} {{hasOwnProperty}}',
      'html',
      [
        ['user.toString', 'missing'],
        ['hasOwnProperty', 'missing'],
      ],
    ],
    [
      '{{twoLines}} {{lf}}',
      'subject',
      [
        ['twoLines', 'line-break'],
        ['lf', 'line-break'],
      ],
    ],
    ['{{nul}}', 'html', [['nul', 'nul']]],
    ['{{{nul}}}', 'text', [['nul', 'nul']]],
  ] as const)('%s in %s', (source, kind, expected) => {
    expect(render(source, kind)).toEqual(expected.map(([name, reason]) => ({ name, reason })));
  });

  it('are all returned, each once', () => {
    expect(render('{{a}} {{b}} {{name}} {{a}}')).toEqual([
      { name: 'a', reason: 'missing' },
      { name: 'b', reason: 'missing' },
    ]);
  });

  it('include the one at which the text exceeds its limit', () => {
    const source = '{{name}}'.repeat(10);
    expect(renderTemplate(parseTemplate(source), 'text', variables, {}, { limit: 30 })).toBe(
      'Ann'.repeat(10),
    );
    expect(renderTemplate(parseTemplate(source), 'text', variables, {}, { limit: 29 })).toEqual([
      { name: 'name', reason: 'too-long' },
    ]);
  });

  it('do not include line breaks outside the subject', () => {
    expect(render('{{lf}}', 'text')).toBe('a\nb');
  });
});

describe('service variables', () => {
  const service = {
    unsubscribe_email_html: '<a href="\u0000u\u0000">x</a>',
    unsubscribe_url: '\u0000u\u0000',
  };

  it('are inserted unescaped, with their marks', () => {
    expect(render('{{unsubscribe_email_html}}{{unsubscribe_url}}', 'html', service)).toBe(
      '<a href="\u0000u\u0000">x</a>\u0000u\u0000',
    );
  });

  it('are missing without a value of the service, whatever the caller sets', () => {
    const supplied = { company_address: 'a lie', unsubscribe_url: 'https://elsewhere.example' };
    const template = parseTemplate('{{company_address}}');
    expect(renderTemplate(template, 'html', supplied, service)).toEqual([
      { name: 'company_address', reason: 'missing' },
    ]);
    expect(renderTemplate(parseTemplate('{{unsubscribe_url}}'), 'text', supplied, service)).toBe(
      '\u0000u\u0000',
    );
  });

  it('have reserved names', () => {
    expect(SERVICE_VARIABLES.every(isServiceVariable)).toBe(true);
    expect(isServiceVariable('name')).toBe(false);
  });
});

describe('hostile templates', () => {
  const pieces = ['{', '{{', '{{{', '}}', '\\{{', '{{a', '{{a|', '{{ ', '{{a b}}', '{{a}}', '{{a.', '{{{a}}'];

  it.each(pieces)('of repeated %j are rendered in linear time', (piece) => {
    const source = piece.repeat(1_000_000 / piece.length);
    expect(renderTemplate(parseTemplate(source), 'html', { a: 'x' })).toBeDefined();
  });

  it('without slots are rendered unchanged, except for escapes', () => {
    const text = fc
      .array(fc.constantFrom('{', '}', '{{', '\\{{', '|', 'a', ' ', '.', '1', '<'))
      .map((all) => all.join(''));
    fc.assert(
      fc.property(text, (source) => {
        fc.pre(parseTemplate(source).slots.length === 0);
        expect(render(source)).toBe(source.replaceAll('\\{{', '{{'));
      }),
    );
  });
});

describe('limits', () => {
  it('stops after the maximum number of problems', () => {
    const source = Array.from({ length: 5000 }, (_, n) => `{{missing${n}}}`).join('');
    expect(renderTemplate(parseTemplate(source), 'text', {})).toHaveLength(MAX_PROBLEMS);
  });

  it('rejects a template with too many slots', () => {
    expect(parseTemplate('{{a}}'.repeat(MAX_SLOTS))).toMatchObject({ tooLong: false, names: ['a'] });
    const template = parseTemplate('{{a}}'.repeat(MAX_SLOTS + 1));
    expect(template).toMatchObject({ tooLong: true, slots: [] });
    expect(renderTemplate(template, 'text', { a: 'x' })).toEqual([{ name: '', reason: 'too-long' }]);
  });

  it('escapes a long value in steps like a short one', () => {
    const a = `&<>"'x`.repeat(20_000);
    const escaped = '&amp;&lt;&gt;&quot;&#39;x'.repeat(20_000);
    expect(renderTemplate(parseTemplate('{{a}}'), 'html', { a })).toBe(escaped);
    expect(escapeHtml(a)).toBe(escaped);
  });

  it.each(['<'.repeat(100), '<'.repeat(100_000)])(
    'refuses a value that is too long when it is escaped',
    (a) => {
      const template = parseTemplate('{{a}}');
      const tooLong = [{ name: 'a', reason: 'too-long' }];
      expect(renderTemplate(template, 'html', { a }, {}, { limit: 4 * a.length - 1 })).toEqual(tooLong);
      expect(renderTemplate(template, 'html', { a }, {}, { limit: 4 * a.length })).toHaveLength(4 * a.length);
    },
  );

  it('inserts many literal braces before and after a variable', () => {
    const escapes = '\\{{'.repeat(1000);
    const braces = '{{'.repeat(1000);
    const rendered = renderTemplate(parseTemplate(`${escapes}-{{a}}-${escapes}`), 'html', { a: 'x' });
    expect(rendered).toBe(`${braces}-x-${braces}`);
  });

  it.each([2, 3, 4, 5, 6, 100_000])('finds the variable after %i braces', (count) => {
    const braces = '{'.repeat(count);
    expect(renderTemplate(parseTemplate(`${braces}a}}`), 'text', { a: 'x' })).toBe(`${braces.slice(2)}x`);
    const raw = count === 2 ? '{{a}}}' : `${braces}a}}}`;
    expect(renderTemplate(parseTemplate(raw), 'html', { a: '<' })).toBe(
      count === 2 ? '&lt;}' : `${braces.slice(3)}<`,
    );
  });

  it('reads each of many braces once', () => {
    const steps = (length: number) => [...parseTemplateInSteps('{'.repeat(length))].length;
    expect(steps(1_000_000)).toBeLessThanOrEqual(1);
  });
});
