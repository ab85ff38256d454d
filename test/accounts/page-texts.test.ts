import { describe, expect, it } from 'vitest';
import {
  acceptedLanguage,
  isPageTextKey,
  PAGE_LANGUAGES,
  PAGE_TEXTS,
  type PageLanguage,
  pageLanguageOf,
  valuesIn,
} from '../../src/accounts/page-texts.ts';

const LANGUAGES = Object.keys(PAGE_LANGUAGES) as PageLanguage[];

describe.each(LANGUAGES)('the texts in %s', (language) => {
  it('have all keys, and no others', () => {
    expect(Object.keys(PAGE_TEXTS[language])).toEqual(Object.keys(PAGE_TEXTS.en));
    expect(Object.values(PAGE_TEXTS[language]).every((text) => text.trim() === text && text !== '')).toBe(
      true,
    );
  });

  it('insert the values of the English texts', () => {
    for (const [key, text] of Object.entries(PAGE_TEXTS.en)) {
      if (!isPageTextKey(key)) throw new Error(key);
      expect([...new Set(valuesIn(PAGE_TEXTS[language][key]))].toSorted(), key).toEqual(
        [...new Set(valuesIn(text))].toSorted(),
      );
    }
  });

  it.skipIf(language === 'en')('are translated', () => {
    const same = Object.entries(PAGE_TEXTS[language]).filter(
      ([key, text]) => isPageTextKey(key) && PAGE_TEXTS.en[key] === text,
    );
    expect(same).toEqual([]);
  });
});

describe('the language of a page', () => {
  it.each([
    ['de-AT', 'de'],
    ['PT-br', 'pt'],
    ['fi', null],
    ['', null],
    [null, null],
  ])('of the tag %j is %j', (tag, language) => {
    expect(pageLanguageOf(tag)).toBe(language);
  });

  it.each([
    ['', null],
    ['*', null],
    ['fi, sv;q=0.8, en;q=0.9', 'en'],
    ['de-CH', 'de'],
    ['ja;q=0, it;q=0.1', 'it'],
    ['fr;q=nonsense', 'fr'],
    [`${'fi,'.repeat(30)}de`, null],
  ])('is the first of Accept-Language %j that there is: %j', (field, language) => {
    expect(acceptedLanguage(field)).toBe(language);
  });
});
