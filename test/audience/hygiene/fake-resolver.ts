import { DnsError, type DnsErrorCode } from '../../../src/dns/dns-error.ts';
import type { DnsAnswer, Resolver } from '../../../src/dns/resolver.ts';

/** `host`: an address without an MX; a code: the failure of every lookup; `never`: no answer. Others have an MX. */
export type FakeDomain = 'host' | 'null-mx' | 'empty' | 'never' | DnsErrorCode;

/** A resolver of domains that have an MX, with exceptions. */
export function fakeResolver(domains: Readonly<Record<string, FakeDomain>> = {}) {
  const asked: string[] = [];
  const answer = <T>(records: T[]): DnsAnswer<T> => ({ records, ttl: 60, authenticated: false, name: '' });
  const fail = (name: string, code: DnsErrorCode) => Promise.reject(new DnsError(code, name, code));
  const lookUp = async <T>(name: string, type: 'mx' | 'host', record: T): Promise<DnsAnswer<T>> => {
    asked.push(`${type} ${name}`);
    const domain = domains[name];
    if (domain === 'never') return new Promise(() => {});
    if (domain === undefined) return answer([record]);
    if (domain === 'null-mx') return type === 'mx' ? answer([record]) : fail(name, 'ENODATA');
    if (domain === 'host') return type === 'host' ? answer([record]) : fail(name, 'ENODATA');
    return fail(name, domain === 'empty' ? 'ENODATA' : domain);
  };
  const resolver: Pick<Resolver, 'mx' | 'a' | 'aaaa'> = {
    mx: (name) =>
      lookUp(name, 'mx', { preference: 10, exchange: domains[name] === 'null-mx' ? '' : `mx.${name}` }),
    a: (name) => lookUp(name, 'host', '192.0.2.1'),
    aaaa: (name) => lookUp(name, 'host', '2001:db8::1'),
  };
  return { ...resolver, asked };
}
