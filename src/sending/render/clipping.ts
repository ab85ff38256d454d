import { createSecretKey } from 'node:crypto';
import { type CopyDetails, personalize } from '../../mail/content.ts';
import { trackLinks } from '../../mail/html/links.ts';
import type { Rendered } from './render.ts';

/**
 * Gmail displays about 102 KB of a message's HTML and hides the rest, including the unsubscribe footer. The limit for the
 * warning is a little lower, because links differ in length between recipients.
 */
const MAX_DISPLAYED_BYTES = 100_000;
/** Bytes that tracking adds to a link, without its host and the encoded address. */
const MAX_ADDED_PER_LINK = 200;
/** The shortest link. */
const MIN_LINK = '<a href=http://a>'.length;

export interface LinkOptions {
  trackClicks: boolean;
  trackOpens: boolean;
  /** `https://links.example.com` */
  linkBase: string;
}

/** HTML with marks (mail/content.ts), and its size if it is known. */
type SizedHtml = Pick<Rendered, 'html' | 'htmlBytes'>;

/** Returns a warning if Gmail clips the HTML. */
export function clippingWarnings(rendered: SizedHtml, options: LinkOptions): string[] {
  const bytes = finalSize(rendered, options);
  if (bytes <= MAX_DISPLAYED_BYTES) return [];
  const size = `${Math.round(bytes / 1000)} KB`;
  return [
    `The HTML is ${size}${options.trackClicks ? ' with rewritten links' : ''}: Gmail clips messages above 102 KB and hides their end, the unsubscribe footer included. Shorten the HTML to less than 100 KB.`,
  ];
}

/**
 * Returns the size with rewritten links, bytes. It is exact only near the limit, because rewriting all links costs as
 * much as composing the message.
 */
function finalSize(
  { html, htmlBytes: bytes = Buffer.byteLength(html) }: SizedHtml,
  { trackClicks, trackOpens, linkBase }: LinkOptions,
): number {
  if (bytes > MAX_DISPLAYED_BYTES || !trackClicks) return bytes;
  const added = MAX_ADDED_PER_LINK + linkBase.length;
  // Base64 encodes three bytes of an address as four.
  const estimate = (links: number) => (bytes * 4) / 3 + links * added;
  if (
    estimate(html.length / MIN_LINK) <= MAX_DISPLAYED_BYTES ||
    estimate(countLinks(html)) <= MAX_DISPLAYED_BYTES
  )
    return bytes;
  const messageId = 'msg_1700000000000_abcdefghijkl';
  const token = 'x'.repeat(100);
  const copy: CopyDetails = {
    recipient: 'recipient@example.com',
    unsubscribeUrl: `${linkBase}/u/${token}`,
    reportAbuseUrl: `${linkBase}/r/${token}`,
    unsubscribeAddress: null,
    signedId: '',
    kind: 'transactional',
    feedbackAddress: null,
    feedbackId: '',
    tracking: {
      linkPrefix: `${linkBase}/c/`,
      clickSigner: { key: createSecretKey(Buffer.alloc(32)), head: Buffer.alloc(6) },
      messageId,
      pixelUrl: trackOpens ? `${linkBase}/o/${token}.gif` : null,
    },
  };
  return Buffer.byteLength(personalize(trackLinks(html, copy), copy, 'html'));
}

/** Returns an upper bound of the number of links. */
function countLinks(html: string): number {
  return html.match(/href/gi)?.length ?? 0;
}
