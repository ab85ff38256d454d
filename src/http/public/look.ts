import {
  acceptedLanguage,
  FALLBACK_LANGUAGE,
  PAGE_TEXTS,
  type PageLanguage,
  type PageTextKey,
  pageLanguageOf,
} from '../../accounts/page-texts.ts';
import { ownText, type PublicPages, publicPagesOf } from '../../accounts/public-pages.ts';
import type { Tables } from '../../store/tables.ts';
import { type Html, html } from './html.ts';

/*
 * How a public page is shown: its language, its texts and the brand of the account. The language is that of the contact,
 * else the first of Accept-Language, else that of the account.
 */

export interface Brand {
  /** The sender, as the page names it. */
  name: string;
  logoUrl: string | null;
  colors: PublicPages['colors'];
}

/** Values of a text; a text of the page inserts each of them isolated (`bdi`). */
export type TextValues = Readonly<Record<string, string>>;

export interface Look {
  language: PageLanguage;
  /** Null: a page of no account. */
  brand: Brand | null;
  /** A text with its values, escaped. */
  text(key: PageTextKey, values?: TextValues): Html;
  /** A text with its values, not escaped. */
  plain(key: PageTextKey, values?: TextValues): string;
  /** A date in the language of the page, of UTC. */
  date(at: number): string;
}

/** The look of a page about nobody's mail: errors, and links that are not valid. */
export function plainLook(acceptLanguage: string): Look {
  return lookIn(acceptedLanguage(acceptLanguage) ?? FALLBACK_LANGUAGE, null, null);
}

/** The look of the pages of an account. `known`: the language of the contact (BCP 47), or null. */
export function accountLook(
  tables: Pick<Tables, 'accounts' | 'publicPages'>,
  accountId: string,
  known: string | null,
  acceptLanguage: string,
): Look {
  const account = tables.accounts.get(accountId);
  const pages = publicPagesOf(tables, accountId);
  const language =
    pageLanguageOf(known) ?? acceptedLanguage(acceptLanguage) ?? pages.language ?? FALLBACK_LANGUAGE;
  const logo = pages.logoUrl ?? account?.logo_url ?? null;
  const brand: Brand = {
    name: pages.name ?? account?.company_name ?? account?.name ?? PAGE_TEXTS[language].sender,
    logoUrl: logo?.startsWith('https://') === true ? logo : null,
    colors: pages.colors,
  };
  return lookIn(language, brand, pages);
}

function lookIn(language: PageLanguage, brand: Brand | null, pages: PublicPages | null): Look {
  const source = (key: PageTextKey) =>
    (pages === null ? null : ownText(pages, language, key)) ?? PAGE_TEXTS[language][key];
  return {
    language,
    brand,
    text: (key, values = {}) => inserted(source(key), values),
    plain: (key, values = {}) =>
      source(key).replaceAll(/\{([a-z]+)\}/gi, (mark, name: string) => values[name] ?? mark),
    date: (at) => new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(at),
  };
}

/** Line breaks of a text become those of the page. */
function inserted(source: string, values: TextValues): Html {
  const parts = source.split(/(\{[a-z]+\}|\n)/i).map((part): Html => {
    if (part === '\n') return html`<br>`;
    const name = part.startsWith('{') ? part.slice(1, -1) : '';
    const value = values[name];
    if (value === undefined) return html`${part}`;
    if (name === 'date') return html`${value}`;
    if (name === 'recipient') return html`<bdi class="whole">${value}</bdi>`;
    return name === 'group' ? html`<b><bdi>${value}</bdi></b>` : html`<bdi>${value}</bdi>`;
  });
  return html`${parts}`;
}
