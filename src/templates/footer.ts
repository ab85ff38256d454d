import { FALLBACK_LANGUAGE, PAGE_TEXTS, type PageLanguage, pageLanguageOf } from '../accounts/page-texts.ts';
import { COMPLIANCE_KINDS, type ComplianceTexts, defaultComplianceTemplates } from '../mail/compliance.ts';
import type { FooterRow } from '../store/public-pages.ts';
import type { Tables } from '../store/tables.ts';
import { ownComplianceTemplates } from './compliance-templates.ts';

/*
 * The compliance templates of a mail in the language of its recipient. The account's own templates are for all languages;
 * the default ones consist of texts of the public pages, which the account can replace as well. They are prepared once for
 * each account and language.
 */

/** A mail whose footer is looked up. */
export interface FooterOf {
  fromDomain: string;
  groupId: string | null;
  /** The HTML of the template, whose language counts if the account has none. */
  html: string;
}

/**
 * The language of the footer: that of the contact (`known`, a language tag; null: unknown), that of the account's public
 * pages, that of the `html` element of the template, English.
 */
function footerLanguage(row: FooterRow | null, known: string | null, html: string): PageLanguage {
  return (
    pageLanguageOf(known) ?? pageLanguageOf(row?.language ?? null) ?? languageOf(html) ?? FALLBACK_LANGUAGE
  );
}

/** Characters in which the `html` element is searched. */
const MAX_HEAD = 2048;

function languageOf(html: string): PageLanguage | null {
  const [, tag = null] = /<html\s(?:[^<>]*\s)?lang\s*=\s*["']?([a-z-]+)/i.exec(html.slice(0, MAX_HEAD)) ?? [];
  return pageLanguageOf(tag);
}

/** The templates of all kinds for mail to a person with this language (a tag; null: unknown). */
export function complianceTexts(
  tables: Tables,
  accountId: string,
  mail: FooterOf,
  known: string | null,
): ComplianceTexts {
  const own = ownComplianceTemplates(tables, accountId, mail);
  const row = tables.publicPages.footer(accountId);
  const defaults = defaultsIn(footerLanguage(row, known, mail.html), row);
  return COMPLIANCE_KINDS.some((kind) => own[kind] !== undefined) ? { ...defaults, ...own } : defaults;
}

/** By the row with the texts of the account, which is cached until it changes. */
const prepared = new WeakMap<FooterRow, Map<PageLanguage, ComplianceTexts>>();
const builtIn = new Map<PageLanguage, ComplianceTexts>();

function defaultsIn(language: PageLanguage, row: FooterRow | null): ComplianceTexts {
  const texts = row === null ? builtIn : (prepared.get(row) ?? new Map<PageLanguage, ComplianceTexts>());
  const known = texts.get(language);
  if (known !== undefined) return known;
  const own = row === null ? {} : ownTexts(row, language);
  const text = (name: 'sent' | 'unsubscribe' | 'unasked' | 'report') =>
    own[`footer.${name}`] ?? PAGE_TEXTS[language][`footer.${name}`];
  const templates = defaultComplianceTemplates(
    {
      sent: text('sent'),
      unsubscribe: text('unsubscribe'),
      unasked: text('unasked'),
      report: text('report'),
    },
    language,
  );
  texts.set(language, templates);
  if (row !== null) prepared.set(row, texts);
  return templates;
}

function ownTexts({ texts }: FooterRow, language: PageLanguage): Readonly<Record<string, string>> {
  // Sound: the column has the texts of PublicPages (accounts/public-pages) whose keys begin with `footer.`.
  const own = JSON.parse(texts) as Partial<Record<PageLanguage, Record<string, string>>>;
  return own[language] ?? {};
}
