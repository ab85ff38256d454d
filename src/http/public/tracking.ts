import type { Visits } from '../../events/visits.ts';
import { linkAddress } from '../../mail/html/link-address.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { COMMON_HEADERS, type PublicAnswer, type PublicPlace } from './answer.ts';
import { unknownLinkPage } from './plain-pages.ts';

/**
 * `/c/<token>` and `/o/<token>.gif`. The answer needs nothing but the token itself, so it is at once, and works
 * for ever; what is recorded of the visit comes after.
 */
export interface TrackingSettings {
  tokens: Pick<Tokens, 'readClick' | 'openUrl'>;
  visits: Pick<Visits, 'record'>;
}

export interface ClickSettings extends TrackingSettings {
  /** Whether a host is the link host of a customer's proven domain. */
  isCustomerHost(host: string): boolean;
}

/**
 * Redirects to the address in the token. Without a valid signature it leads nowhere, and under a customer's host
 * only where the link was made for that host: another account's link must not borrow its name. Under any other
 * host (the platform's, or what a proxy makes of it) every link works.
 */
export function clickPlace({ tokens, visits, isCustomerHost }: ClickSettings): PublicPlace {
  return {
    name: 'c',
    methods: ['GET'],
    answer: ({ token, visitor, host }) => {
      const click = tokens.readClick(token, host);
      const address = click && linkAddress(click.url);
      if (click === null || address === null) return unknownLinkPage();
      if (!click.madeForHost && isCustomerHost(host)) return unknownLinkPage();
      visits.record({ kind: 'email_clicked', messageId: click.id, url: address, ...visitor });
      return { status: 302, headers: { ...COMMON_HEADERS, Location: address }, body: '' };
    },
  };
}

/** One transparent point. */
const PICTURE = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');

/** The same picture whatever the token, so that no mail shows a broken one. */
export function openPlace({ tokens, visits }: TrackingSettings): PublicPlace {
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
      if (messageId !== null) visits.record({ kind: 'email_opened', messageId, ...visitor });
      return picture;
    },
  };
}
