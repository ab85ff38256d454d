import type { DNSResolver } from 'mailauth';
import { DnsError } from './dns-error.ts';
import type { LookupOptions, Resolver } from './resolver.ts';

/**
 * Our resolver in the form in which mailauth (SPF, DKIM, DMARC, MTA-STS) asks for one: that of
 * `dns.promises.resolve`. TXT as strings per record, MX as `{ priority, exchange }`, the rest as strings.
 */
export type MailauthResolver = DNSResolver;

/**
 * Rejects with `code` ENOTFOUND or ENODATA for "no record", which mailauth counts as a void look-up; every
 * other code is a temporary error to it. What is not a domain name cannot have records: ENOTFOUND (SPF macros
 * make such names, RFC 7208 §4.8).
 */
export function forMailauth(resolver: Resolver, options: LookupOptions = {}): MailauthResolver {
  const ask: Record<string, (name: string) => ReturnType<MailauthResolver>> = {
    A: async (name) => (await resolver.a(name, options)).records,
    AAAA: async (name) => (await resolver.aaaa(name, options)).records,
    CNAME: async (name) => (await resolver.cname(name, options)).records,
    PTR: async (name) => (await resolver.ptr(name, options)).records,
    NS: async (name) => (await resolver.ns(name, options)).records,
    TXT: async (name) => (await resolver.txt(name, options)).records,
    MX: async (name) => {
      const { records } = await resolver.mx(name, options);
      const hosts = records.map(({ preference, exchange }) => ({ priority: preference, exchange }));
      return hosts as unknown as string[]; // mailauth reads objects here, its declaration leaves them out
    },
  };
  return async (name, rrtype) => {
    const answer = ask[rrtype.toUpperCase()];
    if (!answer) throw new TypeError(`mailauth asked for a record type it has no use for: ${rrtype}`);
    try {
      return await answer(name);
    } catch (error) {
      if (error instanceof DnsError && error.code === 'EBADNAME') {
        throw new DnsError('ENOTFOUND', `${rrtype} ${name}`, 'not a domain name');
      }
      throw error;
    }
  };
}
