import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ErrorKey } from '../http/console/access.ts';
import type { ApiError } from './api.ts';
import { type Numbers, numbersIn } from './parts/numbers.ts';
import en from './texts/en.json' with { type: 'json' };
import type enOfPages from './texts/pages/en.json';

/*
 * The texts of the console are in files that translators' tools read, two for each language: `texts/en.json` has what the
 * application shows at once, `texts/pages/en.json` what its other pages show, which is loaded with the first of them. Their
 * translations have the same keys, and names of operations (`operation.<id>`), whose English names are the summaries of the
 * server. `{name}` is a value. The sentences of errors are the server's in English; `texts/errors` has those of the other
 * languages.
 */

export type TextKey = keyof typeof en | keyof typeof enOfPages;
type Catalog = Readonly<Record<TextKey, string>>;

/** The beginnings of keys that have a text for each plural. */
type PluralBase = TextKey extends infer Key ? (Key extends `${infer Base}.one` ? Base : never) : never;

/** The languages, by their own names. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', fr: 'Français' } as const;
export type Language = keyof typeof LANGUAGES;

export interface Texts extends Numbers {
  language: Language;
  /** Adds the texts of the pages that are loaded when they are opened. */
  addPages(): Promise<void>;
  /** Whether `addPages` has added them. */
  hasPages(): boolean;
  /** The text of a key, with `{name}` replaced by values; numbers in the language. */
  t(key: TextKey, values?: Readonly<Record<string, string | number>>): string;
  /** The text for a number, in the plural of the language: of the keys `<base>.one` and `<base>.other`. */
  plural(base: PluralBase, count: number, values?: Readonly<Record<string, string | number>>): string;
  /** The text of a key that may not exist, such as that of a new status; otherwise `fallback`, by default the name. */
  named(prefix: string, name: string, fallback?: string): string;
  /** A time in the time zone of the browser. */
  time(iso: string | null | undefined): string;
  /** The language, with the region of the browser if that has the same language: for `Intl`. */
  locale: string;
  /** What the server refused and why, or that it did not respond. Without a text for it, the sentence of the server. */
  errorText(error: ApiError): string;
  /** A sentence of the API with its times in the time zone of the browser. */
  localTimes(sentence: string): string;
}

const TextsContext = createContext<Texts>(createTexts('en', en));
export const TextsProvider = TextsContext.Provider;

/** The texts in the language of the person. */
export function useTexts(): Texts {
  return useContext(TextsContext);
}

/** The files of each language; the first of English is part of the application. */
const FILES = {
  en: {
    first: async () => ({ default: en }),
    pages: () => import('./texts/pages/en.json'),
    errors: async () => ({ default: {} }),
  },
  de: {
    first: () => import('./texts/de.json'),
    pages: () => import('./texts/pages/de.json'),
    errors: () => import('./texts/errors/de.json'),
  },
  fr: {
    first: () => import('./texts/fr.json'),
    pages: () => import('./texts/pages/fr.json'),
    errors: () => import('./texts/errors/fr.json'),
  },
};

/** Whether a page was opened that has texts of its own. */
let arePagesOpened = false;

/** Loads the texts of a language; those of the pages if one was opened. */
export async function loadTexts(language: Language): Promise<Texts> {
  const [first, errors] = await Promise.all([FILES[language].first(), FILES[language].errors()]);
  const texts = createTexts(language, first.default, errors.default);
  if (arePagesOpened) await texts.addPages();
  return texts;
}

/** Whether there is a catalog of this language. */
export function isLanguage(text: string | null | undefined): text is Language {
  return text !== null && text !== undefined && Object.hasOwn(LANGUAGES, text);
}

/** The first language of the browser that has a catalog. */
export function browserLanguage(): Language {
  return navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? 'en';
}

/** A time in the form of the API. */
const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;

/** Sentences of errors by reason or code. `{message}` is the sentence of the server, in English: where it names what is wrong. */
type ErrorTexts = Readonly<Partial<Record<ErrorKey, string>>>;

/** `errors`: of other languages than English. An error without a sentence has that of the server. */
function createTexts(language: Language, first: Partial<Catalog>, errors: ErrorTexts = {}): Texts {
  const catalog = { ...first };
  let hasPages = false;
  const locale = navigator.languages.find((tag) => tag.startsWith(language)) ?? language;
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
  const numbers = numbersIn(locale);
  const shown = (value: string | number) => (typeof value === 'number' ? numbers.number(value) : value);
  const plurals = new Intl.PluralRules(locale);
  // A key without a text, which tests of the pages would show, appears as it is.
  const textOf = (key: TextKey) => catalog[key] ?? key;
  const isKey = (key: string): key is TextKey => Object.hasOwn(catalog, key);
  const isError = (key: string): key is keyof ErrorTexts => Object.hasOwn(errors, key);
  const t: Texts['t'] = (key, values = {}) =>
    textOf(key).replace(/\{(\w+)\}/g, (placeholder, name: string) => shown(values[name] ?? placeholder));
  return {
    language,
    addPages: async () => {
      arePagesOpened = true;
      Object.assign(catalog, (await FILES[language].pages()).default);
      hasPages = true;
    },
    hasPages: () => hasPages,
    t,
    plural: (base, count, values = {}) =>
      t(plurals.select(count) === 'one' ? `${base}.one` : `${base}.other`, { count, ...values }),
    named: (prefix, name, fallback = name) => {
      const key = `${prefix}.${name}`;
      return isKey(key) ? textOf(key) : fallback;
    },
    errorText: ({ reason, code, message }) => {
      if (code === 'NETWORK') return textOf('app.error.network');
      const text = [reason, code].filter(isError).map((key) => errors[key])[0];
      return text === undefined ? message : text.replace('{message}', () => message);
    },
    locale,
    ...numbers,
    time: (iso) => (iso === null || iso === undefined ? '' : format.format(new Date(iso))),
    localTimes: (sentence) => sentence.replace(ISO_TIME, (iso) => format.format(new Date(iso))),
  };
}
