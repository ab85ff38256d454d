import { readProgramFile } from '../config/program-file.ts';
import type { Work } from '../core/concurrency/slices.ts';
import { organizationalDomain } from './address.ts';
import { contrast, READABLE } from './blocks/colors.ts';
import { displayedDomain, parseLinkUrl } from './html/links.ts';
import { trackVisibility, VISIBILITY_ATTRIBUTES } from './html/visibility.ts';
import { type HtmlVisitor, VOID_ELEMENTS, walkHtmlInSteps } from './html/walk.ts';

/*
 * What is probably wrong with content, from its rendered form. Links are not opened (templates/checks). Style sheets are not
 * read: what only they determine is not checked.
 */

export type CheckLevel = 'ok' | 'warn' | 'bad';

interface CheckText {
  level: Exclude<CheckLevel, 'ok'>;
  /** What is in order; null: nothing is reported then. */
  ok: string | null;
  /** `{count}` and `{where}` are replaced. */
  problem: string;
  remedy: string;
}

/**
 * All checks, in the order in which a person corrects the content. The console has these texts in its languages. Those that open
 * addresses are made on request.
 */
export const CONTENT_CHECKS = {
  subject: {
    level: 'bad',
    ok: 'There is a subject.',
    problem: 'There is no subject.',
    remedy: 'Enter one, or set one in the template.',
  },
  capitals: {
    level: 'warn',
    ok: null,
    problem: 'The subject is in capitals.',
    remedy: 'Use small letters: filters and readers distrust it.',
  },
  punctuation: {
    level: 'warn',
    ok: null,
    problem: 'The subject has too many marks: {where}',
    remedy: 'Use one at most.',
  },
  optOut: {
    level: 'bad',
    ok: 'Recipients can unsubscribe, and see your address.',
    problem: 'The content must show {where}.',
    remedy: 'Add it to the template: it cannot be sent without.',
  },
  values: {
    level: 'bad',
    ok: 'Every variable has a value, or is a field of the contacts.',
    problem: 'No value, and no field of the contacts: {where}.',
    remedy: 'Correct the name, or give the variable a default.',
  },
  leftovers: {
    level: 'warn',
    ok: null,
    problem: 'Sent unchanged, as these are not variables: {where}.',
    remedy: 'Correct or remove them.',
  },
  links: {
    level: 'bad',
    ok: 'Links with a complete address: {count}.',
    problem: 'Links that lead nowhere ({count}): {where}.',
    remedy: 'Enter addresses that begin with https://.',
  },
  linksEncrypted: {
    level: 'warn',
    ok: null,
    problem: 'Links without encryption ({count}): {where}.',
    remedy: 'Use https:// if the site has it.',
  },
  linkTexts: {
    level: 'bad',
    ok: null,
    problem: 'Links whose text names another site than they lead to ({count}): {where}.',
    remedy: 'Filters treat it as phishing: write words, or the address of the destination.',
  },
  shorteners: {
    level: 'warn',
    ok: null,
    problem: 'Links of URL shorteners ({count}): {where}.',
    remedy: 'Filters distrust them: use the address of the destination.',
  },
  linksGone: {
    level: 'bad',
    ok: 'Links that were opened: {count}.',
    problem: 'Links to pages that do not exist ({count}): {where}.',
    remedy: 'Correct or remove them.',
  },
  linksUnreachable: {
    level: 'warn',
    ok: null,
    problem: 'Links to sites that fail or cannot be reached ({count}): {where}.',
    remedy: 'Open them in a browser before you send.',
  },
  images: {
    level: 'bad',
    ok: 'Images with a complete address: {count}.',
    problem: 'Images that cannot be loaded ({count}): {where}.',
    remedy: 'Enter addresses that begin with https://.',
  },
  imagesGone: {
    level: 'bad',
    ok: 'Images that were found: {count}.',
    problem: 'Images that do not exist, or are no images ({count}): {where}.',
    remedy: 'Correct the addresses, or upload them.',
  },
  imagesUnreachable: {
    level: 'warn',
    ok: null,
    problem: 'Images that cannot be loaded now ({count}): {where}.',
    remedy: 'Open them in a browser before you send.',
  },
  imagesLarge: {
    level: 'warn',
    ok: null,
    problem: 'Images above 1 MB ({count}): {where}.',
    remedy: 'Use smaller ones: they load slowly on phones.',
  },
  linksSkipped: {
    level: 'warn',
    ok: 'Addresses that are not opened, as they have variables or lead to this server: {count}.',
    problem: '',
    remedy: '',
  },
  linksUnopened: {
    level: 'warn',
    ok: null,
    problem: 'Addresses that were not opened ({count}): there are too many, or the time was over.',
    remedy: 'Check again in a few minutes.',
  },
  alternatives: {
    level: 'warn',
    ok: null,
    problem: 'Images without an alternative text ({count}): {where}.',
    remedy: 'Add alt="…": many programs show no images at first.',
  },
  contrast: {
    level: 'warn',
    ok: null,
    problem: 'Text that is hard to read on its background, contrast below 4.5:1 ({count}): {where}.',
    remedy: 'Choose a darker or lighter color.',
  },
  size: {
    level: 'bad',
    ok: 'Gmail shows all of it: it is smaller than 102 kB.',
    problem: 'Gmail hides the end of messages above 102 kB, the unsubscribe link included.',
    remedy: 'Shorten the template.',
  },
} as const satisfies Record<string, CheckText>;

export type ContentCheckId = keyof typeof CONTENT_CHECKS;

/** The result of one check. */
export interface Check<Id extends string = string> {
  id: Id;
  level: CheckLevel;
  message: string;
  /** What is meant, such as addresses; at most three of `count`. */
  where?: string[];
  /** Faults; of what is in order, what was checked. */
  count: number;
  /** Of a spam filter: its points, those from which a message is spam, and the rules that apply. */
  score?: number;
  threshold?: number;
  rules?: { name: string; points: number; description: string }[];
}

/** The parts of a preview that are checked. */
export interface CheckedContent {
  subject: string;
  html: string;
  text: string;
  /** Size of the HTML. */
  bytes: number;
  /** Variables without a value. */
  missing: readonly string[];
  /** Compliance variables that the content lacks. */
  required: readonly string[];
  /** Text in braces that is not a variable. */
  leftovers: readonly string[];
}

/** Above it, a person is warned: Gmail hides the end of messages above 102,000 bytes. */
const CLIPPED_BYTES = 100_000;
const MAX_NAMED = 3;
const MAX_NAME_LENGTH = 200;
const MAX_PREVIEW_TEXT = 140;
/** Links, and images, that are examined. */
const MAX_EXAMINED = 5000;
/** Characters of a link's text that are collected. */
const MAX_LINK_TEXT = 300;
/** Fields of contacts: each contact has its own. */
const CONTACT_FIELDS = new Set(['email', 'firstName', 'lastName', 'phone', 'customFields']);
/** The addresses that a preview shows instead of those of a recipient. */
const EXAMPLE = /^https:\/\/example\.com\/(?:unsubscribe|preferences|report-abuse|view)$/;
const REQUESTED = new Set([...VISIBILITY_ATTRIBUTES, 'href', 'src', 'alt']);
/** Words of different lines are not one. */
const LINES = new Set(['p', 'div', 'td', 'th', 'li', 'h1', 'h2', 'h3', 'h4', 'br']);
/** Templates fill the line of the inbox with characters that are not seen. */
const UNSEEN = /\u034F|[\u00AD\u200B-\u200F\uFEFF]/g;

/** Sound: the file is a part of the program, and a test checks its form. */
const SHORTENERS: ReadonlySet<string> = new Set(
  (readProgramFile('url-shorteners.toml') as { hosts: string[] }).hosts,
);

interface Link {
  href: string;
  text: string;
}

/** What the checks read in HTML. */
interface Examined {
  links: Link[];
  images: { src: string; alt: string | undefined }[];
  /** Beginnings of texts whose contrast is too low, and how many texts these are. */
  faint: string[];
  faintCount: number;
  /** The beginning of the text, also of what is hidden: inboxes show it behind the subject. */
  beginning: string;
}

/** Checks rendered content, in steps. `previewText`: what inboxes show behind the subject, at most 140 characters. */
export function* checkContentInSteps(
  content: CheckedContent,
): Work<{ checks: Check<ContentCheckId>[]; previewText: string }> {
  const { subject, bytes, missing, required, leftovers } = content;
  const examined = yield* examineInSteps(content.html);
  const links = examined.links.filter(({ href }) => !EXAMPLE.test(href));
  const addresses = links.map(({ href }) => href);
  const sources = examined.images.map(({ src }) => src);
  const unknown = missing.filter((name) => !CONTACT_FIELDS.has(name.split('.', 1)[0] ?? ''));
  yield;
  const checks = [
    contentCheck('subject', subject.trim() === '' ? [''] : []),
    contentCheck('capitals', isInCapitals(subject) ? [subject] : []),
    contentCheck('punctuation', excessiveMarks(subject)),
    contentCheck('optOut', required.map(braced)),
    contentCheck('values', unknown.map(braced)),
    contentCheck('leftovers', leftovers),
    contentCheck(
      'links',
      addresses.filter((address) => !isWholeLink(address)),
      links.length,
    ),
    contentCheck(
      'linksEncrypted',
      addresses.filter((address) => /^http:/i.test(address)),
    ),
    contentCheck(
      'linkTexts',
      links.filter(showsOtherSite).map(({ href, text }) => `${text.trim()} → ${href}`),
    ),
    contentCheck('shorteners', addresses.filter(isShortened)),
    contentCheck(
      'images',
      sources.filter((address) => !isWholeImage(address)),
      sources.length,
    ),
    contentCheck(
      'alternatives',
      examined.images.filter(({ alt }) => alt === undefined).map(({ src }) => src),
    ),
    contentCheck('contrast', examined.faint, 0, examined.faintCount),
    contentCheck('size', bytes > CLIPPED_BYTES ? [''] : [], bytes),
  ].filter((each) => each !== null);
  const shown = content.html === '' ? content.text.slice(0, 10 * MAX_PREVIEW_TEXT) : examined.beginning;
  return { checks, previewText: visible(shown).slice(0, MAX_PREVIEW_TEXT) };
}

/** The addresses of links and images, trimmed, in order. */
export interface ContentAddresses {
  links: string[];
  images: string[];
}

/** The addresses in HTML, without the examples of a preview, in steps. */
export function* addressesInSteps(html: string): Work<ContentAddresses> {
  const { links, images } = yield* examineInSteps(html);
  return {
    links: links.map(({ href }) => href).filter((address) => !EXAMPLE.test(address)),
    images: images.map(({ src }) => src),
  };
}

function* examineInSteps(html: string): Work<Examined> {
  const examined: Examined = { links: [], images: [], faint: [], faintCount: 0, beginning: '' };
  const visibility = trackVisibility();
  let link: Link | null = null;
  const add = (piece: string) => {
    // At most one of them is a space at the end, or one that `visible` removes at the beginning.
    if (examined.beginning.length < MAX_PREVIEW_TEXT + 2)
      examined.beginning = visible(examined.beginning + piece, false);
  };
  const visitor: HtmlVisitor = {
    open: (name, attributes) => {
      if (!VOID_ELEMENTS.has(name)) visibility.open(name, attributes);
      if (LINES.has(name)) add(' ');
      if (name === 'img' && examined.images.length < MAX_EXAMINED)
        examined.images.push({ src: attributes.get('src')?.trim() ?? '', alt: attributes.get('alt') });
      if (name !== 'a') return;
      link = null;
      const href = attributes.get('href')?.trim();
      if (href === undefined || examined.links.length >= MAX_EXAMINED) return;
      link = { href, text: '' };
      examined.links.push(link);
    },
    close: (name) => {
      visibility.close(name);
      if (LINES.has(name)) add(' ');
      if (name === 'a') link = null;
    },
    text: (piece) => {
      if (link !== null && link.text.length < MAX_LINK_TEXT) link.text += piece.slice(0, MAX_LINK_TEXT);
      add(piece.slice(0, 10 * MAX_PREVIEW_TEXT));
      if (!visibility.isTextShown() || !/[\p{L}\p{N}]/u.test(piece)) return;
      const { color, background } = visibility.colors();
      if (color === null || background === null || contrast(color, background) >= READABLE) return;
      examined.faintCount++;
      if (examined.faint.length < MAX_NAMED)
        examined.faint.push(`"${visible(piece).slice(0, 40)}" (${color} on ${background})`);
    },
  };
  yield* walkHtmlInSteps(html, visitor, REQUESTED);
  return examined;
}

/** Text without what nobody sees, with single spaces. */
function visible(text: string, isTrimmed = true): string {
  const shown = text.replaceAll(UNSEEN, '').replaceAll(/\s+/g, ' ');
  return isTrimmed ? shown.trim() : shown;
}

/** Null: nothing is reported. `where`: what is wrong, at least the first. `checked`: how many were checked. */
export function contentCheck(
  id: ContentCheckId,
  where: readonly string[],
  checked = 0,
  count = where.length,
): Check<ContentCheckId> | null {
  const { level, ok, problem, remedy }: CheckText = CONTENT_CHECKS[id];
  if (count === 0)
    return ok === null
      ? null
      : { id, level: 'ok', message: ok.replace('{count}', String(checked)), count: checked };
  const named = where.slice(0, MAX_NAMED).map((name) => name.slice(0, MAX_NAME_LENGTH) || '""');
  const shown = (text: string) =>
    text.replace('{count}', String(count)).replace('{where}', () => named.join(', '));
  const names = problem.includes('{where}') ? { where: named } : {};
  return { id, level, message: `${shown(problem)} ${remedy}`, ...names, count };
}

function braced(name: string): string {
  return `{{${name}}}`;
}

/** Letters that a subject has before its capitals say something: `SALE` may be a name. */
const MIN_CAPITALS = 8;

function isInCapitals(subject: string): boolean {
  const letters = subject.replaceAll(/\{\{[^}]*\}\}|[^\p{Lu}\p{Ll}]/gu, '');
  return letters.length >= MIN_CAPITALS && !/\p{Ll}/u.test(letters);
}

/** Runs of marks such as `!!`, `?!` or `$$$`, or more than two exclamation marks. */
function excessiveMarks(subject: string): string[] {
  const runs = [...subject.matchAll(/[!?¡¿]{2,10}|[$€£*]{3,10}/g)].map(([run]) => run);
  if (runs.length > 0) return runs;
  return subject.split('!').length > 3 ? ['!'] : [];
}

/** Whether a link leads somewhere. Variables are inserted for each contact. */
function isWholeLink(address: string): boolean {
  if (address.includes('{{') || /^(?:mailto|tel|sms):./i.test(address)) return true;
  if (address.startsWith('#')) return address.length > 1;
  return /^https?:\/\/[^/]/i.test(address) && URL.canParse(address);
}

function isWholeImage(address: string): boolean {
  return address.includes('{{') || /^(?:https?:\/\/.|data:image\/|cid:.)/i.test(address);
}

function showsOtherSite({ href, text }: Link): boolean {
  const url = parseLinkUrl(href);
  const shown = displayedDomain(text);
  if (url === null || shown === null || href.includes('{{')) return false;
  return shown !== organizationalDomain(new URL(url).hostname);
}

function isShortened(address: string): boolean {
  const url = parseLinkUrl(address);
  return url !== null && SHORTENERS.has(new URL(url).hostname.replace(/^www\./, ''));
}
