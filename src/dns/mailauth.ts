import type { DNSResolver } from 'mailauth';
import { DnsError } from './dns-error.ts';
import type { LookupOptions, Resolver } from './resolver.ts';

/**
 * Our resolver with the interface that mailauth (SPF, DKIM, DMARC, MTA-STS) requires, that of `dns.promises.resolve`:
 * TXT as strings per record, MX as `{ priority, exchange }`, all others as strings.
 */
export type MailauthResolver = DNSResolver;

/**
 * Rejects with `code` ENOTFOUND or ENODATA for a negative answer, which mailauth counts as a void lookup; every other
 * code is a temporary error. An invalid name cannot have records: ENOTFOUND (SPF macros expand to such names, RFC 7208
 * §4.8).
 */
export function forMailauth(resolver: Resolver, options: LookupOptions = {}): MailauthResolver {
  const lookups: Record<string, (name: string) => ReturnType<MailauthResolver>> = {
    A: async (name) => (await resolver.a(name, options)).records,
    AAAA: async (name) => (await resolver.aaaa(name, options)).records,
    CNAME: async (name) => (await resolver.cname(name, options)).records,
    PTR: async (name) => (await resolver.ptr(name, options)).records,
    NS: async (name) => (await resolver.ns(name, options)).records,
    TXT: async (name) => (await resolver.txt(name, options)).records,
    MX: async (name) => {
      const { records } = await resolver.mx(name, options);
      const hosts = records.map(({ preference, exchange }) => ({ priority: preference, exchange }));
      return hosts as unknown as string[]; // mailauth expects objects, which its declaration omits
    },
  };
  return async (name, rrtype) => {
    const lookup = lookups[rrtype.toUpperCase()];
    if (!lookup) throw new TypeError(`unexpected record type in a query of mailauth: ${rrtype}`);
    try {
      return await lookup(name);
    } catch (error) {
      if (error instanceof DnsError && error.code === 'EBADNAME') {
        throw new DnsError('ENOTFOUND', `${rrtype} ${name}`, 'not a domain name');
      }
      throw error;
    }
  };
}
