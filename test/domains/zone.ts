import { DnsError, type DnsErrorCode } from '../../src/dns/dns-error.ts';
import { createDnsView, type DnsView } from '../../src/dns/dns-view.ts';
import type { DnsAnswer, Resolver } from '../../src/dns/resolver.ts';

/**
 * DNS as a table, for checks without sockets: `{ 'TXT example.com': ['v=spf1 -all'] }`. A name with any record exists;
 * CNAMEs are followed; an error code is a failed query.
 */
export type Zone = Record<string, readonly string[] | DnsErrorCode>;

export function viewOf(zone: Zone): DnsView {
  return createDnsView(resolverOf(zone));
}

export function resolverOf(zone: Zone): Resolver {
  async function lookup<T>(type: string, name: string, read: (value: string) => T): Promise<DnsAnswer<T>> {
    const found = zone[`${type} ${name}`];
    if (typeof found === 'string') throw new DnsError(found, `${type} ${name}`, 'set by the test');
    if (found !== undefined) return { records: found.map(read), ttl: 60, authenticated: false, name };
    const [alias] = zone[`CNAME ${name}`] ?? [];
    if (alias !== undefined && type !== 'CNAME') return lookup(type, alias, read);
    const exists = Object.keys(zone).some((key) => key.endsWith(` ${name}`) || key.endsWith(`.${name}`));
    throw new DnsError(exists ? 'ENODATA' : 'ENOTFOUND', `${type} ${name}`, 'no record');
  }
  const unexpected = () => Promise.reject(new Error('no check uses this type'));
  return {
    a: (name) => lookup('A', name, String),
    aaaa: (name) => lookup('AAAA', name, String),
    cname: (name) => lookup('CNAME', name, String),
    ns: (name) => lookup('NS', name, String),
    ptr: (name) => lookup('PTR', name, String),
    txt: (name) => lookup('TXT', name, (value) => value.split('|')),
    mx: (name) =>
      lookup('MX', name, (value) => {
        const [preference, exchange = ''] = value.split(' ');
        return { preference: Number(preference), exchange: exchange === '.' ? '' : exchange };
      }),
    tlsa: unexpected,
    clear: () => {},
    close: () => {},
  };
}
