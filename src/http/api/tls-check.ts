import { callerBlock } from '../../accounts/caller-addresses.ts';
import { createBuckets } from '../../accounts/rate-limits.ts';
import type { Clock } from '../../core/clock.ts';
import { refuse } from '../../core/refusal.ts';
import type { LinkHosts } from '../../domains/platform/link-hosts.ts';
import type { OpenRoute } from '../route.ts';

export interface TlsCheckDeps {
  clock: Clock;
  linkHosts: Pick<LinkHosts, 'standingOf' | 'leadsHere'>;
}

/** Lookups that one caller may cause: a proxy sends one request for each new name that is visited. */
const LOOKUP_LIMIT = { burst: 60, perSecond: 1 };
const MAX_LIMITED_CALLERS = 10_000;

/** For a reverse proxy of the public pages that obtains certificates on demand. */
export function tlsCheckRoute({ clock, linkHosts }: TlsCheckDeps): OpenRoute {
  const lookups = createBuckets(clock, LOOKUP_LIMIT, MAX_LIMITED_CALLERS);
  return {
    path: '/tls-check',
    operationId: 'checkTlsHost',
    tag: 'Operations',
    summary: 'Check whether a proxy may obtain a certificate for a host name',
    description:
      "For a proxy that obtains certificates on demand. 200 for the platform's own link host, for the link hosts of domains whose DKIM key is verified, and for the link hosts of other registered domains whose DNS leads to this server. 404 for any other name, and where DNS does not answer. 429 after too many names of one caller that require a lookup.",
    query: { domain: 'The host name.' },
    answers: { 200: { description: 'Allowed.', contentType: 'text/plain', example: 'yes\n' } },
    visit: async ({ query, from }) => {
      const host = query.get('domain') ?? '';
      const standing = linkHosts.standingOf(host);
      if (standing === 'registered') {
        const { allowed, retryAfterSeconds: retryAfter } = lookups.take(callerBlock(from.address));
        if (!allowed) return refuse('RATE_LIMITED', 'too many names that require a lookup', { retryAfter });
      }
      if (
        standing === 'own' ||
        standing === 'proven' ||
        (standing === 'registered' && (await linkHosts.leadsHere(host, false)))
      )
        return { status: 200, contentType: 'text/plain; charset=utf-8', body: 'yes\n' };
      return refuse('NOT_FOUND', 'this is not a link host of this platform that leads here');
    },
  };
}
