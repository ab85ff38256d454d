import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { templateInput } from '../../src/http/api/templates.ts';
import { renderDesign } from '../../src/mail/blocks/render.ts';
import { hidingVariable, missingCompliance } from '../../src/mail/compliance.ts';
import { parseTemplate } from '../../src/mail/template.ts';
import { STARTER_LANGUAGES, starters } from '../../src/templates/starters/starters.ts';

const ALL = STARTER_LANGUAGES.flatMap((language) =>
  starters(language, 'Example Ltd').map((starter) => ({ language, ...starter })),
);

describe('the starters', () => {
  it('are the same eight in each language', () => {
    const ids = (language: string) =>
      ALL.filter((one) => one.language === language).map((one) => one.starterId);
    expect(ids('en')).toEqual([
      'welcome',
      'newsletter',
      'announcement',
      'receipt',
      'password-reset',
      'event',
      'digest',
      're-engagement',
    ]);
    for (const language of STARTER_LANGUAGES) expect(ids(language)).toEqual(ids('en'));
  });

  it('differ by language in every text', () => {
    const [en, de, fr] = STARTER_LANGUAGES.map((language) => ALL.filter((one) => one.language === language));
    for (const [index, one] of (en ?? []).entries())
      expect(new Set([one.description, de?.[index]?.description, fr?.[index]?.description]).size).toBe(3);
  });

  it.each(ALL)('$starterId in $language is a valid template without warnings', (starter) => {
    const { name, type, subject, design, description } = starter;
    expect(templateInput.safeParse({ name, type, subject, design }).error?.issues).toBeUndefined();
    expect(description).not.toBe('');
    const html = renderDesign(design);
    const template = parseTemplate(html);
    expect([template.leftovers, template.foreign, parseTemplate(subject).leftovers]).toEqual([[], [], []]);
    expect(missingCompliance(html)).toEqual([]);
    expect(hidingVariable(template)).toBeNull();
    expect(html).toContain(`<html lang="${starter.language}"`);
    // No text is missing, and none is a key.
    expect(html).not.toMatch(/>&nbsp;<\/(?:h\d|p)>|%company%/);
    expect(html.length).toBeLessThan(20_000);
  });

  it.each(ALL.filter(({ type }) => type === 'marketing'))(
    '$starterId in $language needs no variable that contacts may lack',
    ({ subject, design }) => {
      const { slots } = parseTemplate(`${subject}${renderDesign(design)}`);
      const needed = slots.filter(({ fallback }) => fallback === null).map(({ name }) => name);
      for (const name of needed) expect(name).toMatch(/_(?:html|url)$/);
    },
  );

  it('have the name of the company as text, whatever it contains', () => {
    const titles = (company: string | null) =>
      starters('en', company).map(({ design }) => JSON.stringify(design.blocks[0]));
    expect(titles('A & B "quoted" $& Ltd')[0]).toContain('A & B \\"quoted\\" $& Ltd');
    expect(titles(null)[0]).toContain('Your company');
    for (const hostile of [
      '<script>alert(1)</script>',
      '{{{x}}}',
      '**',
      '[a](javascript:b)',
      'a\nb',
      '\\',
      ' ',
    ])
      for (const { name, type, subject, design } of starters('en', hostile))
        expect(templateInput.safeParse({ name, type, subject, design }).error?.issues).toBeUndefined();
  });
});

it('the example of docs/templates.md is a valid template without warnings', () => {
  const page = readFileSync(new URL('../../docs/templates.md', import.meta.url), 'utf8');
  const [, json = ''] = /```json\n(.*?)```/s.exec(page) ?? [];
  const example = templateInput.parse(JSON.parse(json));
  if (!example.design) throw new Error('the example has no design');
  expect(missingCompliance(renderDesign(example.design))).toEqual([]);
});
