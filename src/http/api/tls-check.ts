import { callerBlock } from '../../accounts/caller-addresses.ts';
import type { Clock } from '../../core/clock.ts';
import { refuse } from '../../core/refusal.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import type { OpenRoute } from '../route.ts';

export interface TlsCheckDeps {
  clock: Clock;
  /** Null: not a link host of ours. A `registered` one is of a domain that is not proven to be the account's. */
  standingOf(host: string): 'own' | 'proven' | 'registered' | null;
  /** Whether its DNS leads here; bounds its own cost. */
  leadsHere(host: string): Promise<boolean>;
}

/** Lookups that one caller may cause: a proxy asks once for each new name that somebody visits. */
const LOOKUP_RATE = { burst: 60, perSecond: 1 };
const MAX_CALLERS = 10_000;

/** What a proxy that ends TLS for the public pages asks before it gets a certificate for a name. */
export function tlsCheckRoute({ clock, standingOf, leadsHere }: TlsCheckDeps): OpenRoute {
  const lookups = createTokenBuckets(clock, LOOKUP_RATE, MAX_CALLERS);
  return {
    path: '/tls-check',
    operationId: 'checkTlsHost',
    tag: 'Operations',
    summary: 'Whether a proxy may obtain a certificate for a host name',
    description:
      "For a proxy that obtains certificates on demand. 200 for the platform's own link host, for the link hosts of domains whose DKIM key is verified, and for the link hosts of other registered domains whose DNS leads to this server. 404 for any other name, and where DNS does not answer. 429 when one caller asks for too many names that have to be looked up.",
    query: { domain: 'The host name.' },
    answers: { 200: { description: 'It may.', contentType: 'text/plain', example: 'yes\n' } },
    visit: async ({ query, from }) => {
      const host = query.get('domain') ?? '';
      const standing = standingOf(host);
      if (standing === 'registered') {
        const { allowed, retryAfterSeconds: retryAfter } = lookups.of(callerBlock(from.address)).take();
        if (!allowed)
          return refuse('RATE_LIMITED', 'too many names that have to be looked up', { retryAfter });
      }
      if (
        standing === 'own' ||
        standing === 'proven' ||
        (standing === 'registered' && (await leadsHere(host)))
      )
        return { status: 200, contentType: 'text/plain; charset=utf-8', body: 'yes\n' };
      return refuse('NOT_FOUND', 'this is not a link host of this platform that leads here');
    },
  };
}
