import { type Clock, HOUR } from '../../core/clock.ts';
import { createExpiringCache } from '../../core/lru.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { isLargeProvider } from './addresses.ts';

/** Why a domain receives no mail: a null MX (RFC 7505), no such domain, or neither MX nor address. */
export const NO_SERVICE_REASONS = ['null_mx', 'no_domain', 'no_host'] as const;
export type NoServiceReason = (typeof NO_SERVICE_REASONS)[number];

/** `unknown`: the servers of the domain did not answer. */
export type MailService = 'exists' | 'unknown' | NoServiceReason;

const CACHED_DOMAINS = 20_000;
const CACHED_MS = HOUR;

/**
 * Whether domains receive mail, by the records of DNS. Answers are cached for an hour, 20,000 domains at most; what is
 * unknown is not cached. The look-ups are those of the account: the resolver bounds the concurrent ones of each. `clock`: monotonic.
 */
export function createMailService(resolver: Pick<Resolver, 'mx' | 'a' | 'aaaa'>, clock: Clock) {
  const known = createExpiringCache<{ service: MailService }>(clock, CACHED_DOMAINS);

  async function lookUp(domain: string, owner: string): Promise<MailService> {
    try {
      const { records } = await resolver.mx(domain, { owner });
      return records.every(({ exchange }) => exchange === '') ? 'null_mx' : 'exists';
    } catch (error) {
      const code = codeOf(error);
      if (code === 'ENOTFOUND' || code === 'EBADNAME') return 'no_domain';
      if (code !== 'ENODATA') return 'unknown';
    }
    // RFC 5321 §5.1: without an MX the address of the domain is its mail host.
    const hosts = await Promise.all(
      [resolver.a, resolver.aaaa].map((lookup) => lookup(domain, { owner }).then(() => 'exists', codeOf)),
    );
    if (hosts.includes('exists')) return 'exists';
    return hosts.every((code) => code === 'ENODATA' || code === 'ENOTFOUND') ? 'no_host' : 'unknown';
  }

  return {
    /** The answer if no look-up is needed; null: one is. */
    cached: (domain: string): MailService | null =>
      isLargeProvider(domain) ? 'exists' : (known.get(domain)?.service ?? null),
    /** Looks a domain up, for an account. */
    of: async (domain: string, accountId: string): Promise<MailService> => {
      const service = await lookUp(domain, accountId);
      if (service !== 'unknown') known.set(domain, { service }, CACHED_MS);
      return service;
    },
  };
}

function codeOf(error: unknown): string {
  if (!(error instanceof DnsError)) throw error;
  return error.code;
}
