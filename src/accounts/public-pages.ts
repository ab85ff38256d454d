import * as z from 'zod';
import { iso } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { textFault } from '../mail/text-fault.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import {
  isPageLanguage,
  isPageTextKey,
  PAGE_LANGUAGES,
  PAGE_TEXTS,
  type PageLanguage,
  type PageTextKey,
  valuesIn,
} from './page-texts.ts';

/*
 * What an account changes on its public pages: name, logo, colors, texts by language, and the fields of a profile that
 * people may change on the preference page. Texts are plain: the pages escape them.
 */

const MAX_TEXT = 1000;
const MAX_FIELDS = 20;
/** Of the JSON of one account. */
const MAX_BYTES = 128 * 1024;

const languageNames = Object.keys(PAGE_LANGUAGES) as [PageLanguage, ...PageLanguage[]]; // the keys of a constant

/** Text of a page: one or more lines without other control characters. */
function plain(max: number) {
  return z
    .string()
    .trim()
    .min(1)
    .max(max)
    .superRefine((text, context) => {
      const fault = /[^\P{Cc}\n]/u.test(text) ? 'must not contain control characters' : textFault(text);
      if (fault !== null) context.addIssue({ code: 'custom', message: fault });
    });
}

const color = z
  .string()
  .regex(/^#[0-9a-f]{6}$/i, 'must be a color such as #0b5cad')
  .nullable()
  .default(null);

/** The fields of a profile that are not custom. */
export const PROFILE_FIELDS = ['firstName', 'lastName', 'phone'] as const;
export const CUSTOM_FIELD = /^customFields\.([^\p{Cc}.]{1,100})$/u;

const profileField = z.object({
  field: z
    .string()
    .max(120)
    .refine(
      (text) => PROFILE_FIELDS.some((known) => known === text) || CUSTOM_FIELD.test(text),
      'must be firstName, lastName, phone or customFields.<name>',
    )
    .refine((text) => text !== 'customFields.__proto__', 'must not be __proto__'),
  label: plain(100).nullable().default(null).describe('Default: the text of the field, or its name.'),
  labels: z
    .partialRecord(z.enum(languageNames), plain(100))
    .default({})
    .describe('Labels in other languages.'),
});

/** The first text that cannot be shown: of an unknown language or key, or with a value that the default does not have. */
function textsFault(
  language: string,
  texts: Readonly<Record<string, string>>,
): { path: string[]; message: string } | null {
  if (!isPageLanguage(language))
    return { path: [], message: `must be a language of the public pages: ${languageNames.join(', ')}` };
  for (const [key, text] of Object.entries(texts)) {
    if (!isPageTextKey(key)) return { path: [key], message: 'is not a text of the public pages' };
    const known = valuesIn(PAGE_TEXTS[language][key]);
    const unknown = valuesIn(text).find((name) => !known.includes(name));
    if (unknown === undefined) continue;
    const available = known.length === 0 ? 'there are no values' : `available: {${known.join('}, {')}}`;
    return { path: [key], message: `must not contain {${unknown}}; ${available}` };
  }
  return null;
}

/** The settings of an account. */
export const publicPagesSchema = z.object({
  name: plain(200)
    .nullable()
    .describe('The sender as the pages name it. Default: the company, else the account.'),
  logoUrl: z
    .url({ protocol: /^https$/, error: 'must be an https address' })
    .max(2000)
    .nullable()
    .describe('Default: the logo of the account, if its address begins with https.'),
  colors: z.object({
    accent: color.describe('Buttons and links; made lighter or darker where the contrast needs it.'),
    background: color.describe('Behind the page on wide screens, in the light scheme.'),
  }),
  language: z
    .enum(languageNames)
    .nullable()
    .describe('For people whose language and browser name none of the languages. Default: `en`.'),
  profileFields: z
    .array(profileField)
    .max(MAX_FIELDS)
    .refine(
      (fields) => new Set(fields.map(({ field }) => field)).size === fields.length,
      'must not have a field twice',
    )
    .describe('What people can see and change on the preference page. Default: nothing.'),
  texts: z
    .record(z.string().max(10), z.record(z.string().max(60), plain(MAX_TEXT)))
    .superRefine((texts, context) => {
      for (const [language, entries] of Object.entries(texts)) {
        const fault = textsFault(language, entries);
        if (fault !== null)
          context.addIssue({ code: 'custom', message: fault.message, path: [language, ...fault.path] });
      }
    })
    .describe(
      'Texts by language and key that replace the defaults of `GET /web-setup/public-pages/texts/{language}`. Plain text; `{name}` is a value.',
    ),
});

/** Changes of the settings: an absent field is unchanged, others are replaced as a whole. */
export const publicPagesPatchSchema = publicPagesSchema.partial().meta({ id: 'PublicPagesPatch' });

export type PublicPages = z.output<typeof publicPagesSchema>;
export type PublicPagesPatch = z.output<typeof publicPagesPatchSchema>;
export type ProfileField = PublicPages['profileFields'][number];

const DEFAULTS: PublicPages = {
  name: null,
  logoUrl: null,
  colors: { accent: null, background: null },
  language: null,
  profileFields: [],
  texts: {},
};

/** The settings of an account. */
export function publicPagesOf(tables: Pick<Tables, 'publicPages'>, accountId: string): PublicPages {
  const row = tables.publicPages.get(accountId);
  // Sound: only `createPublicPageSettings` and the import of an account write it, after the schema accepted it.
  return row === null ? DEFAULTS : (JSON.parse(row.settings) as PublicPages);
}

/** A text of the account in a language; null: it has none of its own. */
export function ownText(pages: PublicPages, language: PageLanguage, key: PageTextKey): string | null {
  return pages.texts[language]?.[key] ?? null;
}

/** Settings and when they were changed; null: never. */
export interface StoredPublicPages {
  pages: PublicPages;
  updatedAt: string | null;
}

/** Reads and replaces the settings of accounts. */
export function createPublicPageSettings({
  tables,
  writer,
  clock,
}: Pick<Context, 'tables' | 'writer' | 'clock'>) {
  return {
    get: (accountId: string): StoredPublicPages => {
      const row = tables.publicPages.get(accountId);
      return {
        pages: publicPagesOf(tables, accountId),
        updatedAt: row === null ? null : iso(row.updated_at),
      };
    },
    /** Replaces the fields that are given. */
    put: (accountId: string, changes: PublicPagesPatch): Promise<StoredPublicPages | Refusal> =>
      writer.run((tx): StoredPublicPages | Refusal => {
        const given = Object.entries(changes).filter(([, value]) => value !== undefined);
        const pages: PublicPages = { ...publicPagesOf(tx, accountId), ...Object.fromEntries(given) };
        const settings = JSON.stringify(pages);
        if (Buffer.byteLength(settings) > MAX_BYTES)
          return refuse('VALIDATION_ERROR', `The settings must have at most ${MAX_BYTES} bytes of JSON`, {
            details: [{ field: 'texts', message: `must have fewer or shorter texts` }],
          });
        const now = clock.now();
        tx.publicPages.put({ account_id: accountId, settings, updated_at: now });
        return { pages, updatedAt: iso(now) };
      }, accountId),
  };
}

export type PublicPageSettings = ReturnType<typeof createPublicPageSettings>;
