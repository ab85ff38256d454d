import { createSecretKey } from 'node:crypto';
import type { CopyDetails } from '../mail/content.ts';
import { personalize } from '../mail/content.ts';
import { trackLinks } from '../mail/html/track-links.ts';

/**
 * Gmail displays about 102 KB of a message's HTML and hides the rest, the unsubscribe footer with it. Senders are
 * warned a little earlier, as links of the recipient's own differ in length.
 */
const MAX_BYTES = 100_000;
/** What tracking adds to a link at most, apart from its host and the encoded address. */
const MAX_ADDED_PER_LINK = 200;
/** No link is shorter; less HTML cannot grow beyond the limit. */
const MIN_LINK = '<a href=http://a>'.length;

export interface LinkOptions {
  trackClicks: boolean;
  trackOpens: boolean;
  /** `https://links.example.com` */
  linkBase: string;
}

/** Whole sentences, none when the HTML is displayed whole. `html` holds marks (content.ts). */
export function clippingWarnings(html: string, options: LinkOptions): string[] {
  const bytes = finalSize(html, options);
  if (bytes <= MAX_BYTES) return [];
  const size = `${Math.round(bytes / 1000)} KB`;
  return [
    `The HTML is ${size}${options.trackClicks ? ' with rewritten links' : ''}: Gmail clips messages above 102 KB and hides their end, the unsubscribe footer included. Shorten the HTML to less than 100 KB.`,
  ];
}

/** Exact only where it is near the limit: rewriting all links costs as much as composing the message. */
function finalSize(html: string, { trackClicks, trackOpens, linkBase }: LinkOptions): number {
  const bytes = Buffer.byteLength(html);
  if (bytes > MAX_BYTES || !trackClicks) return bytes;
  const added = MAX_ADDED_PER_LINK + linkBase.length;
  // Base64 makes three octets of an address four.
  const most = (links: number) => (bytes * 4) / 3 + links * added;
  if (most(html.length / MIN_LINK) <= MAX_BYTES || most(countLinks(html)) <= MAX_BYTES) return bytes;
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
      clickKey: createSecretKey(Buffer.alloc(32)),
      messageId,
      pixelUrl: trackOpens ? `${linkBase}/o/${token}.gif` : null,
    },
  };
  return Buffer.byteLength(personalize(trackLinks(html, copy), copy, 'html'));
}

/** At least as many as there are. */
function countLinks(html: string): number {
  return html.match(/href/gi)?.length ?? 0;
}
