import { callerBlock } from '../../accounts/caller-addresses.ts';
import { refuse } from '../../core/refusal.ts';
import type { Runtime } from '../../core/runtime.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import type { LinkHosts } from '../../domains/platform/link-hosts.ts';
import type { OpenRoute } from '../route.ts';

/** Rate of lookups by caller: a proxy sends one request for each new name that is visited. */
const LOOKUP_RATE = { burst: 60, perSecond: 1 };
const MAX_CALLERS = 10_000;

/** Request of a proxy that terminates TLS for the public pages, before it obtains a certificate for a name. */
export function tlsCheckRoute(
  { clock }: Pick<Runtime, 'clock'>,
  { linkHosts }: { linkHosts: Pick<LinkHosts, 'statusOf' | 'leadsHere'> },
): OpenRoute {
  const lookups = createTokenBuckets(clock, LOOKUP_RATE, MAX_CALLERS);
  return {
    path: '/tls-check',
    operationId: 'checkTlsHost',
    tag: 'Operations',
    summary: 'Check whether a proxy may obtain a certificate for a host name',
    description:
      'For a proxy that obtains certificates on demand. 200 for the link host of the platform, for the link hosts of domains whose DKIM key is verified, and for the link hosts of other registered domains whose DNS record points to this server. 404 for any other name, and if DNS does not answer. 429 if a caller requests too many names that require a lookup.',
    query: { domain: 'The host name.' },
    responses: {
      200: {
        description: 'The proxy may obtain a certificate.',
        contentType: 'text/plain',
        example: 'yes\n',
      },
    },
    refusals: ['NOT_FOUND', 'RATE_LIMITED'],
    handle: async ({ query, from }) => {
      const host = query.get('domain') ?? '';
      const standing = linkHosts.statusOf(host);
      if (standing === 'registered') {
        const { allowed, retryAfterSeconds: retryAfter } = lookups.of(callerBlock(from.address)).take();
        if (!allowed) return refuse('RATE_LIMITED', 'Too many names that require a lookup', { retryAfter });
      }
      if (
        standing === 'own' ||
        standing === 'proven' ||
        (standing === 'registered' && (await linkHosts.leadsHere(host, false)))
      )
        return { status: 200, contentType: 'text/plain; charset=utf-8', body: 'yes\n' };
      return refuse('NOT_FOUND', 'Not a link host of this platform whose DNS record points here');
    },
  };
}
