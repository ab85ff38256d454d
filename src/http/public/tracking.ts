import type { Visits } from '../../events/visits.ts';
import { linkAddress } from '../../mail/link-address.ts';
import type { Tokens } from '../../mail/tokens.ts';
import { COMMON_HEADERS, type PublicAnswer, type PublicPlace } from './answer.ts';
import { unknownLinkPage } from './plain-pages.ts';

/**
 * `/c/<token>` and `/o/<token>.gif`. The answer needs nothing but the token itself, so it is at once, and works
 * for ever; what is recorded of the visit comes after.
 */
export interface TrackingSettings {
  tokens: Pick<Tokens, 'readClick' | 'openUrl'>;
  visits: Pick<Visits, 'note'>;
}

/** Leads on to the address in the token; without a right signature nowhere: it is no open redirect. */
export function clickPlace({ tokens, visits }: TrackingSettings): PublicPlace {
  return {
    name: 'c',
    methods: ['GET'],
    answer: ({ token, visitor }) => {
      const click = tokens.readClick(token);
      const address = click && linkAddress(click.url);
      if (click === null || address === null) return unknownLinkPage();
      visits.note({ kind: 'email_clicked', messageId: click.id, url: address, ...visitor });
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
      if (messageId !== null) visits.note({ kind: 'email_opened', messageId, url: null, ...visitor });
      return picture;
    },
  };
}
