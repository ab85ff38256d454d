import type { Visits } from '../../events/visits.ts';
import { linkAddress } from '../../mail/html/link-address.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { COMMON_HEADERS, type PublicAnswer, type PublicPage } from './answer.ts';
import { unknownLinkPage } from './plain-pages.ts';

/**
 * `/c/<token>` and `/o/<token>.gif`. The response depends on the token only, so it is immediate and never expires; the
 * visit is recorded afterwards.
 */
export interface TrackingDeps {
  tokens: Pick<Tokens, 'readClick' | 'openUrl'>;
  visits: Pick<Visits, 'note'>;
}

export interface ClickDeps extends TrackingDeps {
  /** Whether a host is the link host of a customer's proven domain. */
  isCustomerHost(host: string): boolean;
}

/**
 * Redirects to the address in the token. It requires a valid signature, and under a customer's host a link that was
 * created for that host, so that another account's link cannot use its name. Under any other host (the platform's, or one
 * that a proxy sets) every link works.
 */
export function clickPage({ tokens, visits, isCustomerHost }: ClickDeps): PublicPage {
  return {
    name: 'c',
    methods: ['GET'],
    answer: ({ token, visitor, host }) => {
      const click = tokens.readClick(token, host);
      const address = click && linkAddress(click.url);
      if (click === null || address === null) return unknownLinkPage();
      if (!click.madeForHost && isCustomerHost(host)) return unknownLinkPage();
      visits.note({ kind: 'email_clicked', messageId: click.id, url: address, ...visitor });
      return { status: 302, headers: { ...COMMON_HEADERS, Location: address }, body: '' };
    },
  };
}

/** One transparent pixel. */
const PICTURE = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

/** Returns the same picture for any token, so that no mail displays a broken one. */
export function openPage({ tokens, visits }: TrackingDeps): PublicPage {
  const picture: PublicAnswer = {
    status: 200,
    headers: { ...COMMON_HEADERS, 'Content-Type': 'image/gif' },
    body: PICTURE,
  };
  return {
    name: 'o',
    methods: ['GET'],
    answer: ({ token, visitor, isHead }) => {
      const messageId = isHead ? null : tokens.openUrl.read(token.replace(/\.gif$/, ''));
      if (messageId !== null) visits.note({ kind: 'email_opened', messageId, url: null, ...visitor });
      return picture;
    },
  };
}
