import de from './page-texts/de.json' with { type: 'json' };
import en from './page-texts/en.json' with { type: 'json' };
import es from './page-texts/es.json' with { type: 'json' };
import fr from './page-texts/fr.json' with { type: 'json' };
import it from './page-texts/it.json' with { type: 'json' };
import ja from './page-texts/ja.json' with { type: 'json' };
import nl from './page-texts/nl.json' with { type: 'json' };
import pl from './page-texts/pl.json' with { type: 'json' };
import pt from './page-texts/pt.json' with { type: 'json' };
import sv from './page-texts/sv.json' with { type: 'json' };

/*
 * The texts of the public pages and of the confirmation mail, one file for each language with the same keys. `{name}` is a
 * value. An account may replace any of them (public-pages.ts).
 */

/** A key of the texts. */
export type PageTextKey = keyof typeof en;

/** The languages of the public pages, by their own names, in the order in which people choose from them. */
export const PAGE_LANGUAGES = {
  de: 'Deutsch',
  en: 'English',
  es: 'Español',
  fr: 'Français',
  it: 'Italiano',
  nl: 'Nederlands',
  pl: 'Polski',
  pt: 'Português',
  sv: 'Svenska',
  ja: '日本語',
} as const;
export type PageLanguage = keyof typeof PAGE_LANGUAGES;

/** The texts of each language. */
export const PAGE_TEXTS: Readonly<Record<PageLanguage, Readonly<Record<PageTextKey, string>>>> = {
  de,
  en,
  es,
  fr,
  it,
  nl,
  pl,
  pt,
  sv,
  ja,
};

/** The language of last resort. */
export const FALLBACK_LANGUAGE: PageLanguage = 'en';

/** Whether the pages have texts in a language. */
export function isPageLanguage(text: string): text is PageLanguage {
  return Object.hasOwn(PAGE_LANGUAGES, text);
}

/** Whether a text has this key. */
export function isPageTextKey(key: string): key is PageTextKey {
  return Object.hasOwn(en, key);
}

/** The names of the values that a text inserts. */
export function valuesIn(text: string): string[] {
  return [...text.matchAll(/\{([a-z]+)\}/gi)].map(([, name = '']) => name);
}

/** The language of the pages for a tag such as `de-AT` (BCP 47); null: they do not have it. */
export function pageLanguageOf(tag: string | null): PageLanguage | null {
  const [primary = ''] = (tag ?? '').toLowerCase().split('-', 1);
  return isPageLanguage(primary) ? primary : null;
}

/** Entries of Accept-Language that are read. */
const MAX_ACCEPTED = 20;

/**
 * The first language of Accept-Language (RFC 9110 §12.5.4) that the pages have, by quality, then by order; null: none, or
 * the field is absent.
 */
export function acceptedLanguage(field: string): PageLanguage | null {
  let best: { language: PageLanguage; quality: number } | null = null;
  for (const entry of field.split(',', MAX_ACCEPTED)) {
    const [tag = '', ...parameters] = entry.split(';');
    const weight = parameters.map((each) => /^\s*q=([\d.]{1,5})\s*$/i.exec(each)?.[1]).find(Boolean);
    const quality = weight === undefined ? 1 : Number(weight);
    const language = pageLanguageOf(tag.trim());
    if (language !== null && quality > (best?.quality ?? 0)) best = { language, quality };
  }
  return best?.language ?? null;
}
