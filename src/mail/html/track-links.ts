import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { organizationalDomain } from '../address.ts';
import { type CopyDetails, MARKS, personalize, type Tracking } from '../content.ts';
import { clickTokens } from '../tokens.ts';
import { displayedDomain, parseLinkUrl } from './link-address.ts';
import { changingLinks } from './links.ts';

/** Links that are tracked in one mail; further links are not changed. */
const MAX_LINKS = 5000;

/**
 * Returns the HTML of one copy with tracked links and the open-tracking pixel, if they are enabled. Two kinds of links
 * are not changed: those of the service, which contain its marks, and those whose text is a URL or host name of another
 * organizational domain than that of tracked links.
 */
export function trackLinks(html: string, copy: CopyDetails): string {
  return withoutPause(trackingLinks(html, copy));
}

/** `trackLinks` in steps. */
export function* trackingLinks(html: string, copy: CopyDetails): Work<string> {
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
export interface TrackedMarks {
  /** Represents the tracked address of a link; it needs no escapes. */
  address(address: string): string;
  pixel: string;
}

/**
 * Marks the tracked links in HTML for many copies, in steps. Null when it depends on the recipient which links are tracked,
 * or to which address they lead: a link or its text contains NUL.
 */
export function* trackingAddresses(
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
  return changingLinks(html, {
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
  return href.includes(MARKS.unsubscribeUrl) || href.includes(MARKS.reportAbuseUrl);
}
