import { describe, expect, it } from 'vitest';
import { parseTemplate, renderTemplate } from '../../src/mail/template.ts';
import { sample } from '../support/samples.ts';

/** The syntax of other template languages in a template, and the advice about it. */
const found = (source: string) => parseTemplate(source).foreign;
const advice = (source: string) => found(source).map((one) => one.advice);

describe('names our form of a default', () => {
  it.each([
    ["{{ firstName | default: 'there' }}", 'firstName|there'],
    ["{{firstName|default:'there'}}", 'firstName|there'],
    ['{{ firstName | default: "there" }}', 'firstName|there'],
    ['{{ firstName | default : "there" }}', 'firstName|there'],
    ['{{ firstName | default("there") }}', 'firstName|there'],
    ["{{ firstName|default('my friend', true) }}", 'firstName|my friend'],
    ['{{ firstName|default="there" }}', 'firstName|there'],
    ["{{ firstName|d('there') }}", 'firstName|there'],
    ["{{ first_name || 'there' }}", 'first_name|there'],
    ['{{first_name||"there"}}', 'first_name|there'],
    ["{{ first_name ?? 'there' }}", 'first_name|there'],
    ["{{ first_name or 'there' }}", 'first_name|there'],
    ["{{ first_name ?: 'there' }}", 'first_name|there'],
    ['{{ first_name, fallback="there" }}', 'first_name|there'],
    ['{{ first_name default="there" }}', 'first_name|there'],
    ['{{insert first_name "default=there"}}', 'first_name|there'],
    ['{{var:first_name:"there"}}', 'first_name|there'],
    ['{{ customFields.plan | default: "free" }}', 'customFields.plan|free'],
    ["{{${first_name} | default: 'there'}}", 'first_name|there'],
    ['{{ firstName | default: &quot;there&quot; }}', 'firstName|there'],
    ['{{ firstName | default: &#39;there&#39; }}', 'firstName|there'],
    ['{{ firstName | default: “there” }}', 'firstName|there'],
    ["{{ firstName\n  | default: 'there' }}", 'firstName|there'],
    ["{{{ firstName | default: 'there' }}}", 'firstName|there'],
    ["{{ firstName&nbsp;| default: 'there' }}", 'firstName|there'],
  ])('%s', (source, form) => {
    expect(advice(source)).toEqual([`write {{${form}}}`]);
  });

  it.each([
    '{{ a | default: other }}',
    "{{ a | default: 'x' | upcase }}",
    "{{ a || b || 'c' }}",
    "{{ a | default: '' }}",
  ])('%s: without a text that can be named', (source) => {
    expect(advice(source)).toEqual(['write {{a|text}}, with the text that replaces a missing value']);
  });
});

describe('names a variable', () => {
  it.each([
    ['{{var:name}}', 'name'],
    ['{{ .Name }}', 'Name'],
    ['{{$name}}', 'name'],
    ['{{${first_name}}}', 'first_name'],
    ['*|FNAME|*', 'FNAME'],
    ['<%= first_name %>', 'first_name'],
    ['%recipient.first_name%', 'first_name'],
    ['%%First_Name%%', 'First_Name'],
  ])('%s', (source, name) => {
    expect(advice(source)).toEqual([`write {{${name}}}`]);
  });
});

describe('finds', () => {
  it.each([
    '{{ name | upper }}',
    '{{ name|urlencode }}',
    '{{name | capitalize}}',
    '{{ name | title }}',
    '{{ name | truncate: 20 }}',
    '{{ name | truncate(20) }}',
    '{{ name | append: "x" }}',
    '{{ name | trim | upper }}',
    '{{ name | there | upper }}',
    '{{ name | custom_filter: "x" }}',
    '{{ name | customFilter("x") }}',
    '{{ name | shout() }}',
    '{{ "now" | date: "%Y" }}',
    '{{ order.date | date("d.m.Y") }}',
    '{{ name|escape }}',
    '{{ bio|safe }}',
    "{{ person|lookup:'First Name' }}",
    "{{ name ? name : 'there' }}",
    "{{ name if name else 'there' }}",
    "{{ user['first name'] }}",
    '{{ items[0] }}',
    '{{ upper(name) }}',
    '{{upper "name"}}',
    '{{#if name}}',
    '{{#each items}}',
    '{{/each}}',
    '{{^name}}',
    '{{> header}}',
    '{{! a comment }}',
    '{{~#if name~}}',
    '{{ a && b }}',
    '{{ a &amp;&amp; b }}',
    '{% if name %}',
    '{%- assign x = 1 -%}',
    "{% set x = 'y' %}",
    '{%\n if a %}',
    '{% endif %}',
    '*|IF:FNAME|*',
    '<% if name %>',
  ])('%s', (source) => {
    const text = source.replaceAll(/\s+/g, ' ');
    expect(found(`<p>Hi ${source}, {{name}}</p>`).map((one) => one.text)).toEqual([text]);
  });
});

describe('does not find', () => {
  it.each([
    '{{name}}',
    '{{ name|there }}',
    '{{name|default}}',
    '{{name|my friend}}',
    '{{name|Friend(s)}}',
    '{{name|dear customer (new)}}',
    '{{time|at 12:30}}',
    '{{time|12:30}}',
    '{{link|https://example.com/a?b=c}}',
    '{{link|mailto:a@example.com}}',
    '{{link|//example.com}}',
    '{{name|Note: none}}',
    '{{price|€ 5.00}}',
    '{{place|first}}',
    "{{name|it's you}}",
    '{{name|"N/A"}}',
    '{{customFields.plan|free}}',
    '\\{{ name | default: "x" }}',
    '\\{{#if name}}',
    '{{first name}}',
    '{{first-name|friend}}',
    '{{größe}}',
    '.a{b{c:d}}',
    '@media print{a{color:red}}',
    '100 %',
    '50% off, 20%%',
    'a * | b | * c',
    '<p style="width:50%">x</p>',
    'a <%b',
    '{ % x % }',
    '{{company_address_html}}',
  ])('%s', (source) => {
    expect(found(source)).toEqual([]);
  });
});

it('finds what the sample has, and lists nothing of it twice', () => {
  const { subject, html } = JSON.parse(sample('f2-liquid-default.json').toString()) as {
    subject: string;
    html: string;
  };
  expect(advice(subject)).toEqual(['write {{firstName|there}}']);
  expect(advice(html)).toEqual(['write {{firstName|there}}', 'write {{first_name|there}}']);
  expect(parseTemplate(html).leftovers).toEqual([]);
});

it('does not change what is inserted', () => {
  const template = parseTemplate('{{ name | upper }} {% if x %} {{#if x}}');
  expect(renderTemplate(template, 'text', { name: 'Ann' })).toBe('Ann {% if x %} {{#if x}}');
});

it('is not read where braces are text', () => {
  expect(parseTemplate('{{ a | upper }} {% if x %} {{#if x}}', 'service').foreign).toEqual([]);
});

it('names a limited number of short texts', () => {
  const source = Array.from({ length: 100 }, (_, n) => `{% if x${n} ${'y'.repeat(100)} %}`).join('');
  const { foreign } = parseTemplate(source);
  expect(foreign).toHaveLength(20);
  expect(Math.max(...foreign.map(({ text }) => text.length))).toBeLessThanOrEqual(81);
});
