import { createSecretKey } from 'node:crypto';
import type { CopyDetails, Tracking } from '../../src/mail/content.ts';
import type { CopyIdentity, SharedContent } from '../../src/mail/shared-content.ts';

/* The content of a campaign and one of its copies, as a delivery worker gets them. */

export const IDENTITY: CopyIdentity = {
  messageId: 'msg_1700000000000_abcdefghijkl',
  date: 1_700_000_000_000,
};

export const TRACKING: Tracking = {
  linkPrefix: 'https://link.news.example/c/',
  clickSigner: { key: createSecretKey(Buffer.alloc(32, 1)), head: new Uint8Array([1, 2, 3]) },
  messageId: IDENTITY.messageId,
  pixelUrl: 'https://link.news.example/o/abc.gif',
};

/** A copy with this tracking. */
export const copyWith = (tracking: Tracking | undefined): CopyDetails => ({
  recipient: 'o"neil&co@example.net',
  kind: 'marketing',
  unsubscribeUrl: 'https://t.news.example/u/abc?a=1&b=2',
  reportAbuseUrl: 'https://t.news.example/r/abc',
  unsubscribeAddress: null,
  signedId: 'abc',
  feedbackAddress: null,
  feedbackId: 'abc',
  ...(tracking === undefined ? {} : { tracking }),
});

/** Without a text, it is derived from the HTML. `{0}` and `{1}` in the HTML are holes. */
export function sharedContent(source: string, text: string | null = null): SharedContent {
  const pieces = source.split(/\{(\d)\}/);
  const texts = pieces.filter((_, index) => index % 2 === 0);
  const holes = pieces.filter((_, index) => index % 2 === 1).map(Number);
  return {
    from: { name: 'News', address: 'news@news.example' },
    fromDomain: 'news.example',
    replyTo: null,
    list: { id: 'grp_1', name: 'News' },
    // The first value is the subject's.
    subject: { texts: ['For ', ''], holes: [0], first: 0 },
    html: { texts, holes, first: 1 },
    text: text === null ? null : { texts: [text], holes: [], first: 1 },
  };
}
