import { parse } from 'tldts';
import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { organizationalDomain, PUBLIC_SUFFIX_OPTIONS } from '../address.ts';
import { type CopyDetails, MARKS, personalize, type Tracking } from '../content.ts';
import { clickTokens } from '../tokens.ts';
import { escapeHtml } from './escape.ts';
import { type HtmlVisitor, type Span, walkHtml, walkHtmlInSteps } from './walk.ts';

/*
 * Replaces the URLs of the links in HTML, and inserts HTML at the end of the body. All other bytes stay unchanged, however
 * broken the HTML is.
 *
 * A link is the `href` of `<a>` or `<area>`, also inside a conditional comment, which Outlook displays. A link with
 * `data-no-track` or `clicktracking="off"` is not changed.
 */

/** What to change in the HTML. */
export interface LinkChanges {
  /**
   * Returns the new URL of a link; null leaves it unchanged. `href`: its value, entities decoded. `text`: the start of its
   * text.
   */
  address(href: string, text: string): string | null;
  /** HTML to insert before the end of the body; '' for none. */
  atEnd: string;
}

const LINKS = new Set(['a', 'area']);
const REQUESTED_ATTRIBUTES = new Set(['href', 'data-no-track', 'clicktracking']);
/** `[if mso]>` and the other forms of the condition. */
const CONDITIONAL = /^\[if[\s(!][^\]]*\]>/i;

/** Conditional comments that are walked, each as separate HTML. */
const MAX_CONDITIONAL_COMMENTS = 1000;
/** A longer conditional comment is not changed, as each is walked in one step. */
const MAX_CONDITIONAL_LENGTH = 64 * 1024;
/** Links whose address is replaced between two yields. */
const LINKS_PER_STEP = 64;

/** Characters of a link's text that are collected. */
const MAX_TEXT_LENGTH = 300;

interface Splice extends Span {
  text: string;
}

interface Link extends Span {
  href: string;
  text: string;
}

/** Returns the HTML with the changes. */
export function changeLinks(html: string, changes: LinkChanges): string {
  return withoutPause(changeLinksInSteps(html, changes));
}

/** `changeLinks` in steps. */
export function* changeLinksInSteps(html: string, { address, atEnd }: LinkChanges): Work<string> {
  const splices: Splice[] = [];
  let conditional = 0;
  let bodyEnd = -1;
  let htmlEnd = -1;

  const links: Link[] = [];
  /** The open `<a>`. */
  let current: Link | null = null;

  const visitor = (source: string, offset: number): HtmlVisitor => ({
    open: (name, attributes, spans, tagStart) => {
      if (!LINKS.has(name)) return;
      // The start tag of an anchor ends an open anchor (HTML Standard §13.2.6.4.7).
      if (name === 'a') current = null;
      const span = spans.get('href');
      if (span === undefined || isTrackingDisabled(attributes)) return;
      const link = {
        start: offset + tagStart + span.start,
        end: offset + tagStart + span.end,
        href: attributes.get('href') ?? '',
        text: '',
      };
      links.push(link);
      if (name === 'a') current = link;
    },
    text: (piece) => {
      if (current !== null && current.text.length < MAX_TEXT_LENGTH)
        current.text += piece.slice(0, MAX_TEXT_LENGTH);
    },
    close: (name, start) => {
      if (name === 'a') current = null;
      else if (name === 'body') bodyEnd = offset + start;
      else if (name === 'html') htmlEnd = offset + start;
    },
    comment: ({ start, end }) => {
      const opening = CONDITIONAL.exec(source.slice(start, end))?.[0];
      if (
        opening === undefined ||
        end - start > MAX_CONDITIONAL_LENGTH ||
        ++conditional > MAX_CONDITIONAL_COMMENTS
      )
        return;
      const { open, text } = visitor('', offset + start + opening.length);
      const close = (name: string) => {
        if (name === 'a') current = null;
      };
      if (open && text)
        walkHtml(source.slice(start + opening.length, end), { open, text, close }, REQUESTED_ATTRIBUTES);
    },
  });
  yield* walkHtmlInSteps(html, visitor(html, 0), REQUESTED_ATTRIBUTES);

  for (const [n, { start, end, href, text }] of links.entries()) {
    if (n % LINKS_PER_STEP === LINKS_PER_STEP - 1) yield;
    const changed = address(href, text);
    if (changed !== null) splices.push({ start, end, text: escapeHtml(changed) });
  }

  if (atEnd !== '') {
    const insertAt = bodyEnd >= 0 ? bodyEnd : htmlEnd >= 0 ? htmlEnd : html.length;
    splices.push({ start: insertAt, end: insertAt, text: atEnd });
    // In invalid HTML links may follow the end of the body.
    splices.sort((a, b) => a.start - b.start);
  }
  return applySplices(html, splices);
}

function isTrackingDisabled(attributes: ReadonlyMap<string, string>): boolean {
  return attributes.has('data-no-track') || attributes.get('clicktracking')?.trim().toLowerCase() === 'off';
}

function applySplices(html: string, splices: readonly Splice[]): string {
  let out = '';
  let at = 0;
  for (const { start, end, text } of splices) {
    out += html.slice(at, start) + text;
    at = end;
  }
  return out + html.slice(at);
}

/** Links that are tracked in one mail; further links are not changed. */
const MAX_LINKS = 5000;

/**
 * Returns the HTML of one copy with tracked links and the open-tracking pixel, if they are enabled. Two kinds of links
 * are not changed: those of the service, which contain its marks, and those whose text is a URL or host name of another
 * organizational domain than that of tracked links.
 */
export function trackLinks(html: string, copy: CopyDetails): string {
  return withoutPause(trackLinksInSteps(html, copy));
}

/** `trackLinks` in steps. */
export function* trackLinksInSteps(html: string, copy: CopyDetails): Work<string> {
  const { tracking } = copy;
  if (tracking === undefined) return html;
  const trackedAddress = trackedAddresses(tracking);
  return yield* changingTracked(html, tracking, {
    hrefOf: (href) => personalize(href, copy, 'text'),
    address: trackedAddress,
    pixel: openTrackingPixel(tracking.pixelUrl),
  });
}

/** What replaces the tracked links of HTML for many copies. */
interface TrackedMarks {
  /** Represents the tracked address of a link; it needs no escapes. */
  address(address: string): string;
  pixel: string;
}

/**
 * Marks the tracked links in HTML for many copies, in steps. Null when it depends on the recipient which links are tracked,
 * or to which address they lead: a link or its text contains NUL.
 */
export function* trackAddressesInSteps(
  html: string,
  tracking: Tracking,
  { address, pixel }: TrackedMarks,
): Work<string | null> {
  let isShared = true;
  const marked = yield* changingTracked(html, tracking, {
    hrefOf: (href, text) => {
      if (href.includes('\u0000') || text.includes('\u0000')) isShared = false;
      return href;
    },
    address,
    pixel: tracking.pixelUrl === null ? '' : pixel,
  });
  return isShared ? marked : null;
}

/** The tracked address of a link of one copy. */
export function trackedAddresses({
  linkPrefix,
  clickSigner,
  messageId,
}: Tracking): (address: string) => string {
  if (clickSigner === null) return (address) => address;
  const tokenOf = clickTokens(clickSigner, messageId, new URL(linkPrefix).hostname);
  return (address) => linkPrefix + tokenOf(address);
}

/** Not `display:none`: some mail clients load only displayed images. */
export function openTrackingPixel(url: string | null): string {
  if (url === null) return '';
  return `<img src="${url}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`;
}

interface TrackedChanges extends TrackedMarks {
  /** The address of a link with the values of the copy. */
  hrefOf(href: string, text: string): string;
}

function changingTracked(
  html: string,
  { linkPrefix, clickSigner }: Tracking,
  { hrefOf, address, pixel }: TrackedChanges,
): Work<string> {
  const linkDomain = organizationalDomain(new URL(linkPrefix).hostname);
  let links = 0;
  return changeLinksInSteps(html, {
    address: (href, text) => {
      if (clickSigner === null || links === MAX_LINKS || isServiceLink(href)) return null;
      const ownHref = hrefOf(href, text);
      if ((displayedDomain(text) ?? linkDomain) !== linkDomain) return null;
      const target = parseLinkUrl(ownHref);
      if (target === null || target.startsWith(linkPrefix)) return null;
      links++;
      return address(target);
    },
    atEnd: pixel,
  });
}

function isServiceLink(href: string): boolean {
  return [MARKS.unsubscribeUrl, MARKS.reportAbuseUrl, MARKS.preferencesUrl, MARKS.viewUrl].some((mark) =>
    href.includes(mark),
  );
}

/** A longer URL is not tracked: the tracked URL must fit in a request line. */
const MAX_LENGTH = 8192;
/** Browsers remove these inside a URL, and all spaces and control characters around it. */
const IGNORED_INSIDE = /[\t\n\r]/g;
const PLAIN = /^https?:\/\/(?![/\\])[\u0021-\u007e]+$/i;

/**
 * Parses the URL in the `href` of a link as a browser does (WHATWG URL), for a Location field. A URL in ASCII is returned
 * unchanged; null: it is not an http or https URL, or is too long.
 */
export function parseLinkUrl(href: string): string | null {
  const url = trimControls(href).replace(IGNORED_INSIDE, '');
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return null;
  const address = PLAIN.test(url) ? url : new URL(url).href;
  return address.length > MAX_LENGTH ? null : address;
}

/** The first word of a link's text, without opening punctuation. */
const FIRST_WORD = /^[\s([{<"'\u00ab\u2018\u201c\u201e]*(\S*)/;
/** Host names under top-level domains that neither the Public Suffix List nor the registry of RFC 6761 has. */
const HOST_NAME = /^www\.|\.internal$/;
/** The lookbehind makes the time linear: of a run of marks only the first one begins a search. */
const CLOSING_MARKS = /(?<![)\]}>"'\u00bb\u2019\u201d.,;:!?\u2026])[)\]}>"'\u00bb\u2019\u201d.,;:!?\u2026]+$/;

/**
 * The organizational domain of the URL or host name at the start of a link's text, null when there is none. Mail filters
 * treat a link with another target domain as phishing.
 */
export function displayedDomain(text: string): string | null {
  const word = FIRST_WORD.exec(text)?.[1]?.replace(CLOSING_MARKS, '') ?? '';
  // As in a domain name, a dot has characters before and after it.
  if (word.indexOf('.', 1) === -1) return null;
  const isUrl = /^https?:\/\//i.test(word);
  const target = isUrl ? word : `http://${word}`;
  if (!URL.canParse(target)) return null;
  const { hostname, username } = new URL(target);
  if (isUrl) return organizationalDomain(hostname);
  const name = parse(hostname, { ...PUBLIC_SUFFIX_OPTIONS, detectSpecialUse: true });
  // `node.js` is not a host name, and a mail address is not a URL.
  const isKnown = name.isIcann === true || name.isPrivate === true || name.isSpecialUse === true;
  return username === '' && (isKnown || HOST_NAME.test(hostname)) ? name.domain : null;
}

function trimControls(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}
