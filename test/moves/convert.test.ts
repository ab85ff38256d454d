import { describe, expect, it } from 'vitest';
import { parseLiquid, renderLiquid } from '../../src/mail/liquid.ts';
import { parseTemplate, renderTemplate } from '../../src/mail/template.ts';
import type { TemplateItem } from '../../src/moves/exports.ts';
import { convertTemplate, type MovedTemplate } from '../../src/moves/templates.ts';

type Language = TemplateItem['language'];

const item = (language: Language, text: string): TemplateItem => ({
  kind: 'template',
  name: 'one',
  title: 'One',
  language,
  type: null,
  subject: null,
  html: null,
  text,
});

/** The text that a converted template shows, and its syntax; or what has no equivalent. */
function shown(language: Language, source: string, variables: Record<string, unknown>): string {
  const converted = convertTemplate(item(language, source), new Map());
  if (typeof converted === 'string') return converted;
  if (Array.isArray(converted))
    return converted.map(({ line, construct }) => `${line} ${construct}`).join(', ');
  return `${converted.syntax}: ${rendered(converted, variables)}`;
}

function rendered({ syntax, text }: MovedTemplate, variables: Record<string, unknown>): string {
  if (syntax === 'simple') {
    const result = renderTemplate(parseTemplate(text ?? ''), 'text', variables);
    return typeof result === 'string' ? result : JSON.stringify(result);
  }
  const part = parseLiquid(text ?? '', 'text', {});
  if (!('nodes' in part)) return JSON.stringify(part);
  const result = renderLiquid(part, variables, { limitMs: 1000, optional: [], service: [] });
  if (!('values' in result)) return JSON.stringify(result);
  return part.texts.map((text, index) => text + (result.values[index] ?? '')).join('');
}

describe('a template of Handlebars', () => {
  const each = '{{#each items}}{{@index}}:{{title}}{{#if @last}}.{{else}}, {{/if}}{{else}}none{{/each}}';
  it.each([
    ['a variable', 'Hi {{ user.name }}', { user: { name: 'Ada' } }, 'simple: Hi Ada'],
    ['a default', 'Hi {{insert name "default=friend"}}', {}, 'simple: Hi friend'],
    ['a loop', each, { items: [{ title: 'a' }, { title: 'b' }] }, 'liquid: 0:a, 1:b.'],
    ['an empty loop', each, { items: [] }, 'liquid: none'],
    ['a missing loop', each, {}, 'liquid: none'],
    [
      'a loop in a loop',
      '{{#each a}}{{#each b}}{{../x}}{{this}}{{@root.y}} {{/each}}{{/each}}',
      { a: [{ x: 1, b: [2, 3] }], y: 4 },
      'liquid: 124 134 ',
    ],
    [
      'a name that the loop could hide',
      '{{#each items}}{{this}}{{@root.item}} {{/each}}',
      { items: [1], item: 2 },
      'liquid: 12 ',
    ],
    [
      'conditions that are false',
      ['a', 'b', 'c', 'd', 'e'].map((name) => `{{#if ${name}}}y{{else}}n{{/if}}`).join(''),
      { a: 0, b: '', c: [], d: false },
      'liquid: nnnnn',
    ],
    [
      'conditions that are true',
      '{{#if a}}y{{/if}}{{#unless b}}y{{/unless}}{{#with c}}{{d}}{{/with}}',
      { a: 'x', c: { d: 1 } },
      'liquid: yy1',
    ],
    ['a chain', '{{#if a}}1{{else if b}}2{{else}}3{{/if}}', { b: true }, 'liquid: 2'],
    [
      'comparisons',
      '{{#equals a "x"}}1{{/equals}}{{#greaterThan n 3}}2{{/greaterThan}}{{#notEquals a n}}3{{/notEquals}}',
      { a: 'x', n: 4 },
      'liquid: 123',
    ],
    ['white space control', 'a {{~#if x~}} b {{~/if~}} c', { x: 1 }, 'liquid: abc'],
    ['lines with blocks alone', 'a\n  {{#if x}}\nb\n  {{/if}}\n{{! note }}\nc', { x: 1 }, 'liquid: a\nb\nc'],
    ['a helper', 'a\n{{date now}}', {}, '2 {{date now}}'],
    ['a section', '{{#x}}a{{/x}}', {}, '1 {{#x}}'],
    ['a partial', '{{> x}}', {}, '1 {{> x}}'],
    ['an open block', 'a\n{{#if x}}', {}, '2 {{#if'],
    ['an open tag', '{{ x', {}, '1 {{ x'],
    ['an end without a beginning', '{{/if}}', {}, '1 {{/if}}'],
    ['a name of Liquid', '{{#if empty}}x{{/if}}', {}, '1 {{#if empty}}'],
    ['a tag of Liquid', '{% if x %}', {}, '1 {% if x %}'],
    ['escaped braces', '\\{{x}}', {}, '1 \\{{'],
  ])('with %s', (_, source, variables, expected) => {
    expect(shown('sendgrid', source, variables)).toBe(expected);
  });
});

describe('a template of Mustachio', () => {
  it.each([
    ['a section', '{{#a}}{{b}}{{../c}}{{#d}}{{.}}{{/d}}{{/a}}', { a: { b: 1, d: 3 }, c: 2 }, 'liquid: 123'],
    ['a section that is false', '{{#a}}x{{/a}}{{^a}}y{{/a}}', { a: [] }, 'liquid: y'],
    ['a loop', '{{#each a.b}}{{c}}{{/each}}', { a: { b: [{ c: 1 }, { c: 2 }] } }, 'liquid: 12'],
    ['a helper of Handlebars', '{{#if a}}x{{/if}}', {}, '1 {{#if a}}'],
  ])('with %s', (_, source, variables, expected) => {
    expect(shown('postmark', source, variables)).toBe(expected);
  });
});

describe('a template of Go', () => {
  it.each([
    [
      'fields',
      '{{ .Subscriber.Email }} {{.Tx.Data.order.id}} {{ .Subscriber.Attribs.city }}',
      { email: 'a@b.c', order: { id: 7 }, customFields: { city: 'X' } },
      'simple: a@b.c 7 X',
    ],
    [
      'conditions',
      '{{ if .Tx.Data.a }}1{{ else if eq .Tx.Data.b 2 }}2{{ else }}3{{ end }}{{ if not .Tx.Data.c }}4{{ end }}',
      { b: 2 },
      'liquid: 24',
    ],
    [
      'a loop',
      '{{ range .Tx.Data.items }}{{ .name }}{{ $.Subscriber.FirstName }} {{ else }}none{{ end }}',
      { items: [{ name: 'a' }], firstName: 'A' },
      'liquid: aA ',
    ],
    ['an empty loop', '{{ range .Tx.Data.items }}x{{ else }}none{{ end }}', {}, 'liquid: none'],
    ['a scope', '{{ with .Tx.Data.a }}{{ .b }}{{ end }}', { a: { b: 1 } }, 'liquid: 1'],
    ['white space control', 'a {{- if .Tx.Data.x -}} b {{- end -}} c', { x: 1 }, 'liquid: abc'],
    [
      'a link and a comment',
      '{{/* a */}}{{ TrackLink "https://a.example/" . }} {{ "b" }}',
      {},
      'simple: https://a.example/ b',
    ],
    [
      'functions',
      'a\n{{ Date "2006" }}{{ .Tx.Data.x | upper }}',
      {},
      '2 {{ Date "2006" }}, 2 {{ .Tx.Data.x | upper }}',
    ],
    ['variables', '{{ range $i, $e := .Tx.Data.x }}{{ end }}', {}, '1 {{ range $i, $e := .Tx.Data.x }}'],
    ['an open block', '{{ if .Tx.Data.x }}', {}, '1 {{ if .Tx.Data.x }}'],
    ['an open comment after braces', 'a }}\n{{/* b', {}, '2 {{/* b'],
  ])('with %s', (_, source, variables, expected) => {
    expect(shown('go', source, variables)).toBe(expected);
  });
});

describe('a name of a variable that the service sets', () => {
  it('is noted', () => {
    expect(convertTemplate(item('ses', '{{unsubscribe_url}}'), new Map())).toMatchObject({
      notes: [expect.stringContaining('{{unsubscribe_url}} is set by this service')],
    });
  });
});
