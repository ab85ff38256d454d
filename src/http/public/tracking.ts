import type { Visits } from '../../events/visits.ts';
import { parseLinkUrl } from '../../mail/html/links.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { plainLook } from './look.ts';
import { unknownLinkPage } from './plain-pages.ts';
import { COMMON_HEADERS, type PublicResponse, type PublicRoute } from './response.ts';

/*
 * `/c/<token>` and `/o/<token>.gif`. The response depends on the token only, so it needs no database and links never
 * expire. The visit is recorded afterwards.
 */

interface Tracking {
  tokens: Pick<Tokens, 'click' | 'openUrl'>;
  visits: Pick<Visits, 'record'>;
}

/**
 * Redirects to the URL in the token if its signature is valid. Under the host of a customer, only links created for that
 * host work: another account's link must not use its name. Under any other host (that of the platform, or one set by a
 * proxy) every link works.
 */
export function clickRoute(
  { tokens, visits }: Tracking,
  isCustomerHost: (host: string) => boolean,
): PublicRoute {
  return {
    name: 'c',
    methods: ['GET'],
    handle: ({ token, visitor, host, acceptLanguage }) => {
      const click = tokens.click(token, host);
      const address = click && parseLinkUrl(click.url);
      if (click === null || address === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (!click.madeForHost && isCustomerHost(host)) return unknownLinkPage(plainLook(acceptLanguage));
      const { id: messageId, isOf } = click;
      visits.record({ kind: 'email_clicked', messageId, isOf, url: address, ...visitor });
      return { status: 302, headers: { ...COMMON_HEADERS, Location: address }, body: '' };
    },
  };
}

/** One transparent pixel. */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

/** Returns the image for any token, so that no mail shows a broken image. */
export function openRoute({ tokens, visits }: Tracking): PublicRoute {
  const pixel: PublicResponse = {
    status: 200,
    headers: { ...COMMON_HEADERS, 'Content-Type': 'image/gif' },
    body: PIXEL,
  };
  return {
    name: 'o',
    methods: ['GET'],
    handle: ({ token, visitor, isHead }) => {
      const opened = isHead ? null : tokens.openUrl(token.replace(/\.gif$/, ''));
      if (opened !== null)
        visits.record({ kind: 'email_opened', messageId: opened.id, isOf: opened.isOf, ...visitor });
      return pixel;
    },
  };
}
